"""Turso's own encryption: every page of the database file and of its write-ahead log, by AEGIS or AES-GCM.

Only `secrets` holds the key on disk. The encrypted arm ends each page with tag and nonce; the plain arm has no such bytes, so its pages
hold 0.7 to 1.2 % more.
"""

from __future__ import annotations

import secrets as randomness
import shutil
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._client_key import another, kept_key, none_opens, of_header, said_of
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.cipher_work import CipherWork, Stream
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import Arm

KEY_FILE = "turso-{bits}.key"
CIPHERS = {
    "aegis256": (3, 256, 48),
    "aegis256x2": (4, 256, 48),
    "aegis256x4": (5, 256, 48),
    "aegis128l": (6, 128, 32),
    "aegis128x2": (7, 128, 32),
    "aegis128x4": (8, 128, 32),
    "aes256gcm": (2, 256, 28),
    "aes128gcm": (1, 128, 28),
}
"""By Turso's name: its number in the file's header, bits of the key, and bytes of tag and nonce at the end of each page."""
PLAIN, SEALED = b"SQLite format 3\0", b"Turso"
CIPHER_AT, RESERVED_AT, HEADER = 6, 20, 100
PAGE, RESERVED_GCM = 4096, 28
COMMON = "PRAGMA temp_store=2"
"""Temporary tables stay in memory: Turso does not encrypt their files."""


class TursoEncryption(AtRest):
    name = "turso-encryption"
    title = "Turso: encrypted database file"
    engines = ("turso",)
    witnesses = ("server", "disk", "client")
    protects = "a stolen or copied database file; not against a process that reads the application's memory"
    factors = (Factor("cipher", tuple(CIPHERS), "by which each page is encrypted and authenticated", acts="operation"),)

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """The key is random, as long as the cipher needs, the same for the whole run, and lies in `secrets`."""
        if arm == "plain":
            return {"pragmas": COMMON}
        cipher = self.check(factors)["cipher"]
        return {"key": _key(secrets, cipher), "cipher": cipher, "pragmas": COMMON}

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """Each page but its end. Turso does not count them, and the agents lack AEGIS."""
        bits = {"aes256gcm": "256", "aes128gcm": "128"}.get(factors["cipher"])
        return {"pages": Stream(CipherWork(f"aes{bits}-gcm", unit=PAGE - RESERVED_GCM), PAGE)} if bits else {}

    # ── witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Ask the library for the connection's cipher."""
        answer = look.query("PRAGMA cipher")
        cipher = (answer[0][0] if answer else None) or "none"
        wanted = "none" if look.arm == "plain" else self.check(look.rest.factors)["cipher"]
        return cipher == wanted, f"the library reports: cipher is {cipher}"

    def refuses(self, look: ArmAtRest) -> tuple[bool, str]:
        """Open a copy of the file without its key, with another, and with its own. There is no server to start.

        A copy, because Turso gives a file that the process has open already to whoever asks for it, whatever the key.
        """
        given = reveal(look.connect.key)
        copy = look.rest.secrets.parent / f"copy-{look.arm}" / _file(look).name
        tried = {"without a key": _opens(look, copy, {"key": None, "cipher": None})}
        if look.arm == "plain":
            return none_opens(tried)
        tried["with another key"] = _opens(look, copy, {"key": Secret(another(given))})
        closed, words = none_opens(tried)
        opens, own = _opens(look, copy, {})
        return closed and opens, f"{words}; with its key: {own}"

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the file's header: Turso's, with the cipher's number, or SQLite's."""
        cipher = self.check(look.rest.factors)["cipher"]
        return of_header(_file(look), HEADER, lambda header: judge(header, look.arm, cipher))

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """The library has its own AEGIS and AES, which no mask of OpenSSL's reaches."""
        if look.arm == "plain":
            return {}
        cipher = self.check(look.rest.factors)["cipher"]
        _, _, reserved = CIPHERS[cipher]
        return {
            "implementation": f"Turso's own {'AES-GCM' if cipher.startswith('aes') else 'AEGIS'}",
            "page_end": f"{reserved} bytes of each page hold tag and nonce; the plain arm's pages use them for data",
        }

    def advice(self, place: str) -> str:
        return "PRAGMA temp_store=2, which is in force in both arms here" if "tursodb-temp" in place else ""


def judge(header: bytes, arm: Arm, cipher: str) -> tuple[bool, str]:
    """Judge whether the beginning of a database file is as the arm's name promises. Returns (verdict, words). Pure."""
    if len(header) < HEADER:
        return False, "the file has no header yet"
    if header.startswith(PLAIN):
        return arm == "plain" and not header[RESERVED_AT], "the file begins like a SQLite file"
    if not header.startswith(SEALED):
        return False, "the file begins neither like Turso's nor like a SQLite file"
    number, _, reserved = CIPHERS[cipher]
    names = {number: name for name, (number, _, _) in CIPHERS.items()}
    found = names.get(header[CIPHER_AT], f"number {header[CIPHER_AT]}")
    words = f"the file's header says encrypted by {found}, {header[RESERVED_AT]} bytes at the end of each page"
    return arm == "encrypted" and (header[CIPHER_AT], header[RESERVED_AT]) == (number, reserved), words


def _file(look: ArmAtRest) -> Path:
    return Path(look.connect.path or "")


def _opens(look: ArmAtRest, copy: Path, changes: Changes) -> tuple[bool, str]:
    """Whether a copy of the arm's file opens with these changes, and the library's words."""
    original, name = _file(look), f"opened-{look.arm}"
    copy.parent.mkdir(mode=0o700)
    try:
        for end in ("", "-wal"):
            if (path := original.with_name(original.name + end)).exists():
                shutil.copyfile(path, copy.with_name(copy.name + end))
        look.agent.connect(name, look.connect.alone | {"path": str(copy), **changes})
        look.agent.query(name, "SELECT count(*) FROM sqlite_master")
        look.agent.disconnect(name)
    except AgentError as error:
        return False, said_of(copy, error)
    finally:
        shutil.rmtree(copy.parent)
    return True, "it opens"


def _key(secrets: Path, cipher: str) -> Secret:
    """The run's key of this length, which is created the first time."""
    _, bits, _ = CIPHERS[cipher]
    return Secret(kept_key(secrets / KEY_FILE.format(bits=bits), randomness.token_hex(bits // 8)))


MECHANISM = TursoEncryption()
