"""H2's own encryption of its database file: AES-128 in XTS mode, block by block of 4096 bytes (`CIPHER=AES`).

The client gives the key of the file with its login, before its password. H2 derives the cipher's key from it by PBKDF2 with ten
rounds, which a short key would not survive; ciphercost's is random. The file begins with `H2encrypt`, and its other bytes look
random. There is no integrity check.
"""

from __future__ import annotations

import contextlib
import secrets as randomness
from collections.abc import Iterator, Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.h2 import FILE
from ciphercost.mechanisms._client_key import another, kept_key, none_opens
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import Arm

KEY_FILE = "h2.key"
CIPHER = "CIPHER=AES"
PLAIN_MAGIC, ENCRYPTED_MAGIC = b"H:", b"H2encrypt\n"
"""How a database file begins. The salt follows in an encrypted one."""


class H2Aes(AtRest):
    name = "h2-aes"
    title = "H2: encrypted database file (AES-128-XTS)"
    engines = ("h2",)
    witnesses = ("server", "disk")
    protects = "a stolen or copied database file; not against a process that reads the server's memory"
    key_states = ("missing", "wrong")

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:
        """The key is random (64 hexadecimal digits), the same for the whole run, and lies in `secrets`."""
        changes = super().connection(engine, arm, factors, secrets)
        if arm == "plain" or not (key := _key(secrets / KEY_FILE)):
            return changes
        return {**changes, "key": Secret(key), "cipher": CIPHER}

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """H2 has no statement that reports the encryption of its files, so log in as the other arm does."""
        if look.arm == "plain":
            opened, words = _opens(look, Secret(""))
            return opened, f"without a key: {words}"
        return self.refuses(look)

    def refuses(self, look: ArmAtRest) -> tuple[bool, str]:
        """Log in with another key, and without one."""
        keys = {"with another key": another(reveal(look.connect.key)), "without a key": ""}
        tried = {name: _opens(look, Secret(key)) for name, key in keys.items()}
        return none_opens(tried)

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check how the file begins."""
        try:
            with (look.volume.path / FILE).open("rb") as file:
                return judge(file.read(len(ENCRYPTED_MAGIC)), look.arm)
        except OSError as error:
            return False, f"{FILE} can't be read: {error}"

    def implementation(self, look: ArmAtRest) -> dict[str, str]:  # noqa: ARG002
        return {
            "cipher": "AES-128-XTS",
            "implementation": "H2's own in Java",
            "warning": "H2's own AES, written in Java, uses no AES instructions of the CPU",
        }

    @contextlib.contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        """The server starts, since it opens its database later; then nobody can log in."""
        path = rest.secrets / KEY_FILE
        right = path.read_text()
        try:
            path.write_text(another(right) if state == "wrong" else "")
            yield
        finally:
            path.write_text(right)


def judge(head: bytes, arm: Arm) -> tuple[bool, str]:
    """Judge whether the first bytes of a database file are as the arm's name promises. Pure."""
    if head.startswith(ENCRYPTED_MAGIC):
        return arm == "encrypted", f"{FILE} begins with H2encrypt"
    if head.startswith(PLAIN_MAGIC):
        return arm == "plain", f"{FILE} begins as an unencrypted database does"
    return False, f"{FILE} does not begin like a database of H2"


def _opens(look: ArmAtRest, key: Secret) -> tuple[bool, str]:
    """Whether the database opens with this key (empty: none), and H2's words."""
    name = f"opened-{look.arm}"
    connection = look.connect.alone | {"key": key or None, "cipher": CIPHER if key else None}
    try:
        look.agent.connect(name, connection)
    except AgentError as error:
        return False, str(error)
    look.agent.disconnect(name)
    return True, "it opens"


def _key(path: Path) -> str:
    """The run's key, which is created the first time; empty while it is taken away."""
    return kept_key(path, randomness.token_hex(32))


MECHANISM = H2Aes()
