"""A password or key. Whatever prints, formats, logs or encodes it gets the word `redacted`, unless it asks by name."""

from __future__ import annotations

from typing import NoReturn

SHOWN = "redacted"


class Secret:
    """A text that no message, record or traceback may show. `reveal()` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself: for the process that needs it, and for nothing that is printed or written."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(SHOWN, spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written to a file or sent to another process: reveal() it where it is needed")


def reveal(value: object) -> str:
    """The text of a field that may be a secret; empty for None."""
    if isinstance(value, Secret):
        return value.reveal()
    return "" if value is None else str(value)


def encoded(value: object) -> str:
    """For the encoder of messages to an agent, the one place where secrets leave this process. Raises TypeError."""
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"can't encode {type(value).__name__}")
