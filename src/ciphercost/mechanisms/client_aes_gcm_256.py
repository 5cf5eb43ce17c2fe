"""Encryption by the application: AES-256-GCM in the agent. The server receives bytes and no key.

PROTOCOL.md ("Sealed values") defines the envelope. The agent seals the values that a workload binds and opens those in
its rows; this file seals literals (of the load, of the canary). It refuses whatever a server could do only with the
key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ciphercost.engines import Engine
from ciphercost.load.codec import Blind, Encrypting, Impossible
from ciphercost.load.script_parts import BLIND, OPEN, SEAL
from ciphercost.mechanisms import _blind
from ciphercost.mechanisms._column import Columns
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret

MARK = b"\xc1\x01"
NONCE = 12
TAG = 16
OVERHEAD = len(MARK) + NONCE + TAG
TYPES = {
    "postgresql": "bytea",
    "mysql": "varbinary({})",
    "firebird": "varchar({}) character set octets",
    "sqlite": "blob",
}
"""Column type by dialect; the placeholder is its size in bytes."""
HEX = {"postgresql": "encode({}, 'hex')", "firebird": "HEX_ENCODE({})", "sqlite": "NULLIF(HEX({}), '')"}
"""SQLite's HEX of NULL is the empty text."""
_VARIABLE = re.compile(r":[A-Za-z_]\w*")
_COLUMN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
_LITERAL = re.compile(r"(E?)'((?:[^']|'')*)'", re.IGNORECASE)
INSTEAD = "use --workload hospital-client, or a mechanism that uses the server's own functions"


def seal(key: bytes, text: bytes) -> bytes:
    """Return an envelope with a new nonce."""
    nonce = os.urandom(NONCE)
    return MARK + nonce + AESGCM(key).encrypt(nonce, text, None)


def opened(key: bytes, stored: bytes) -> bytes:
    """Return the content of an envelope. Raises AgentError with the agent's own code and nearly its words."""
    if not stored.startswith(MARK) or len(stored) < OVERHEAD:
        raise AgentError("a sealed value does not open: it is not an envelope", "statement")
    try:
        return AESGCM(key).decrypt(stored[len(MARK) :][:NONCE], stored[len(MARK) + NONCE :], None)
    except InvalidTag:
        text = "a sealed value does not open: it was changed, or sealed with another key"
        raise AgentError(text, "statement") from None


class ClientAesGcm256(Columns):
    name = "client-aes-gcm-256"
    title = "encryption by the application (the agent): AES in Galois/Counter mode, 256-bit key"
    engines = ("postgresql", "mysql", "mariadb", "firebird", "sqlite")
    key_bytes = 32
    cipher = "AES-256-GCM"
    workload = "hospital-client"
    factors = _blind.FACTORS
    protects = (
        "values everywhere outside the application: on the network, in the server's memory, tables, logs and backups, even from "
        "its administrators; a changed value is detected, swapped values are not. The server can't search, sort or compute"
    )

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        return _blind.check(self.name, super().check(factors), alike=False)

    def codec(self, engine: Engine, factors: Mapping[str, str], key: bytes, iv: bytes) -> Encrypting:  # noqa: ARG002
        """Ignore `iv`: each value has a nonce of its own."""
        codec = _Sealed(engine.dialect, key)
        if factors.get("search") == _blind.INDEX:
            codec.blind = _Entries(codec, int(factors["bits"]))
            codec.agent_blind_key = Secret(_blind.key_of(key).hex())
        return codec

    def implementation(self, engine: Engine, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        return {"cipher": self.cipher, "implementation": "by the client", "server_library": ""}


class _Sealed(Encrypting):
    client_side = True

    def __init__(self, dialect: str, key: bytes) -> None:
        self.dialect, self.key, self.agent_key = dialect, key, Secret(key.hex())

    def column(self, length: int) -> str:
        return TYPES[self.dialect].format(4 * length + OVERHEAD)

    def seal(self, value: str, length: int) -> str:  # noqa: ARG002
        if _VARIABLE.fullmatch(value):
            return SEAL + value
        if match := _LITERAL.fullmatch(value):
            text = match[2].replace("''", "'")
            if match[1] or self.dialect == "mysql":
                text = re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
            return self.literal(seal(self.key, text.encode()))
        raise Impossible(
            f"an application can seal a variable or a literal, but nothing that the server computes; {INSTEAD}"
        )

    def seal_text(self, text: str, literal: str, length: int) -> str:  # noqa: ARG002
        return self.literal(seal(self.key, text.encode()))

    def open(self, column: str, length: int) -> str:  # noqa: ARG002
        if not _COLUMN.fullmatch(column):
            raise Impossible(
                f"an application can open a column of a row it receives, but nothing that the server computes; {INSTEAD}"
            )
        return OPEN + column

    def match(self, column: str, value: str, length: int) -> str:  # noqa: ARG002
        raise Impossible(
            f"the server has no key and can't compare sealed values, each of which is stored differently; {INSTEAD}"
        )

    def like(self, column: str, value: str, length: int) -> str:
        return self.match(column, value, length)

    def read(self, value: str | None) -> str | None:
        if not value or not value.lower().startswith(MARK.hex()):
            return value
        return self.opened(bytes.fromhex(value)).decode(errors="replace")

    def hex(self, column: str) -> str:
        return HEX.get(self.dialect, "HEX({})").format(column)

    def raw(self, column: str) -> str:
        """Return the stored bytes: the server has no key."""
        return self.hex(column)

    def literal(self, stored: bytes) -> str:
        return f"'\\x{stored.hex()}'::bytea" if self.dialect == "postgresql" else f"x'{stored.hex()}'"

    def opened(self, raw: bytes) -> bytes:
        return opened(self.key, raw)


class _Entries(Blind):
    """The agent computes the entries, as the server has no key."""

    client_side = True

    def __init__(self, codec: _Sealed, bits: int) -> None:
        self.codec, self.bits = codec, bits
        self.column = TYPES[codec.dialect].format(bits // 8)

    def of(self, value: str, length: int) -> str:  # noqa: ARG002
        return f"{BLIND}{self.bits}*/{value}"

    def of_text(self, text: str, literal: str, length: int) -> str:  # noqa: ARG002
        return self.codec.literal(_blind.entry(self.codec.key, text.encode(), self.bits))


MECHANISM = ClientAesGcm256()
