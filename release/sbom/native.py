"""C libraries that the Rust agent holds. Two crates carry their sources, and the crates' versions name theirs."""

from __future__ import annotations

import re

from .document import Package

OPENSSL = r"\+(?P<openssl>[\d.]+)$"
SQLCIPHER = r"\+sqlcipher-(?P<sqlcipher>[\d.]+)-sqlite-(?P<sqlite>[\d.]+)-"


def libraries(crates: dict[str, str]) -> list[Package]:
    """OpenSSL, SQLCipher and SQLite. `crates`: name -> version of the locked crates.

    libtomcrypt, whose sources sqlcipher-src also has, is not compiled: SQLCipher uses OpenSSL. Raises SystemExit if a
    crate's version does not name the library's.
    """
    openssl = _library("openssl", _version(crates, "openssl-src", OPENSSL, "openssl"), "Apache-2.0", "openssl")
    sqlite = _library("sqlite", _version(crates, "sqlcipher-src", SQLCIPHER, "sqlite"), "blessing", "sqlite")
    sqlcipher = _library(
        "sqlcipher", _version(crates, "sqlcipher-src", SQLCIPHER, "sqlcipher"), "BSD-3-Clause", "zetetic"
    )
    sqlcipher.needs = [openssl.purl, sqlite.purl]
    return [openssl, sqlcipher, sqlite]


def _version(crates: dict[str, str], crate: str, pattern: str, library: str) -> str:
    found = re.search(pattern, crates.get(crate, ""))
    if found is None:
        raise SystemExit(
            f"sbom: {crate} {crates.get(crate)} names no version of {library}; correct release/sbom/native.py"
        )
    return found[library]


def _library(name: str, version: str, licence: str, vendor: str) -> Package:
    return Package("generic", name, version, licence, cpe=f"cpe:2.3:a:{vendor}:{name}:{version}:*:*:*:*:*:*:*")
