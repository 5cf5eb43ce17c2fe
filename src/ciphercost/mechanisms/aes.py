"""The AES functions of servers: AES_ENCRYPT in MySQL and MariaDB, ENCRYPT in Firebird.

One mechanism per mode and key length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import _blind, _firebird
from ciphercost.mechanisms._column import BLOCK, IV, Columns
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm

MODES = {
    "mysql": ("ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"),
    "mariadb": ("ecb", "cbc", "ctr"),
    "firebird": ("ofb", "cbc", "ctr", "ecb", "cfb"),
}
"""Modes by server. MariaDB before 11.2 has only ECB."""
BITS = (128, 192, 256)
CHAINED = ("cbc", "cfb", "cfb128")
"""Modes in which a random first block under a zero IV acts as a random IV for the rest, at the price of one block. In
the other modes the IV makes the key stream, or the server encrypts one block per bit or byte of it (CFB1, CFB8); there
the SQL draws a separate IV."""
PROTECTS = {
    "ecb": "values in tables, indexes and backups, from anyone without the key, but equal values and equal blocks show; "
    "not from anyone who sees the statements, which contain the key; a changed value goes undetected",
    "": "values in tables, indexes and backups, from anyone without the key; "
    "not from anyone who sees the statements, which contain the key; a changed value goes undetected",
}


class Aes(Columns):
    """One mode and key length."""

    def __init__(self, mode: str, bits: int) -> None:
        self.mode, self.bits = mode, bits
        self.name = f"aes-{mode}-{bits}"
        self.title = f"the server's own AES function, {mode.upper()} mode, {bits}-bit key"
        self.family = "aes-{ecb,cbc,ctr,cfb,cfb1,cfb8,cfb128,ofb}-{128,192,256}"
        self.engines = tuple(engine for engine, modes in MODES.items() if mode in modes)
        self.key_bytes = bits // 8
        self.cipher = f"AES-{bits}-{mode.upper()}"
        self.factors = (*(() if mode == "ecb" else (IV,)), *_blind.FACTORS)
        self.protects = PROTECTS["ecb" if mode == "ecb" else ""]

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        filled = super().check(factors)
        return _blind.check(self.name, filled, alike=filled.get("iv") != "random")

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:
        random = factors.get("iv") == "random"
        kinds: dict[str, type[_MySql | _Firebird]] = {"mysql": _MySql, "mariadb": _MariaDb, "firebird": _Firebird}
        return _blind.beside(kinds[engine.name](self.mode, key, iv, random=random), engine.dialect, factors, key)

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:
        """Set the mode in both arms' sessions: MySQL reads it from a variable, MariaDB if a statement names none."""
        changes = super().connection(engine, arm, factors, secrets)
        mode = f"SESSION block_encryption_mode = 'aes-{self.bits}-{self.mode}'"
        if engine.name == "mysql":
            changes["setup"] = f"SET {mode}"
        elif engine.name == "mariadb":
            changes["setup"] = f"SET /*M!110200 {mode}, */ @ciphercost = 0"
        return changes

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        own_iv = factors.get("iv") == "random" and self.mode not in CHAINED
        return (
            (_firebird.sealed(f"AES MODE {self.mode.upper()}", BLOCK),) if engine.name == "firebird" and own_iv else ()
        )

    def check_version(self, engine: Engine, version: str) -> None:
        if engine.name != "mariadb" or not version or _number(version) >= (11, 2):
            return
        if self.mode != "ecb":
            raise UsageError(
                f"mariadb {version} has no {self.mode.upper()}: before 11.2 AES_ENCRYPT has only ECB. Use mariadb@11.8, or aes-ecb-128"
            )
        if self.bits != 128:
            raise UsageError(
                f"mariadb {version} takes only 128-bit keys in a statement: use mariadb@11.8, or aes-ecb-128"
            )


def _number(version: str) -> tuple[int, int]:
    """Return major and minor. A version without numbers counts as the newest, until the server is found. Pure."""
    match = re.match(r"(\d{1,6})(?:\.(\d{1,6}))?", version, re.ASCII)
    return (int(match[1]), int(match[2] or 99)) if match else (999, 0)


