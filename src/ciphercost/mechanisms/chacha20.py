"""chacha20: Firebird's ENCRYPT with the stream cipher ChaCha20."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.mechanisms import _firebird
from ciphercost.mechanisms._column import IV, Codec, Columns
from ciphercost.mechanisms.aes import PROTECTS

NONCE = 12
"""Bytes; Firebird takes 8 or 12."""


class ChaCha20(Columns):
    name = "chacha20"
    title = "Firebird's ENCRYPT with ChaCha20, 256-bit key"
    engines = ("firebird",)
    key_bytes = 32
    cipher = "ChaCha20"
    factors = (IV,)
    protects = PROTECTS[""]

    def prepare(self, engine: Engine, factors: Mapping[str, str], *, ours: bool = True) -> tuple[str, ...]:  # noqa: ARG002
        return (_firebird.sealed("CHACHA20", NONCE),) if factors["iv"] == "random" else ()

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Codec:  # noqa: ARG002
        return _Spelled(key, iv[:NONCE], random=factors["iv"] == "random")


class _Spelled(Codec):
    def __init__(self, key: bytes, iv: bytes, *, random: bool) -> None:
        self.key, self.fixed, self.random = key, iv.hex(), random

    def column(self, length: int) -> str:
        return f"varchar({4 * length + (NONCE if self.random else 0)}) character set octets"

    def _call(self, function: str, value: str, iv: str) -> str:
        return f"{function}({value} USING CHACHA20 KEY x'{self.key.hex()}' IV {iv})"

    def seal(self, value: str, length: int) -> str:
        octets = _firebird.octets(value, length)
        return (
            _firebird.call(octets, self.key, length)
            if self.random
            else self._call("ENCRYPT", octets, f"x'{self.fixed}'")
        )

    def open(self, column: str, length: int) -> str:
        return f"CAST({self._bytes(column)} AS VARCHAR({length}) CHARACTER SET UTF8)"

    def _bytes(self, column: str) -> str:
        if self.random:
            return self._call(
                "DECRYPT", f"SUBSTRING({column} FROM {NONCE + 1})", f"SUBSTRING({column} FROM 1 FOR {NONCE})"
            )
        return self._call("DECRYPT", column, f"x'{self.fixed}'")

    def match(self, column: str, value: str, length: int) -> str:
        return super().match(column, value, length) if self.random else f"{column} = {self.seal(value, length)}"

    def hex(self, column: str) -> str:
        return f"HEX_ENCODE({column})"

    def raw(self, column: str) -> str:
        return f"HEX_ENCODE({self._bytes(column)})"

    def literal(self, stored: bytes) -> str:
        return f"x'{stored.hex()}'"


MECHANISM = ChaCha20()
