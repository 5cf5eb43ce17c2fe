"""sqlcipher: every page of a SQLite file encrypted with AES-256-CBC and authenticated. The key never touches the disk but here."""

from __future__ import annotations

import os
import secrets as randomness
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.errors import AgentError
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._rest import AtRest, Look
from ciphercost.model import Arm

RESERVE = 80
"""Bytes at the end of each page that SQLCipher keeps for IV (16) and HMAC-SHA512 (64); the plain arm leaves as many unused."""
HMAC = {"sha512": "HMAC_SHA512", "sha256": "HMAC_SHA256", "sha1": "HMAC_SHA1"}
COMMON = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=2"
"""temp_store=2: sorts stay in memory. Files of temporary data are written in clear by SQLCipher."""


class SqlCipher(AtRest):
    name = "sqlcipher"
    title = "SQLCipher: encrypted database file"
    engines = ("sqlite",)
    witnesses = ("server", "disk", "client")
    protects = "a stolen or copied database file; not a process that reads the application's memory"
    factors = (
        Factor(
            "page_size", ("4096", "1024", "2048", "8192", "16384", "32768", "65536"), "bytes of a page, in both arms"
        ),
        Factor("hmac", (*HMAC, "off"), "authentication of each page"),
    )

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        """The key is random, 256 bits, the same for the whole run, and lives in `secrets`."""
        factors = self.check(factors)
        if arm == "plain":
            return {"reserve": RESERVE, "pragmas": f"PRAGMA page_size={factors['page_size']};{COMMON}"}
        hmac = "PRAGMA cipher_use_hmac=OFF"
        if factors["hmac"] != "off":
            hmac = f"PRAGMA cipher_use_hmac=ON;PRAGMA cipher_hmac_algorithm={HMAC[factors['hmac']]}"
        pragmas = f"PRAGMA cipher_page_size={factors['page_size']};{hmac};{COMMON}"
        return {"key": _key(secrets / "sqlcipher.key"), "pragmas": pragmas}

    def status(self, look: Look) -> tuple[bool, str]:
        """The library itself: the plain file opens without a key, the encrypted one with its key alone."""
        if look.arm == "plain" and look.connect.get("key"):
            return False, "the plain arm has a key"
        name = f"bare-{look.arm}"
        bare = {field: value for field, value in look.connect.items() if field not in ("key", "pragmas")}
        try:
            look.agent.connect(name, **bare)
            look.agent.query(name, "SELECT count(*) FROM sqlite_master")
            look.agent.disconnect(name)
        except AgentError as error:
            return look.arm == "encrypted", f"without a key: {error}"
        return look.arm == "plain", "opens without a key"


def _key(path: Path) -> str:
    """64 hexadecimal digits, made at the first call."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(randomness.token_hex(32))
    except FileExistsError:
        pass
    return path.read_text()


MECHANISM = SqlCipher()
