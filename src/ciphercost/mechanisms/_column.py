"""What every mechanism in columns provides: SQL that encrypts ("seals") a value, and SQL that decrypts ("opens") it.

One server serves both arms; each arm has the same tables in a schema of its own. A workload marks the secret values
(`sealed`, `opened` and `secret` in its SQL, see `load.secret_sql`). The mechanism's codec turns the marks into SQL for
the encrypted arm.

Where a mode allows it, a random IV is the encryption of a random block (NIST SP 800-38A, appendix C, first method): the
SQL puts the block before the value and encrypts both under a zero IV. The stored bytes are IV and ciphertext, as if
each had been made separately. The server evaluates the expression for every row: no planner can take it for a constant.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.host import run_ownership
from ciphercost.load import redact
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.connection import Changes
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.engines import Engine

IV = Factor(
    "iv",
    ("random", "fixed"),
    "random: a new one for each value, stored with it; fixed: the same for all values, as in the published study",
    acts="operation",
)
BLOCK = 16
"""Bytes of an AES block, and of its IV."""


def only(codec: Encrypting, names: Collection[str]) -> Encrypting:
    """Return a copy of the codec for which only these columns are secret; it stores the others as in the plain arm."""
    copied = copy.copy(codec)
    copied.chosen = frozenset(names)
    return copied


class Columns(Mechanism):
    """Encryption of single values, by functions of the server or by the application."""

    layer = "column"
    witnesses: tuple[Witness, ...] = ("server", "disk")
    key_bytes: int = 32
    cipher: str = ""
    """Name for people: `AES-256-CBC`."""
    workload = "search"
    """Workload with secret values to use if the given one has none."""

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """Connect both arms in the same way, unencrypted."""
        return engine.plaintext_fields()

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        """Return statements that an arm's schema needs once, before anything is created in it.

        They run in both arms, so that the arms don't differ in them. They must not contain a key: the server would keep
        it. `ours`: False on a server you already run, where nothing outside the schema may be created.
        """
        return ()

    @abstractmethod
    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:
        """Return the codec of the encrypted arm.

        `key`: `key_bytes` bytes; `iv`: the IV of all values if it is fixed.
        """

    def implementation(self, engine: Engine, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return cipher, mode and implementation, for the result."""
        return {"cipher": self.cipher}


def secret(directory: Path, name: str, size: int) -> bytes:
    """Return random bytes for this run from a file in its secrets directory (mode 0600); the same bytes at every call.

    Messages never show them.
    """
    path = directory / f"column-{name}-{size}"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(size))
        run_ownership.hand_over(path)
    content = path.read_bytes()
    redact.hide(content)
    return content
