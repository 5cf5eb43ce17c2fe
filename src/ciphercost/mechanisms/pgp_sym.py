"""pgcrypto's pgp_sym_encrypt: one OpenPGP message per value, with a key derived from a passphrase each time."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import Factor, _blind
from ciphercost.mechanisms.pgcrypto import Bytea, OfExtension
from ciphercost.model.errors import UsageError

KDF = {"iterated": "3", "salted": "1", "simple": "0"}
"""OpenPGP's string-to-key specifiers (RFC 4880, 3.7.1), as pgcrypto's `s2k-mode`."""
ITERATIONS = (1024, 65011712)
"""pgcrypto's limits of `s2k-count`."""


class PgpSym(OfExtension):
    name = "pgp-sym"
    title = "pgcrypto's pgp_sym_encrypt: an OpenPGP message for each value"
    key_bytes = 32
    protects = (
        "values in tables, indexes and backups, from anyone without the passphrase; not from anyone who sees the statements, "
        "which contain it; a changed value is detected (OpenPGP's MDC)"
    )
    factors = (
        Factor("cipher", ("aes256", "aes192", "aes128"), "the message's cipher", acts="operation"),
        Factor(
            "kdf",
            tuple(KDF),
            "how each value's key is derived from the passphrase (pgcrypto's s2k-mode)",
            acts="operation",
        ),
        Factor(
            "kdf_iter",
            (),
            "iterated: number of hashed bytes, 1024 to 65011712 (s2k-count); empty: pgcrypto draws it, 65536 to 253952",
            acts="operation",
        ),
        Factor("mdc", ("on", "off"), "whether a changed message is detected", acts="operation"),
        *_blind.FACTORS,
    )

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        filled = super().check(factors)
        count = filled["kdf_iter"]
        if count and filled["kdf"] != "iterated":
            raise UsageError(f"pgp-sym: kdf_iter needs kdf=iterated, not {filled['kdf']}: leave one of them out")
        if count and not (re.fullmatch(r"[0-9]{4,8}", count) and ITERATIONS[0] <= int(count) <= ITERATIONS[1]):
            raise UsageError(f"pgp-sym: kdf_iter '{count}': write a number from {ITERATIONS[0]} to {ITERATIONS[1]}")
        return _blind.check(self.name, filled, alike=False)

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:  # noqa: ARG002
        options = f"cipher-algo={factors['cipher']}, compress-algo=0, s2k-mode={KDF[factors['kdf']]}"
        if factors["kdf_iter"]:
            options += f", s2k-count={factors['kdf_iter']}"
        if factors["mdc"] == "off":
            options += ", disable-mdc=1"
        return _blind.beside(_Message(key.hex(), options), engine.dialect, factors, key)

    def implementation(self, engine: Engine, factors: Mapping[str, str]) -> dict[str, str]:
        return {
            **super().implementation(engine, factors),
            "cipher": f"{factors['cipher'].upper()} CFB (OpenPGP)",
            "kdf": factors["kdf"],
        }


class _Message(Bytea):
    """Session key, IV and salt are random in every message, so equal values are stored differently."""

    def __init__(self, passphrase: str, options: str) -> None:
        self.passphrase, self.options = passphrase, options

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        return f"public.pgp_sym_encrypt({value}, '{self.passphrase}', '{self.options}')"

    def open(self, column: str, length: int) -> str:  # noqa: ARG002
        return f"public.pgp_sym_decrypt({column}, '{self.passphrase}')"

    def raw(self, column: str) -> str:
        return f"encode(public.pgp_sym_decrypt_bytea({column}, '{self.passphrase}'), 'hex')"


MECHANISM = PgpSym()
