"""What went wrong: the code and the one-line text of an `error` answer."""

from __future__ import annotations

import re

LONGEST_TEXT, LONGEST_CODE = 2000, 60
"""Most characters of an error's text and of its code, which may come from a server."""


def one_line(text: str, most: int) -> str:
    """A server's text as one line of at most this many characters, without control characters."""
    cut = text if len(text) <= most else text[:most] + "…"
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", cut)


class Failure(Exception):
    """A request, an operation or a connection failed. `lost`: the connection can't be used any more."""

    def __init__(self, code: str, text: str, lost: bool = False) -> None:
        super().__init__(one_line(text, LONGEST_TEXT))
        self.code = one_line(code, LONGEST_CODE)
        self.lost = lost

    @property
    def kind(self) -> str:
        """The code as one word, for a list of `CODE=COUNT`."""
        return re.sub(r"[^\w.-]", "-", self.code) or "unknown"

    @property
    def spelled(self) -> str:
        return f"{self.code}: {self}"


def bad_message(text: str) -> Failure:
    return Failure("bad-message", text)


def no_program(text: str) -> Failure:
    return Failure("no-program", text)


def statement(text: str) -> Failure:
    return Failure("statement", text)
