"""stored: how the study's application wrote ciphertexts, where that is not how a mechanism does it. Pure.

PostgreSQL: its columns were of type text, so that the server wrote bytes as `\\x` and hexadecimal digits, and read them back for each use.
Firebird: the client wrote the name of a state in hexadecimal digits before it was encrypted; of the other columns none.
"""

from __future__ import annotations

from ciphercost.load.codec import Codec, Encrypting
from ciphercost.model.errors import UsageError


def as_the_study(engine: str, codec: Codec) -> Codec:
    """The codec of one arm, with what the study's application did besides."""
    if not isinstance(codec, Encrypting):
        return codec
    return {"postgresql": AsText, "firebird": StateInDigits}.get(engine, Unchanged)(codec)


class Unchanged(Codec):
    """As the mechanism has it."""

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
    """Bytes in a column of texts."""

    def column(self, length: int) -> str:  # noqa: ARG002
        return "text"

    def open(self, column: str, length: int) -> str:
        return self.inner.open(f"{column}::bytea", length)

    def match(self, column: str, value: str, length: int) -> str:
        return self.inner.match(f"{column}::bytea", value, length)

    def like(self, column: str, value: str, length: int) -> str:
        return self.inner.like(f"{column}::bytea", value, length)


class StateInDigits(Unchanged):
    """Only the state's name is written in digits, and read as digits."""

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
    """A text in SQL, its bytes in hexadecimal digits: `'Ab'` -> `'4162'`. Raises UsageError for what is no literal."""
    if len(literal) < 2 or literal[0] != "'" or literal[-1] != "'":
        raise UsageError(f"{literal}: only a literal can be written in hexadecimal digits")
    return "'" + literal[1:-1].replace("''", "'").encode().hex() + "'"
