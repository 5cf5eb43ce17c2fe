"""rogue_servers: servers that block a client: they send a byte now and then, or without end, and never finish an
answer.

Each byte restarts the timeout of a single read, so only a deadline for the whole answer ends the wait.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable

from listening import Listener

Talk = Callable[[socket.socket], None]
PAUSE = 0.05
"""Seconds between two bytes of a dripping server: far below every timeout of a read."""


class RogueServer(Listener):
    """Runs `talk` for each connection. `met`: how many there were."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.met = 0
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        self.met += 1
        self._talk(connection)


# ── ways to hold a client ─────────────────────────────────────────────────────────────────────────────────────────────


def drip(connection: socket.socket, begin: bytes = b"", filler: bytes = b"x") -> None:
    """Send `begin` and then the filler, one byte after the other, without end."""
    for byte in itertools.chain(begin, itertools.cycle(filler)):
        connection.sendall(bytes([byte]))
        time.sleep(PAUSE)


def flood(connection: socket.socket, words: bytes, begin: bytes = b"") -> None:
    """Send the same words without end, as fast as they are read."""
    connection.sendall(begin)
    many = words * max(1, 65536 // len(words))
    while True:
        connection.sendall(many)


def dripping(begin: bytes = b"", filler: bytes = b"x", *, after: int = 0) -> Talk:
    """Drip once this many bytes have come from the client (0: at once)."""

    def talk(connection: socket.socket) -> None:
        if after:
            connection.recv(1 << 16)
        drip(connection, begin, filler)

    return talk


def flooding(words: bytes, begin: bytes = b"", *, after: int = 0) -> Talk:
    def talk(connection: socket.socket) -> None:
        if after:
            connection.recv(1 << 16)
        flood(connection, words, begin)

    return talk


def silent(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


# ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────────────


def message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!I", len(body) + 4) + body


NOTICE = message(b"N", b"SNOTICE\0C00000\0Mhello\0\0")
PARAMETERS = b"".join(
    message(b"S", f"{name}\0{value}\0".encode())
    for name, value in {
        "server_version": "17.2",
        "server_encoding": "UTF8",
        "client_encoding": "UTF8",
        "DateStyle": "ISO, MDY",
        "TimeZone": "UTC",
        "integer_datetimes": "on",
        "standard_conforming_strings": "on",
    }.items()
)
READY = message(b"Z", b"I")
LET_IN = message(b"R", b"\0\0\0\0") + PARAMETERS + message(b"K", b"\0\0\0\1\0\0\0\2") + READY
HANDSHAKE = b"S" + b"\x16\x03\x03\x40\x00" + b"\x02\x00\x3f\xfc"
"""Yes to TLS, and the beginning of a long ServerHello."""
ROW = message(b"D", b"\0\1" + struct.pack("!I", 1) + b"1")
COLUMNS = message(b"T", b"\0\1?column?\0" + b"\0" * 18)
LONG_ROW = COLUMNS + b"D" + struct.pack("!I", 60_000) + b"\0\1" + struct.pack("!I", 59_994)


def postgres(hold: Talk, word: bytes) -> Talk:
    """Let everybody log in and answer every statement except one that contains this word: its answer blocks the client."""

    def talk(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(LET_IN)
        held, flight = b"", b""
        while data := connection.recv(1 << 16):
            held += data
            while len(held) >= 5 and len(held) >= (size := 1 + int.from_bytes(held[1:5], "big")):
                tag, flight, held = held[:1], flight + held[:size], held[size:]
                if tag not in (b"S", b"Q"):
                    continue
                # Preparing is answered; execution blocks.
                if (word or b"E\0\0\0") in flight:
                    hold(connection)
                answers = [message(b"1")] * flight.count(b"P\0\0\0") or [message(b"C", b"SET\0")]
                if b"B\0\0\0" in flight:
                    answers = [message(b"1"), message(b"2"), message(b"n"), message(b"C", b"SET\0")]
                connection.sendall(b"".join(answers) + READY)
                flight = b""

    return talk


# ── MySQL ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def mysql_greeting(version: bytes = b"8.4.3") -> bytes:
    capabilities = struct.pack("<I", 0xFFFFFFFF & ~(1 << 5))
    body = b"\x0a" + version + b"\0" + b"\1\0\0\0" + b"a" * 8 + b"\0" + capabilities[:2] + b"\xff\x02\0"
    return packet(0, body + capabilities[2:] + b"\x15" + b"\0" * 10 + b"b" * 12 + b"\0" + b"caching_sha2_password\0")


def mysql(hold: Talk) -> Talk:
    """Greet like a server, and block whoever logs in."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(mysql_greeting())
        connection.recv(1 << 16)
        hold(connection)

    return talk


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


SETTINGS = frame(4, 0, 0)
HEAD = b"HTTP/1.1 200 OK\r\nServer: rogue\r\n"


def http(hold: Talk) -> Talk:
    """Block whoever sends a request."""

    def talk(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        hold(connection)

    return talk


def http2(hold: Talk) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(SETTINGS)
        held = b""
        while not _asks(held):
            if not (data := connection.recv(1 << 16)):
                return
            held += data
        hold(connection)

    return talk


def _asks(held: bytes) -> bool:
    """Whether a request is among a client's frames, which follow the same 24 bytes for all clients."""
    at = 24
    while len(held) >= at + 9:
        if held[at + 3] == 1:
            return True
        at += 9 + int.from_bytes(held[at : at + 3], "big")
    return False
