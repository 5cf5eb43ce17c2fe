"""PostgreSQL's extension pgcrypto: encrypt_iv, with one mechanism per mode and key length."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.host.ports import LOOPBACK
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import _blind
from ciphercost.mechanisms._column import BLOCK, IV, Columns
from ciphercost.mechanisms.aes import BITS, PROTECTS
from ciphercost.model.errors import UsageError

MODES = ("cbc", "ecb", "cfb")
CFB_SINCE = 18
CIPHERS = {"cbc": "aes-cbc/pad:pkcs", "ecb": "aes-ecb/pad:pkcs", "cfb": "aes-cfb/pad:none"}
LOG_NO_STATEMENT = {"log_min_error_statement": "panic"}
"""Otherwise the log holds every failing statement with its key; the witness's trial with a wrong key does fail."""
EXTENSION = "CREATE EXTENSION IF NOT EXISTS pgcrypto SCHEMA public"
"""The schema `public` is not in the search path, so SQL names it with every function."""
EXTENSION_IS_THERE = (
    "DO $$ BEGIN IF to_regprocedure('public.gen_random_bytes(integer)') IS NULL THEN RAISE EXCEPTION 'this database has no "
    "pgcrypto in its schema public; an administrator can add it: CREATE EXTENSION pgcrypto SCHEMA public'; END IF; END $$"
)


class OfExtension(Columns):
    """What the mechanisms of the extension share."""

    engines = ("postgresql",)

    def server_settings(
        self,
        engine: Engine,  # noqa: ARG002
        factors: Mapping[str, str],  # noqa: ARG002
        secrets: Path,  # noqa: ARG002
        address: str = LOOPBACK,  # noqa: ARG002
    ) -> dict[str, str]:
        return LOG_NO_STATEMENT

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        return (EXTENSION if ours else EXTENSION_IS_THERE,)


class Bytea(Encrypting):
    """Stored values in a column of type bytea, which has no length."""

    def column(self, length: int) -> str:  # noqa: ARG002
        return "bytea"

    def hex(self, column: str) -> str:
        return f"encode({column}, 'hex')"

    def literal(self, stored: bytes) -> str:
        return f"'\\x{stored.hex()}'::bytea"


class PgCrypto(OfExtension):
    """One mode and key length."""

    def __init__(self, mode: str, bits: int) -> None:
        self.mode = mode
        self.name = f"pgcrypto-{mode}-{bits}"
        self.title = f"pgcrypto's AES functions, {mode.upper()} mode, {bits}-bit key"
        self.family = "pgcrypto-{cbc,ecb,cfb}-{128,192,256}"
        self.key_bytes = bits // 8
        self.cipher = f"AES-{bits}-{mode.upper()}"
        self.factors = (*(() if mode == "ecb" else (IV,)), *_blind.FACTORS)
        self.protects = PROTECTS["ecb" if mode == "ecb" else ""]

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        filled = super().check(factors)
        return _blind.check(self.name, filled, alike=filled.get("iv") != "random")

    def check_version(self, engine: Engine, version: str) -> None:  # noqa: ARG002
        number = re.match(r"\d{1,6}", version, re.ASCII)
        if self.mode == "cfb" and number and int(number[0]) < CFB_SINCE:
            raise UsageError(
                f"the pgcrypto of postgresql {version} has no CFB; version {CFB_SINCE} has. "
                f"Use postgresql@{CFB_SINCE}, or pgcrypto-cbc-{self.key_bytes * 8}"
            )

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:
        codec = _FunctionCodec(
            CIPHERS[self.mode], key, iv, has_iv=self.mode != "ecb", random=factors.get("iv") == "random"
        )
        return _blind.beside(codec, engine.dialect, factors, key)


class _FunctionCodec(Bytea):
    """`convert_to` is not immutable, so PostgreSQL encrypts even a constant again for each row.

    `gen_random_bytes` runs at every call.
    """

    # Without an index PostgreSQL would evaluate it for each row, because `convert_to` is only stable.
    once = "(SELECT {})"

    def __init__(self, cipher: str, key: bytes, iv: bytes, *, has_iv: bool, random: bool) -> None:
        self.cipher, self.random, self.alike = cipher, random, not random
        self.key = f"'\\x{key.hex()}'::bytea"
        self.fixed = f"'\\x{iv.hex()}'::bytea"
        self.has_iv = has_iv

    def _call(self, function: str, value: str, iv: str) -> str:
        if not self.has_iv:
            return f"public.{function}({value}, {self.key}, '{self.cipher}')"
        return f"public.{function}_iv({value}, {self.key}, {iv}, '{self.cipher}')"

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        text = f"convert_to({value}, 'UTF8')"
        if not self.random:
            return self._call("encrypt", text, self.fixed)
        return self._call("encrypt", f"public.gen_random_bytes({BLOCK}) || {text}", f"'\\x{bytes(BLOCK).hex()}'::bytea")

    def open(self, column: str, length: int) -> str:  # noqa: ARG002
        return f"convert_from({self._bytes(column)}, 'UTF8')"

    def _bytes(self, column: str) -> str:
        if self.random:
            head, tail = f"substring({column} FROM 1 FOR {BLOCK})", f"substring({column} FROM {BLOCK + 1})"
            return self._call("decrypt", tail, head)
        return self._call("decrypt", column, self.fixed)

    def raw(self, column: str) -> str:
        return f"encode({self._bytes(column)}, 'hex')"


MECHANISMS = tuple(PgCrypto(mode, bits) for mode in MODES for bits in BITS)
