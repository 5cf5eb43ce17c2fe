"""tls: TLS over a socket that somebody else reads, so that every byte of it can be recorded; and what in a record of bytes
is not TLS.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

RECORDS = (0x14, 0x15, 0x16, 0x17)
HEADER_BYTES = 5


class Tls:
    """One end of a TLS connection. `send`: sends bytes to the other end. `ready`: the handshake is complete."""

    def __init__(self, context: ssl.SSLContext, send: Callable[[bytes], object], *, server_side: bool) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._send = send
        self._waiting = b""
        self.ready = False

    def feed(self, data: bytes) -> bytes:
        """Take what has arrived, and return what it contains. Raises ssl.SSLError, an OSError, at the end."""
        self._incoming.write(data)
        content = b""
        try:
            if not self.ready:
                self._object.do_handshake()
                self.ready = True
                self.say(b"")
            while part := self._object.read(1 << 16):
                content += part
        except ssl.SSLWantReadError:
            pass
        finally:
            self._flush()
        return content

    def say(self, plain: bytes) -> None:
        """Send this, or keep it until the handshake is complete."""
        self._waiting += plain
        if self.ready and self._waiting:
            self._object.write(self._waiting)
            self._waiting = b""
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._send(self._outgoing.read())


def not_tls(data: bytes) -> bytes:
    """The bytes from the first one on that is in no TLS record. Pure."""
    at = 0
    while data[at : at + 1] and data[at] in RECORDS and data[at + 1 : at + 2] in (b"", b"\x03"):
        at += HEADER_BYTES + int.from_bytes(data[at + 3 : at + HEADER_BYTES], "big")
    return data[at:]
