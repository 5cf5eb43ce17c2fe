"""_firebird: what its ciphers have in common: their SQL, and a function that draws an IV of its own for each value. No mechanism itself.

Firebird evaluates an expression wherever it stands, so one that is to be IV and stored both needs a variable: a function in PSQL, of
which each call is a call (none is deterministic unless it says so). GEN_UUID() is random in all but 6 of its 128 bits.
"""

from __future__ import annotations

from abc import abstractmethod

from ciphercost.load.codec import Encrypting
from ciphercost.model.errors import UsageError

LONGEST = 4080
"""Bytes of the longest text that the function takes: one of 32,000 would cost seven times the time, however short the text is."""
FUNCTION = "CIPHERCOST_SEALED"


def octets(value: str, length: int) -> str:
    """SQL of the bytes of a text of up to `length` letters."""
    return f"CAST(CAST({value} AS VARCHAR({length})) AS VARCHAR({4 * length}) CHARACTER SET OCTETS)"


def sealed(cipher: str, size: int) -> str:
    """The statement that makes the function: a text's bytes and a key -> an IV of `size` bytes and the ciphertext."""
    # Of a UUID's 16 bytes the first 6 and the last 6 are random in every bit.
    iv = "U" if size == 16 else "SUBSTRING(U FROM 1 FOR 6) || SUBSTRING(U FROM 11 FOR 6)"
    return (
        f"CREATE OR ALTER FUNCTION {FUNCTION} (T VARCHAR({LONGEST}) CHARACTER SET OCTETS, K VARCHAR(32) CHARACTER SET OCTETS) "
        f"RETURNS VARCHAR({LONGEST + size}) CHARACTER SET OCTETS AS "
        f"DECLARE U CHAR(16) CHARACTER SET OCTETS; DECLARE I VARCHAR({size}) CHARACTER SET OCTETS; "
        f"BEGIN U = GEN_UUID(); I = {iv}; RETURN I || ENCRYPT(T USING {cipher} KEY K IV I); END"
    )


def call(text: str, key: bytes, length: int) -> str:
    """SQL of the bytes of a text of up to `length` letters, sealed by that function. Raises UsageError."""
    if 4 * length > LONGEST:
        raise UsageError(
            f"Firebird: a secret of {length} letters; with this cipher and iv=random {LONGEST // 4} are the most. Use aes-cbc-256"
        )
    return f"{FUNCTION}({text}, x'{key.hex()}')"


class Spelled(Encrypting):
    """ENCRYPT(… USING cipher KEY k IV i): octets are stored, and before them their IV where each value has its own."""

    # Its LIKE has no letter that escapes another unless a statement names one.
    no_escape = ""
    iv_size: int
    """Bytes."""

    def __init__(self, key: bytes, iv: bytes, *, random: bool) -> None:
        self.key, self.random, self.alike = key, random, not random
        self.fixed = f"x'{iv.hex()}'"

    @abstractmethod
    def _call(self, function: str, value: str, iv: str) -> str:
        """ENCRYPT or DECRYPT of octets."""

    def stored(self, length: int) -> int:
        """Bytes of the longest value: UTF-8's up to four a letter, and the IV."""
        return 4 * length + (self.iv_size if self.random else 0)

    def column(self, length: int) -> str:
        return f"varchar({self.stored(length)}) character set octets"

    def _octets(self, value: str, length: int) -> str:
        return octets(value, length)

    def seal(self, value: str, length: int) -> str:
        text = self._octets(value, length)
        return call(text, self.key, length) if self.random else self._call("ENCRYPT", text, self.fixed)

    def open(self, column: str, length: int) -> str:
        return f"CAST({self._bytes(column)} AS VARCHAR({length}) CHARACTER SET UTF8)"

    def _bytes(self, column: str) -> str:
        if self.random:
            head, tail = (
                f"SUBSTRING({column} FROM 1 FOR {self.iv_size})",
                f"SUBSTRING({column} FROM {self.iv_size + 1})",
            )
            return self._call("DECRYPT", tail, head)
        return self._call("DECRYPT", column, self.fixed)

    def hex(self, column: str) -> str:
        return f"HEX_ENCODE({column})"

    def raw(self, column: str) -> str:
        return f"HEX_ENCODE({self._bytes(column)})"

    def literal(self, stored: bytes) -> str:
        return f"x'{stored.hex()}'"
