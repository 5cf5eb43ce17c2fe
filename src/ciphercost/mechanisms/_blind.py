"""Blind indexes: a column beside each sealed one with the beginning of its text's HMAC-SHA-256, and an index of it. Not a mechanism.

The server finds equal entries by the index, and rows whose entry only happens to be equal are told apart by decrypting them. The
key of the HMAC is derived from the run's key, and another one than the cipher's.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ciphercost.load.codec import Blind, Encrypting
from ciphercost.mechanisms import Factor, _firebird
from ciphercost.model.errors import UsageError

SCAN, INDEX = "scan", "blind-index"
SEARCH = Factor(
    "search",
    (SCAN, INDEX),
    "how rows of --secret are found by a value. scan: each row is decrypted, unless equal texts are stored alike; blind-index: by a "
    "column beside it with an HMAC of each text, which has an index",
    acts="operation",
)
BITS = Factor(
    "bits",
    (),
    "search=blind-index: bits of each HMAC that are stored, 8 to 256; default 64",
    acts="operation",
    only_with=f"{SEARCH.name}={INDEX}",
)
FACTORS = (SEARCH, BITS)
USUAL_BITS, MOST_BITS = "64", 256
BLOCK = 64
"""Bytes of a block of SHA-256."""
C = TypeVar("C", bound=Encrypting)


def check(mechanism: str, filled: dict[str, str], *, alike: bool) -> dict[str, str]:
    """Return the factors with the number of bits filled in. `alike`: equal texts are stored as equal bytes. Raises UsageError."""
    bits, asked = filled["bits"], filled["search"] == INDEX
    if bits and not asked:
        raise UsageError(f"{mechanism}: bits={bits} needs search={INDEX}; write both, or remove bits")
    if not asked:
        return filled
    if alike:
        fixed = "iv=fixed" if "iv" in filled else "a mode without an IV"
        raise UsageError(
            f"{mechanism}: search={INDEX} has no use with {fixed}: equal texts are stored as equal bytes, so the column's own index finds "
            "them, and shows what a blind index would; remove search, or use a mode with iv=random"
        )
    bits = bits or USUAL_BITS
    if not re.fullmatch(r"[0-9]{1,3}", bits) or not 8 <= int(bits) <= MOST_BITS or int(bits) % 8:
        raise UsageError(f"{mechanism}: bits={bits}: write a multiple of 8 from 8 to {MOST_BITS}")
    return {**filled, "bits": bits}


def key_of(key: bytes) -> bytes:
    """Return the key of the HMAC. Pure."""
    return hmac.digest(key, b"ciphercost blind index", "sha256")


def hidden(key: bytes) -> tuple[bytes, ...]:
    """Return what of the HMAC's key statements may contain: no message may show it."""
    own = key_of(key)
    return own, _pad(own, 0x36)[: len(own)], _pad(own, 0x5C)[: len(own)]


def entry(key: bytes, text: bytes, bits: int) -> bytes:
    """Return a text's entry. Pure. `key`: the run's."""
    return hmac.digest(key_of(key), text, "sha256")[: bits // 8]


def beside(codec: C, dialect: str, factors: Mapping[str, str], key: bytes) -> C:
    """Give the codec a blind index in the SQL of a dialect if the factors ask for one."""
    if factors.get("search") == INDEX:
        kinds: dict[str, Callable[[bytes, int], Blind]] = {
            "postgresql": _PostgreSql,
            "mysql": _MySql,
            "firebird": _Firebird,
        }
        codec.blind = kinds[dialect](key_of(key), int(factors["bits"]))
    return codec


def _pad(key: bytes, byte: int) -> bytes:
    """The block that begins what one of HMAC's two hashes is computed of (RFC 2104)."""
    return bytes(digit ^ byte for digit in key.ljust(BLOCK, b"\0"))


class _Sql(Blind):
    """The server computes the HMAC."""

    def __init__(self, key: bytes, bits: int) -> None:
        self.key, self.bits = key, bits

    @property
    def _bytes(self) -> int:
        return self.bits // 8


class _PostgreSql(_Sql):
    """By pgcrypto's `hmac`."""

    column = "bytea"

    def of(self, value: str, length: int) -> str:  # noqa: ARG002
        whole = f"public.hmac(convert_to({value}, 'UTF8'), '\\x{self.key.hex()}'::bytea, 'sha256')"
        return f"substring({whole} FROM 1 FOR {self._bytes})"


class _MySql(_Sql):
    """By SHA2 twice, as there is no HMAC: the key, padded as RFC 2104 asks, stands in the statement."""

    def __init__(self, key: bytes, bits: int) -> None:
        super().__init__(key, bits)
        self.column = f"binary({self._bytes})"

    def of(self, value: str, length: int) -> str:  # noqa: ARG002
        inner = f"UNHEX(SHA2(CONCAT(X'{_pad(self.key, 0x36).hex()}', {value}), 256))"
        outer = f"SHA2(CONCAT(X'{_pad(self.key, 0x5C).hex()}', {inner}), 256)"
        return f"UNHEX(LEFT({outer}, {2 * self._bytes}))"


class _Firebird(_Sql):
    """By CRYPT_HASH twice, as in MySQL."""

    def __init__(self, key: bytes, bits: int) -> None:
        super().__init__(key, bits)
        self.column = f"varchar({self._bytes}) character set octets"

    def of(self, value: str, length: int) -> str:
        text = f"x'{_pad(self.key, 0x36).hex()}' || {_firebird.octets(value, length)}"
        outer = f"x'{_pad(self.key, 0x5C).hex()}' || CRYPT_HASH({text} USING SHA256)"
        return f"SUBSTRING(CRYPT_HASH({outer} USING SHA256) FROM 1 FOR {self._bytes})"
