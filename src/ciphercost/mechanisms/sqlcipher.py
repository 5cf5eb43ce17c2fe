"""sqlcipher: every page of a SQLite file encrypted with AES-256-CBC and authenticated. The key never touches the disk but here."""

from __future__ import annotations

import os
import secrets as randomness
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.errors import UsageError
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model import Arm

RESERVE = 80
"""Bytes at the end of each page that SQLCipher keeps for IV (16) and HMAC-SHA512 (64); the plain arm leaves as many unused."""
HMAC = {"sha512": "HMAC_SHA512", "sha256": "HMAC_SHA256", "sha1": "HMAC_SHA1"}
COMMON = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=2"
"""temp_store=2: sorts stay in memory. Files of temporary data are written in clear by SQLCipher."""


class SqlCipher(Mechanism):
    name = "sqlcipher"
    title = "SQLCipher: encrypted database file"
    layer = "rest"
    witnesses = ("server", "disk", "client")
    protects = "a stolen or copied database file; not a process that reads the application's memory"
    factors = (
        Factor(
            "page_size", ("4096", "1024", "2048", "8192", "16384", "32768", "65536"), "bytes of a page, in both arms"
        ),
        Factor("hmac", (*HMAC, "off"), "authentication of each page"),
    )

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:
        """The key is random, 256 bits, the same for the whole run, and lives in `secrets`."""
        if engine.driver != "sqlite":
            raise UsageError(f"sqlcipher encrypts SQLite files, not {engine.name}. Use sqlite:sqlcipher.")
        factors = self.check(factors)
        if arm == "plain":
            return {"reserve": RESERVE, "pragmas": f"PRAGMA page_size={factors['page_size']};{COMMON}"}
        hmac = "PRAGMA cipher_use_hmac=OFF"
        if factors["hmac"] != "off":
            hmac = f"PRAGMA cipher_use_hmac=ON;PRAGMA cipher_hmac_algorithm={HMAC[factors['hmac']]}"
        pragmas = f"PRAGMA cipher_page_size={factors['page_size']};{hmac};{COMMON}"
        return {"key": _key(secrets / "sqlcipher.key"), "pragmas": pragmas}


def _key(path: Path) -> str:
    """64 hexadecimal digits, made at the first call."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(randomness.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text()


MECHANISM = SqlCipher()
