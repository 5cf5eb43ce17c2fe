"""Reads the greeting of a MySQL or MariaDB server: its version, or why it refuses the connection. No login needed."""

from __future__ import annotations

import contextlib
import socket

import msgspec

from ciphercost.host.deadlines import receive

SECONDS = 5.0
"""For the whole greeting, however it arrives."""
MOST_BYTES = 4096
"""Limit for the packet, which is below 200 bytes, or holds an error message."""

CLIENT_SSL = 0x800
"""The capability of a server that offers TLS."""


class Greeting(msgspec.Struct, frozen=True):
    version: str = ""
    """As the server states it; empty if nothing there speaks this protocol."""
    refusal: str = ""
    tls: bool = False
    """Whether the server offers TLS."""

    @property
    def mariadb(self) -> bool:
        return "mariadb" in self.version.lower()


def greeting(host: str, port: int) -> Greeting:
    """Connect, read the server's first packet, disconnect. Never raises."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=SECONDS) as connection:
        return of_connection(connection)
    return Greeting()


def of_connection(connection: socket.socket) -> Greeting:
    """Read the server's first packet. Raises OSError."""
    head = receive(connection, 4, SECONDS)
    size = int.from_bytes(head[:3], "little")
    return parse(receive(connection, size, SECONDS)) if size <= MOST_BYTES else Greeting()


def parse(packet: bytes) -> Greeting:
    """Parse the payload of the first packet: protocol 10 and a version, or an error. Pure."""
    if packet.startswith(b"\x0a"):
        version, _, rest = packet[1:].partition(b"\0")
        # After the version: thread id (4 bytes), first part of the challenge (8), a zero, then the capabilities' lower half.
        tls = bool(int.from_bytes(rest[13:15], "little") & CLIENT_SSL)
        # MariaDB before 11 prefixes its version with one that old replicas accept.
        return Greeting(version=version.decode(errors="replace").removeprefix("5.5.5-"), tls=tls)
    if packet.startswith(b"\xff"):
        number, text = int.from_bytes(packet[1:3], "little"), packet[3:].decode(errors="replace")
        return Greeting(refusal=f"{text} [{number}]")
    return Greeting()
