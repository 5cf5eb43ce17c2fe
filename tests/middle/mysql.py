"""mysql: how a client of MySQL or MariaDB asks for TLS: the server's greeting offers it, and the client sends the first 32
bytes of its login with the same flag.
"""

from __future__ import annotations

import socket

from impostors import Line, packet
from middle.attacks import Attack
from middle.middle import Connect, Met, Upgrade

CLIENT_SSL = 0x0800
REQUEST_BYTES = 4 + 32


class Mysql(Upgrade):
    answer = packet(2, b"\0\0\0\2\0\0\0")
    """OK: the login is complete."""

    def meet(self, line: Line, attack: Attack, connect: Connect) -> Met:
        server = connect(True)
        greeting = bytearray(_packet(server))
        if attack.strips:
            flags = greeting.index(0, 5) + 1 + 4 + 8 + 1
            greeting[flags + 1] &= ~(CLIENT_SSL >> 8)
        line.send(bytes(greeting) + (packet(1, b"\0\0\0\2\0\0\0") if attack.injects == "beside" else b""))
        first = line.read(REQUEST_BYTES)
        encrypted = bool(self.greeting(first))
        if encrypted:
            server.sendall(first)
        return Met(server, encrypted, b"" if encrypted else first)

    def greeting(self, heard: bytes) -> int:
        asks = heard[:3] == b"\x20\0\0" and int.from_bytes(heard[4:6], "little") & CLIENT_SSL
        return REQUEST_BYTES if asks else 0


def _packet(server: socket.socket) -> bytes:
    head = server.recv(4, socket.MSG_WAITALL)
    return head + server.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)
