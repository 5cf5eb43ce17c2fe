"""Firebird's ENCRYPT with the stream cipher ChaCha20."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.load.codec import Encrypting
from ciphercost.mechanisms import _blind, _firebird
from ciphercost.mechanisms._column import IV, Columns
from ciphercost.mechanisms.aes import PROTECTS

NONCE = 12
"""Bytes; Firebird accepts 8 or 12."""


class ChaCha20(Columns):
    name = "chacha20"
    title = "Firebird's ENCRYPT with ChaCha20, 256-bit key"
    engines = ("firebird",)
    key_bytes = 32
    cipher = "ChaCha20"
    factors = (IV, *_blind.FACTORS)
    protects = PROTECTS[""]

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        return (_firebird.sealed("CHACHA20", NONCE),) if factors["iv"] == "random" else ()

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        filled = super().check(factors)
        return _blind.check(self.name, filled, alike=filled["iv"] != "random")

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:
        codec = _FunctionCodec(key, iv[:NONCE], random=factors["iv"] == "random")
        return _blind.beside(codec, engine.dialect, factors, key)


class _FunctionCodec(_firebird.FunctionCodec):
    iv_size = NONCE

    def _call(self, function: str, value: str, iv: str) -> str:
        return f"{function}({value} USING CHACHA20 KEY x'{self.key.hex()}' IV {iv})"


MECHANISM = ChaCha20()
