"""DuckDB's own encryption: every block of the database file, its write-ahead log and its temporary files, by AES-256.

Only `secrets` holds the key on disk.
"""

from __future__ import annotations

import functools
import re
import secrets as randomness
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._client_key import another, kept_key, none_opens, of_header, openssl_of, said_of
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.cipher_work import CipherWork, Stream
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import Arm

KEY_FILE = "duckdb.key"
MAGIC, MAGIC_AT = b"DUCK", 8
FLAGS_AT, ENCRYPTED, HEADER = 20, 1, 64
"""The main header of a file: a checksum (8 bytes), the magic bytes, the version of the format (8), and flags (8)."""
BLOCK = 262_144
"""Bytes of a block by default."""
TEMPORARY = "SET temp_file_encryption=true"
"""A key alone leaves temporary files unencrypted: the setting belongs to the instance, and the key to one of its files."""
NO_CRYPTO = "read-only crypto module"
"""What DuckDB's error says if it has no other cryptography than its built-in Mbed TLS, with which it does not write."""


class DuckDbEncryption(AtRest):
    name = "encrypted"
    title = "DuckDB: encrypted database file"
    engines = ("duckdb",)
    witnesses = ("server", "disk", "client")
    protects = "a stolen or copied database file; not against a process that reads the application's memory"
    factors = (
        Factor(
            "cipher", ("gcm", "ctr"), "AES-256-GCM, which authenticates each block, or AES-256-CTR", acts="operation"
        ),
    )

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """The key is random (64 hexadecimal digits), the same for the whole run, and lies in `secrets`. DuckDB derives its key of
        256 bits from them.
        """
        if arm == "plain":
            return {}
        cipher = self.check(factors)["cipher"].upper()
        return {"key": _key(secrets / KEY_FILE), "cipher": cipher, "pragmas": TEMPORARY}

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """Each block of the file, whole. DuckDB does not count them."""
        return {"blocks": Stream(CipherWork(f"aes256-{factors['cipher']}", unit=BLOCK), BLOCK)}

    # ── witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Ask the library whether the file and its temporary files are encrypted, and how.

        In the encrypted arm also check that the library can't open the file for writing without httpfs, so that httpfs encrypts.
        """
        file = look.query("SELECT encrypted, cipher FROM duckdb_databases() WHERE database_name = 'arm'")
        temporary = look.query("SELECT value FROM duckdb_settings() WHERE name = 'temp_file_encryption'")
        reported = [*(value or "none" for value in (file or [["none", None]])[0]), str(temporary[0][0])]
        detail = "the library reports: encrypted is {}, cipher is {}, temp_file_encryption is {}".format(*reported)
        if look.arm == "plain":
            return reported == ["false", "none", "false"], detail
        if reported != ["true", self.check(look.rest.factors)["cipher"].upper(), "true"]:
            return False, detail
        needed, words = _needs_httpfs(look)
        return needed, f"{detail}; without httpfs: {words}"

    def refuses(self, look: ArmAtRest) -> tuple[bool, str]:
        """Open the file without its key, and with another. There is no server to start."""
        given = reveal(look.connect.key)
        tried = {
            "without a key": _opens(look, {"key": None, "cipher": None}),
            "with another key": _opens(look, {"key": Secret(another(given))}),
        }
        return none_opens(tried)

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the file's header."""
        return of_header(Path(look.connect.path or ""), HEADER, lambda header: judge(header, look.arm))

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """OpenSSL of httpfs encrypts. It obeys the same mask of the CPU's features as the agent's own."""
        if look.arm == "plain":
            return {}
        able = openssl_of(look)
        library = openssl_inside(Path(look.connect.extension or ""))
        details = {"implementation": f"{library} in DuckDB's extension httpfs, {able.words()}"}
        if warning := able.warning():
            details["warning"] = warning
        return details


def judge(header: bytes, arm: Arm) -> tuple[bool, str]:
    """Judge whether the beginning of a database file is as the arm's name promises. Returns (verdict, words). Pure."""
    if header[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
        return False, "the file does not begin like a DuckDB file"
    encrypted = bool(int.from_bytes(header[FLAGS_AT : FLAGS_AT + 8], "little") & ENCRYPTED)
    return encrypted == (arm == "encrypted"), f"the file's header says {'encrypted' if encrypted else 'not encrypted'}"


@functools.cache
def openssl_inside(extension: Path) -> str:
    """The version of OpenSSL that is linked into a file, as `OpenSSL 3.0.8`; `OpenSSL` if it names none."""
    match = re.search(rb"OpenSSL \d+\.\d+\.\d+\w*(?= +\d+ [A-Z][a-z]+ 20\d\d)", extension.read_bytes())
    return match.group().decode() if match else "OpenSSL"


def _needs_httpfs(look: ArmAtRest) -> tuple[bool, str]:
    """Whether the library can't open the file with its key if httpfs is not loaded, and its words."""
    opened, words = _opens(look, {"extension": None})
    return not opened and NO_CRYPTO in words, words


def _opens(look: ArmAtRest, changes: Changes) -> tuple[bool, str]:
    """Whether another instance of the library can open the arm's file with these changes, and its words."""
    name = f"opened-{look.arm}"
    try:
        look.agent.connect(name, look.connect.alone | changes)
    except AgentError as error:
        return False, said_of(Path(look.connect.path or ""), error)
    look.agent.disconnect(name)
    return True, "it opens"


def _key(path: Path) -> Secret:
    """The run's key, which is created the first time."""
    return Secret(kept_key(path, randomness.token_hex(32)))


MECHANISM = DuckDbEncryption()
