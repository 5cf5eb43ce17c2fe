"""wire_streams: what was captured of each TCP connection, and whether its bytes are TLS. Pure.

A relay or a packet capture adds bytes as they come. Each connection is judged by itself, because one that is not encrypted must not
hide among others.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import cache

import msgspec

from ciphercost.host.relay import HANDSHAKE_BEGINS

KEEP = 1 << 20
"""Bytes kept of each direction of a connection. A canary is looked for in all of them."""
MOST_BEFORE = 8192
"""Bytes that a protocol may send in a direction before TLS begins, to agree on it (STARTTLS)."""
VERSIONS = {0x0300: "SSLv3", 0x0301: "TLSv1", 0x0302: "TLSv1.1", 0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}
ACCEPTED = ("TLSv1.2", "TLSv1.3")
SUPPORTED_VERSIONS = 43
"""The extension in which TLS 1.3 says its version (RFC 8446, 4.2.1)."""
HANDSHAKE, APPLICATION_DATA = 0x16, 0x17
RECORDS = frozenset({0x14, 0x15, HANDSHAKE, APPLICATION_DATA})


class Direction:
    """One direction of a connection."""

    def __init__(self, canary: bytes = b"") -> None:
        self.kept = bytearray()
        self.size = 0
        self.canaries = 0
        self._canary, self._end = canary, b""

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.kept += data[: max(0, KEEP - len(self.kept))]
        if self._canary:
            joined = self._end + data
            self.canaries += joined.count(self._canary)
            self._end = joined[-(len(self._canary) - 1) :] if len(self._canary) > 1 else b""


class Stream:
    """One connection."""

    def __init__(self, canary: bytes = b"") -> None:
        self.to_server, self.to_client = Direction(canary), Direction(canary)

    def add(self, data: bytes, *, by_client: bool) -> None:
        (self.to_server if by_client else self.to_client).add(data)

    @property
    def size(self) -> int:
        return self.to_server.size + self.to_client.size

    @property
    def canaries(self) -> int:
        return self.to_server.canaries + self.to_client.canaries


class Records(msgspec.Struct, frozen=True):
    """The TLS records of a direction."""

    before: int
    """Bytes before the first."""
    data: int
    """Records of application data."""
    whole: bool
    """Whether all bytes from the first on are records."""


class Seen(msgspec.Struct, frozen=True):
    """What a connection's bytes are."""

    encrypted: bool
    words: str
    """Why not, or the protocol and the cipher."""
    protocol: str = ""
    cipher: str = ""


def records(data: bytes) -> Records | None:
    """Walk the TLS records from the first handshake record on; None: there is none. A last record may be cut."""
    best: Records | None = None
    for hello in HANDSHAKE_BEGINS.finditer(data[: MOST_BEFORE + 16]):
        at, count = hello.start(), 0
        while at + 5 <= len(data) and data[at] in RECORDS and data[at + 1] == 3:
            count += data[at] == APPLICATION_DATA
            at += 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        rest = data[at : at + 2]
        whole = at >= len(data) or (len(data) - at < 5 and (not rest or rest[0] in RECORDS))
        found = Records(hello.start(), count, whole)
        if whole:
            return found
        if best is None or found.data > best.data:  # random bytes of a greeting may look like a handshake
            best = found
    return best


def server_hello(data: bytes) -> tuple[str, str]:
    """(protocol, cipher) that a server chose, from the bytes that begin with its first record; ('', '') if they are none."""
    at = 5
    if len(data) < at + 44 or data[0] != HANDSHAKE or data[at] != 2:
        return "", ""
    end = at + 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    version = int.from_bytes(data[at + 4 : at + 6], "big")
    at += 4 + 2 + 32
    at += 1 + data[at]
    cipher = int.from_bytes(data[at : at + 2], "big")
    at += 3 + 2
    while at + 4 <= min(end, len(data)):
        kind, size = int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 2 : at + 4], "big")
        if kind == SUPPORTED_VERSIONS and size == 2:
            version = int.from_bytes(data[at + 4 : at + 6], "big")
        at += 4 + size
    return VERSIONS.get(version, f"version {version:#06x}"), _ciphers().get(cipher, f"cipher {cipher:#06x}")


@cache
def _ciphers() -> dict[int, str]:
    """OpenSSL's names of the suites that it knows here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    return {int(cipher["id"]) & 0xFFFF: str(cipher["name"]) for cipher in context.get_ciphers()}


def seen(stream: Stream) -> Seen:
    """Whether a connection is TLS from its handshake to its end, in both directions."""
    sent, received = records(bytes(stream.to_server.kept)), records(bytes(stream.to_client.kept))
    if sent is None or received is None:
        return Seen(False, f"{stream.size:,} bytes without a TLS handshake")
    protocol, cipher = server_hello(bytes(stream.to_client.kept[received.before :]))
    named = f"{protocol} {cipher}".strip()
    if not protocol:
        return Seen(False, "a TLS handshake that the server did not answer")
    if not sent.whole or not received.whole:
        return Seen(False, f"bytes that are no TLS records follow the handshake ({named})", protocol, cipher)
    if not sent.data or not received.data:
        return Seen(False, f"a TLS handshake without data ({named})", protocol, cipher)
    if protocol not in ACCEPTED:
        return Seen(False, f"{protocol}, which is too old; accepted: {', '.join(ACCEPTED)}", protocol, cipher)
    return Seen(True, named, protocol, cipher)


def with_data(streams: Iterable[Stream]) -> list[Stream]:
    """Those that carried bytes: tools try whether a port is open, too."""
    return [stream for stream in streams if stream.size]
