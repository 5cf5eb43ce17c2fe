"""_column: what every mechanism in columns is asked: SQL that seals a value, SQL that opens it again. No mechanism itself.

One server serves both arms; each arm has the same tables in a schema of its own. A workload says which values are secret
(`sealed`, `opened` and `secret` in its SQL, see `macros`), and a mechanism's codec says what becomes of them in the encrypted arm.

Where a mode lets it, a random IV is the encryption of a random block (NIST SP 800-38A, appendix C, first method): the block
is put before the value and all of it is encrypted under a zero IV. What is stored is IV and ciphertext, as if the two had been made apart,
and the expression is evaluated anew for every row: no planner can take it for a constant.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost import guard, hidden
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model import Arm, Witness

if TYPE_CHECKING:
    from ciphercost.engines import Engine

IV = Factor(
    "iv",
    ("random", "fixed"),
    "random: a new one for each value, stored with it; fixed: one for all, as the published study had it",
)
BLOCK = 16
"""Bytes of AES' block, and of its IV."""


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


def only(codec: Encrypting, names: Collection[str]) -> Encrypting:
    """The same where only these columns are secret; the others are stored as in the plain arm."""
    made = copy.copy(codec)
    made.chosen = frozenset(names)
    return made


class Columns(Mechanism):
    """Encryption of values: functions of the server's, or the application itself."""

    layer = "column"
    witnesses: tuple[Witness, ...] = ("server", "disk")
    key_bytes: int = 32
    cipher: str = ""
    """For people: `AES-256-CBC`."""
    workload = "search"
    """Of those that have secrets, one that it can have: for what asks for none."""

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        """Both arms are reached alike, in clear."""
        return engine.in_clear()

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        """Statements that an arm's schema needs once, before anything is made in it; run in both arms, so that they differ in nothing.

        No key belongs in them: the server would keep it. `ours` false: on a server of the user's, where nothing may be made outside
        the schema.
        """
        return ()

    @abstractmethod
    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:
        """The encrypted arm's. `key`: of `key_bytes`; `iv`: for all values, where it is fixed."""

    def implementation(self, engine: Engine, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Cipher, mode, and whose they are; for the result."""
        return {"cipher": self.cipher}


def secret(directory: Path, name: str, size: int) -> bytes:
    """Random bytes made for the run, kept in a file below its secrets (0600), the same for each that asks. No message of ours shows them."""
    path = directory / f"column-{name}-{size}"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(size))
        guard.hand_over(path)
    made = path.read_bytes()
    hidden.hide(made)
    return made
