"""How SQL writes a secret value of one arm: as plain text, or sealed by the server or by the application."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from ciphercost.model.secret import Secret


class Impossible(Exception):
    """A codec can't seal or open a value where a workload wants it. The text gives the reason and an alternative."""


class Blind(ABC):
    """A blind index: a column beside the sealed one with the beginning of each text's HMAC-SHA-256. Equal texts have equal entries, so
    the server finds them by an index. Its key is another one than the cipher's.
    """

    column: str
    """The type of its column."""
    bits: int
    """How many bits of each HMAC it holds."""
    client_side = False
    """Whether the application computes the entries."""

    @abstractmethod
    def of(self, value: str, length: int) -> str:
        """Return an expression for a text's entry. `value`: SQL for a text of up to `length` characters."""

    def of_text(self, text: str, literal: str, length: int) -> str:  # noqa: ARG002
        """Return the same for a text that is known here. `literal`: SQL for it."""
        return self.of(literal, length)


class Codec(ABC):
    """How one arm's SQL writes, reads and compares a secret value."""

    blind: Blind | None = None
    """The blind index beside each sealed column; None: there is none."""

    chosen: Collection[str] | None = None
    """Names of the secret columns; None: all of them."""
    agent_blind_key: Secret | None = None
    """The key of the blind index that the agent computes, in hexadecimal digits."""
    agent_key: Secret | None = None
    """The key that the agent seals and opens with, in hexadecimal digits; None: the agent does neither."""

    @abstractmethod
    def column(self, length: int) -> str:
        """Return the type of a column for texts of up to `length` characters."""

    @abstractmethod
    def seal(self, value: str, length: int) -> str:
        """Return an expression for the value as it is stored. `value`: SQL for a text."""

    @abstractmethod
    def open(self, column: str, length: int) -> str:
        """Return an expression for the original text. `column`: SQL for the stored value."""

    def match(self, column: str, value: str, length: int) -> str:
        """Return a condition: `column` holds the text `value`."""
        return f"{self.open(column, length)} = {value}"

    def like(self, column: str, value: str, length: int) -> str:
        """Return the same condition with LIKE.

        A ciphertext may contain any byte, so the pattern must not have an escape character.
        """
        return f"{self.open(column, length)} LIKE {value}"

    def named(self, name: str) -> Codec:
        """Return the codec for the column of that name."""
        return self if self.chosen is None or name in self.chosen else PLAIN

    def read(self, value: str | None) -> str | None:
        """Return a value of a row as text. Where the application opens it, the server sends it in hexadecimal digits.

        Raises AgentError if it does not open.
        """
        return value


class Plain(Codec):
    """Leaves values as they are: the plain arm's codec."""

    def column(self, length: int) -> str:
        return f"varchar({length})"

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        return value

    def open(self, column: str, length: int) -> str:  # noqa: ARG002
        return column


PLAIN = Plain()


class Encrypting(Codec):
    """Encrypts values. Witnesses check what is stored."""

    client_side = False
    """Whether the application seals and opens.

    Then `seal` and `open` mark what the agent has to do, and `opened` decrypts stored values here.
    """
    alike = False
    """Whether equal texts are stored as equal bytes."""
    opens_null = True
    """Whether decrypting NULL gives NULL. Otherwise it is an error."""
    no_escape = " ESCAPE ''"
    """Ends a LIKE whose pattern has no escape character."""
    once = "{}"
    """A format for an expression that the server is to evaluate once per statement, not once per row."""

    def seal_text(self, text: str, literal: str, length: int) -> str:  # noqa: ARG002
        """Return an expression for a text that is known here, as it is stored. `literal`: SQL for it."""
        return self.seal(literal, length)

    def match(self, column: str, value: str, length: int) -> str:
        """Compare the stored bytes where equal texts are stored as equal bytes."""
        if self.alike:
            return f"{column} = {self.once.format(self.seal(value, length))}"
        return super().match(column, value, length)

    def like(self, column: str, value: str, length: int) -> str:
        """Compare the stored bytes where equal texts are stored as equal bytes."""
        if self.alike:
            return f"{column} LIKE {self.seal(value, length)}{self.no_escape}"
        return super().like(column, value, length)

    @abstractmethod
    def hex(self, column: str) -> str:
        """Return an expression for the stored bytes, in hexadecimal digits."""

    @abstractmethod
    def raw(self, column: str) -> str:
        """Return an expression for the bytes that the server decrypts, in hexadecimal digits, whether or not they are
        valid text.
        """

    @abstractmethod
    def literal(self, stored: bytes) -> str:
        """Return a SQL literal for stored bytes."""

    def opened(self, raw: bytes) -> bytes:
        """Return a text's bytes from `raw` ones: the application's part of decryption.

        Raises AgentError if they don't open.
        """
        return raw
