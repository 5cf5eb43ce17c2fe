"""postgres: an impostor of PostgreSQL. It relays the login, takes channel binding out of it, skips it, or asks for the password."""

from __future__ import annotations

import functools
import socket
import struct
from typing import ClassVar

from ciphercost.host.impostor.conversation import HANDSHAKE, Conversation, Did, Ended, Proof, Receive, Way, receive

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
MOST_BYTES = 1 << 16
"""Largest message of a login."""
OK, CLEARTEXT, MD5, SASL, SASL_CONTINUE = 0, 3, 5, 10, 11
"""Kinds of AuthenticationX."""
TERMINATE = b"X"
PARAMETERS = {
    "server_version": "15.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}
"""What a server reports after the login, as far as a client needs it."""


class Postgres(Conversation):
    ways: ClassVar[tuple[Way, ...]] = ("relayed", "unbound", "let in", "asked", "no TLS")
    proof: ClassVar[Proof] = "channel binding"
    alpn: ClassVar[tuple[str, ...]] = ("postgresql",)

    def greet(self) -> bool:
        if self.client.recv(1, socket.MSG_PEEK) == HANDSHAKE:
            return True  # sslnegotiation=direct
        while (code := begins_with(head := self.receive(8))) in (GSS_REQUEST, SSL_REQUEST):
            if code == SSL_REQUEST and self.way != "no TLS":
                self.send(b"S")
                return True
            self.send(b"N")
        if head[:1] == HANDSHAKE:
            raise Ended("the client begins TLS all the same")  # postgres.js does
        self._start = head
        return False

    _start = b""
    """The beginning of an unencrypted login, which was read to find out what it is."""

    def log_in(self) -> Did:
        head = self._start or self.receive(8)
        start = head + self.receive(_size(head[:4]) - 4)
        if self.way == "asked":
            self.send(_authentication(CLEARTEXT))
            self._answer()
            return "password"
        if self.way in ("let in", "no TLS"):
            self.send(_authentication(OK))
            for name, value in PARAMETERS.items():
                self.send(_message(b"S", f"{name}\0{value}\0".encode()))
            self.send(_message(b"K", bytes(8)) + _message(b"Z", b"I"))
            return self._what_next()
        return self._relay(start)

    def _relay(self, start: bytes) -> Did:
        server = self.connect()
        server.sendall(struct.pack(">ii", 8, SSL_REQUEST))
        if receive(server, 1) == b"S":
            server = self.encrypted(server)
        server.sendall(start)
        while True:
            kind, body = read(functools.partial(receive, server))
            code = int.from_bytes(body[:4], "big") if kind == b"R" else OK
            if code == SASL and self.way == "unbound":
                body = without_binding(body)
            self.send(_message(kind, body))
            if kind == b"E":
                raise Ended("the server refused the login")
            if kind == b"Z":
                return self._what_next()
            if code == CLEARTEXT:
                self._answer()
                return "password"
            if code in (MD5, SASL, SASL_CONTINUE):
                server.sendall(self._answer())

    def _answer(self) -> bytes:
        """The client's answer to a request of the login. Raises Ended if it refuses."""
        kind, body = read(self.receive)
        if kind != b"p":
            raise Ended("the client refused")
        return _message(kind, body)

    def _what_next(self) -> Did:
        kind = self.receive(1)
        return "ended" if kind == TERMINATE else "statement"


def begins_with(head: bytes) -> int:
    """The code of a connection's first message: a request for encryption, or a version of the protocol. Pure."""
    return int.from_bytes(head[4:8], "big")


def without_binding(body: bytes) -> bytes:
    """AuthenticationSASL without the mechanisms that bind the login to the server's certificate. Pure."""
    names = [name for name in body[4:].split(b"\0") if name and not name.endswith(b"-PLUS")]
    return body[:4] + b"".join(name + b"\0" for name in names) + b"\0"


def read(receive: Receive) -> tuple[bytes, bytes]:
    """The type and the body of the next message. Raises Ended, OSError."""
    head = receive(5)
    return head[:1], receive(_size(head[1:]))


def _size(length: bytes) -> int:
    size = int.from_bytes(length, "big") - 4
    if not 0 <= size <= MOST_BYTES:
        raise OSError(f"a message of {size} bytes")
    return size


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


def _authentication(code: int) -> bytes:
    return _message(b"R", struct.pack(">i", code))
