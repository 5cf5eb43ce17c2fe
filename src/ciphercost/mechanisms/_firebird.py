"""What Firebird's ciphers share: their SQL, and a function that draws a separate IV for each value. Not a mechanism.

Firebird evaluates an expression at each place where it stands. An IV that is both used and stored therefore needs a
variable, so a PSQL function; Firebird runs it at every call because it is not declared deterministic. GEN_UUID() is
random in all but 6 of its 128 bits.
"""

from __future__ import annotations

from abc import abstractmethod

from ciphercost.load.codec import Encrypting
from ciphercost.model.errors import UsageError

LONGEST = 4080
"""Longest text, in bytes, that the function accepts.

With 32,000 each call would take seven times as long, even for a short text.
"""
FUNCTION = "CIPHERCOST_SEALED"


def octets(value: str, length: int) -> str:
    """Return SQL for the bytes of a text of up to `length` characters."""
    return f"CAST(CAST({value} AS VARCHAR({length})) AS VARCHAR({4 * length}) CHARACTER SET OCTETS)"


def sealed(cipher: str, size: int) -> str:
    """Return the statement that creates the function: (text's bytes, key) -> IV of `size` bytes, ciphertext."""
    # In a UUID's 16 bytes the first 6 and the last 6 are fully random.
    iv = "U" if size == 16 else "SUBSTRING(U FROM 1 FOR 6) || SUBSTRING(U FROM 11 FOR 6)"
    return (
        f"CREATE OR ALTER FUNCTION {FUNCTION} (T VARCHAR({LONGEST}) CHARACTER SET OCTETS, K VARCHAR(32) CHARACTER SET OCTETS) "
        f"RETURNS VARCHAR({LONGEST + size}) CHARACTER SET OCTETS AS "
        f"DECLARE U CHAR(16) CHARACTER SET OCTETS; DECLARE I VARCHAR({size}) CHARACTER SET OCTETS; "
        f"BEGIN U = GEN_UUID(); I = {iv}; RETURN I || ENCRYPT(T USING {cipher} KEY K IV I); END"
    )


def call(text: str, key: bytes, length: int) -> str:
    """Return SQL that encrypts a text of up to `length` characters with that function.

    Raises UsageError if it is too long.
    """
    if 4 * length > LONGEST:
        raise UsageError(
            f"Firebird: secret column of {length} characters; with this cipher and iv=random the limit is {LONGEST // 4}. Use aes-cbc-256"
        )
    return f"{FUNCTION}({text}, x'{key.hex()}')"


class FunctionCodec(Encrypting):
    """ENCRYPT(… USING cipher KEY k IV i). Stores octets; a random IV is stored before them."""

    # DECRYPT refuses an IV that is NULL.
    opens_null = False
    # Firebird's LIKE has no escape character unless a statement names one.
    no_escape = ""
    iv_size: int
    """Bytes of an IV."""

    def __init__(self, key: bytes, iv: bytes, *, random: bool) -> None:
        self.key, self.random, self.alike = key, random, not random
        self.fixed = f"x'{iv.hex()}'"

    @abstractmethod
    def _call(self, function: str, value: str, iv: str) -> str:
        """Return SQL that calls ENCRYPT or DECRYPT on octets."""

    def stored(self, length: int) -> int:
        """Return the bytes of the longest stored value: up to four UTF-8 bytes per character, and the IV."""
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