def _stored(length: int, *, random: bool) -> int:
    """Return the bytes of the longest stored value: four UTF-8 bytes per character, padded to whole blocks, and the IV.

    Pure.
    """
    return (4 * length // BLOCK + 1) * BLOCK + (BLOCK if random else 0)


class _MySql(Encrypting):
    """AES_ENCRYPT(text, key, iv) with the mode from block_encryption_mode. Only ECB and CBC pad."""

    def __init__(self, mode: str, key: bytes, iv: bytes, *, random: bool) -> None:
        self.mode, self.key, self.random, self.alike = mode, key, random, not random
        self.has_iv = mode != "ecb"
        self.fixed = f"X'{iv.hex()}'"

    def column(self, length: int) -> str:
        return f"varbinary({_stored(length, random=self.random)})"

    def _call(self, function: str, value: str, iv: str) -> str:
        return f"{function}({value}, X'{self.key.hex()}'{f', {iv}' if self.has_iv else ''})"

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        if not self.random:
            return self._call("AES_ENCRYPT", value, self.fixed)
        if self.mode in CHAINED:
            return self._call("AES_ENCRYPT", f"CONCAT(RANDOM_BYTES({BLOCK}), {value})", f"X'{bytes(BLOCK).hex()}'")
        return f"CONCAT(@ciphercost_iv := RANDOM_BYTES({BLOCK}), {self._call('AES_ENCRYPT', value, '@ciphercost_iv')})"

    def open(self, column: str, length: int) -> str:
        return f"CAST({self._bytes(column)} AS CHAR({length}) CHARACTER SET utf8mb4)"

    def _bytes(self, column: str) -> str:
        if self.random:
            return self._call("AES_DECRYPT", f"SUBSTRING({column}, {BLOCK + 1})", f"LEFT({column}, {BLOCK})")
        return self._call("AES_DECRYPT", column, self.fixed)

    def hex(self, column: str) -> str:
        return f"HEX({column})"

    def raw(self, column: str) -> str:
        return f"HEX({self._bytes(column)})"

    def literal(self, stored: bytes) -> str:
        return f"X'{stored.hex()}'"


class _MariaDb(_MySql):
    """AES_ENCRYPT(text, key, iv, mode). MariaDB 10.11 accepts two arguments and knows ECB with 128 bits."""

    def _call(self, function: str, value: str, iv: str) -> str:
        key, bits = f"X'{self.key.hex()}'", len(self.key) * 8
        if self.mode == "ecb" and bits == 128:
            return f"{function}({value}, {key})"
        return f"{function}({value}, {key}, {iv if self.has_iv else 'NULL'}, 'aes-{bits}-{self.mode}')"


class _Firebird(_firebird.FunctionCodec):
    """ENCRYPT(… USING AES MODE m KEY k IV i).

    ECB and CBC need whole blocks and don't pad, so `value` is evaluated twice there.
    """

    iv_size = BLOCK

    def __init__(self, mode: str, key: bytes, iv: bytes, *, random: bool) -> None:
        super().__init__(key, iv, random=random)
        self.mode = mode
        self.padded = mode in ("ecb", "cbc")

    def stored(self, length: int) -> int:
        return _stored(length, random=self.random)

    def _call(self, function: str, value: str, iv: str) -> str:
        iv_clause = "" if self.mode == "ecb" else f" IV {iv}"
        return f"{function}({value} USING AES MODE {self.mode.upper()} KEY x'{self.key.hex()}'{iv_clause})"

    def _octets(self, value: str, length: int) -> str:
        """Pad with zeros to whole blocks if the mode needs them; a text contains no zeros."""
        octets = super()._octets(value, length)
        if not self.padded:
            return octets
        size = f"((OCTET_LENGTH(CAST({value} AS VARCHAR({length}))) / {BLOCK} + 1) * {BLOCK})"
        return f"RPAD({octets}, {size}, x'00')"

    def seal(self, value: str, length: int) -> str:
        if self.random and self.mode in CHAINED:
            return self._call("ENCRYPT", f"GEN_UUID() || {self._octets(value, length)}", f"x'{bytes(BLOCK).hex()}'")
        return super().seal(value, length)

    def _bytes(self, column: str) -> str:
        text = super()._bytes(column)
        return f"TRIM(TRAILING x'00' FROM {text})" if self.padded else text


MECHANISMS = tuple(Aes(mode, bits) for mode in sorted({m for modes in MODES.values() for m in modes}) for bits in BITS)
