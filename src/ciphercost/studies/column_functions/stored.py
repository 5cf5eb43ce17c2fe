"""How the study's application stored ciphertexts, where that differs from the mechanism's way. Pure.

PostgreSQL: its columns had the type text, so the server wrote bytes as `\\x` and hexadecimal digits and parsed them at each use.
Firebird: the client wrote the name of a state as hexadecimal digits before encryption; the other columns as they are.
"""

from __future__ import annotations

from ciphercost.load.codec import Codec, Encrypting
from ciphercost.model.errors import UsageError


def as_the_study(engine: str, codec: Codec) -> Codec:
    """The codec of one arm with what the study's application did in addition."""
    if not isinstance(codec, Encrypting):
        return codec
    return {"postgresql": AsText, "firebird": StateInDigits}.get(engine, Unchanged)(codec)


class Unchanged(Codec):
    """The mechanism's own way."""

    def __init__(self, inner: Encrypting) -> None:
        self.inner = inner

    def column(self, length: int) -> str:
        return self.inner.column(length)

    def seal(self, value: str, length: int) -> str:
        return self.inner.seal(value, length)

    def open(self, column: str, length: int) -> str:
        return self.inner.open(column, length)

    def match(self, column: str, value: str, length: int) -> str:
        return self.inner.match(column, value, length)

    def like(self, column: str, value: str, length: int) -> str:
        return self.inner.like(column, value, length)


class AsText(Unchanged):
    """Bytes in a column of type text."""

    def column(self, length: int) -> str:  # noqa: ARG002
        return "text"

    def open(self, column: str, length: int) -> str:
        return self.inner.open(f"{column}::bytea", length)

    def match(self, column: str, value: str, length: int) -> str:
        return self.inner.match(f"{column}::bytea", value, length)

    def like(self, column: str, value: str, length: int) -> str:
        return self.inner.like(f"{column}::bytea", value, length)


class StateInDigits(Unchanged):
    """Only the state's name is written and read as digits."""

    def named(self, name: str) -> Codec:
        return _Digits(self.inner) if name == "state" else self


class _Digits(Unchanged):
    def seal(self, value: str, length: int) -> str:
        return self.inner.seal(digits(value), length)

    def match(self, column: str, value: str, length: int) -> str:
        return self.inner.match(column, digits(value), length)

    def like(self, column: str, value: str, length: int) -> str:
        return self.inner.like(column, digits(value), length)


def digits(literal: str) -> str:
    """An SQL text literal as hexadecimal digits of its bytes: `'Ab'` -> `'4162'`. Raises UsageError for anything but a literal."""
    if len(literal) < 2 or literal[0] != "'" or literal[-1] != "'":
        raise UsageError(f"{literal}: only a quoted SQL literal can be written as hexadecimal digits")
    return "'" + literal[1:-1].replace("''", "'").encode().hex() + "'"
