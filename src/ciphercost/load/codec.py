"""codec: How a value of one arm is written in SQL: plain, or sealed by the server or by the application."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection


class Impossible(Exception):
    """A codec can't have this value sealed or opened where a workload wants it; says why, and what to use."""


class Codec(ABC):
    """What becomes of a secret value in one arm's SQL."""

    chosen: Collection[str] | None = None
    """Names of the columns that are secret; None: all."""
    agent_key = ""
    """In hexadecimal digits: what the agent seals and opens with, where it does."""

    @abstractmethod
    def column(self, length: int) -> str:
        """The type of a column for texts of up to `length` letters."""

    @abstractmethod
    def seal(self, value: str, length: int) -> str:
        """An expression of the value as it is stored. `value`: SQL of a text."""

    @abstractmethod
    def open(self, column: str, length: int) -> str:
        """An expression of the text again. `column`: SQL of what is stored."""

    def match(self, column: str, value: str, length: int) -> str:
        """A condition: what is stored in `column` is the text `value`."""
        return f"{self.open(column, length)} = {value}"

    def like(self, column: str, value: str, length: int) -> str:
        """The same by LIKE. A ciphertext may hold any byte, so that none of the pattern's may escape another."""
        return f"{self.open(column, length)} LIKE {value}"

    def named(self, name: str) -> Codec:
        """What becomes of the column of that name."""
        return self if self.chosen is None or name in self.chosen else PLAIN

    def read(self, value: str | None) -> str | None:
        """A value of a row as a text, where the server gives it in hexadecimal digits because the application is to open it.

        Raises AgentError where it does not open.
        """
        return value


class Plain(Codec):
    """Nothing becomes of it, as in the plain arm."""

    def column(self, length: int) -> str:
        return f"varchar({length})"

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        return value

    def open(self, column: str, length: int) -> str:  # noqa: ARG002
        return column


PLAIN = Plain()


class Encrypting(Codec):
    """It is encrypted, and there are witnesses who look at what is stored."""

    client_side = False
    """Whether the application seals and opens: `seal` and `open` mark what the agent is to do, and what stands in a table is `opened` here."""
    alike = False
    """Whether equal texts are stored alike."""
    no_escape = " ESCAPE ''"
    """Ends a LIKE whose pattern has no letter that escapes another."""
    once = "{}"
    """How an expression is written that is to be evaluated once a statement and not for each row."""

    def match(self, column: str, value: str, length: int) -> str:
        """By the stored bytes, where equal texts are stored alike."""
        if self.alike:
            return f"{column} = {self.once.format(self.seal(value, length))}"
        return super().match(column, value, length)

    def like(self, column: str, value: str, length: int) -> str:
        """By the stored bytes, where equal texts are stored alike."""
        if self.alike:
            return f"{column} LIKE {self.seal(value, length)}{self.no_escape}"
        return super().like(column, value, length)

    @abstractmethod
    def hex(self, column: str) -> str:
        """An expression of the stored bytes, in hexadecimal digits."""

    @abstractmethod
    def raw(self, column: str) -> str:
        """An expression of the bytes that the server makes of them, decrypted whether or not they are a text, in hexadecimal digits."""

    @abstractmethod
    def literal(self, stored: bytes) -> str:
        """Stored bytes as SQL has them."""

    def opened(self, raw: bytes) -> bytes:
        """A text's bytes of `raw` ones: what is left to the application. Raises AgentError where they don't open."""
        return raw
