"""Source: the text of a script, and the place of an error in it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.model.errors import UsageError


class Source(NamedTuple):
    where: str
    """What an error begins with: the script's name."""
    text: str

    def line(self, at: int) -> int:
        """The number of the line that holds this position, from 1."""
        return self.text.count("\n", 0, at) + 1

    def place(self, at: int) -> str:
        """A position of the text for people: file, line and column, both from 1."""
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return f"{self.where}, line {self.line(at)}, column {column}"

    def error(self, at: int, message: str) -> UsageError:
        """An error at a position of the text."""
        return UsageError(f"{self.place(at)}: {message}")
