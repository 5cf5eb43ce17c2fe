"""_firebird: what its ciphers have in common: a text's bytes, and a function that draws an IV of its own for each value. No mechanism itself.

Firebird evaluates an expression wherever it stands, so one that is to be IV and stored both needs a variable: a function in PSQL, of
which each call is a call (none is deterministic unless it says so). GEN_UUID() is random in all but 6 of its 128 bits.
"""

from __future__ import annotations

from ciphercost.errors import UsageError

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
