"""_column: what every mechanism in columns is asked: SQL that seals a value, SQL that opens it again. No mechanism itself.

One server serves both arms; each arm has the same tables in a schema of its own. A workload says which values are secret
(`sealed`, `opened` and `secret` in its SQL, see `load.secret_sql`), and a mechanism's codec says what becomes of them in the encrypted arm.

Where a mode lets it, a random IV is the encryption of a random block (NIST SP 800-38A, appendix C, first method): the block
is put before the value and all of it is encrypted under a zero IV. What is stored is IV and ciphertext, as if the two had been made apart,
and the expression is evaluated anew for every row: no planner can take it for a constant.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.host import marks
from ciphercost.load import redact
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.engines import Engine

IV = Factor(
    "iv",
    ("random", "fixed"),
    "random: a new one for each value, stored with it; fixed: one for all, as the published study had it",
)
BLOCK = 16
"""Bytes of AES' block, and of its IV."""


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
        marks.hand_over(path)
    made = path.read_bytes()
    redact.hide(made)
    return made
