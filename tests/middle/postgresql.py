"""postgresql: how a PostgreSQL client asks for TLS: a request of eight bytes, answered with one, `S` or `N`."""

from __future__ import annotations

import struct

from impostors import Line
from middle.attacks import Attack
from middle.middle import Connect, Met, Upgrade

SSL_REQUEST, GSS_REQUEST = struct.pack(">ii", 8, 80877103), struct.pack(">ii", 8, 80877104)


class Postgresql(Upgrade):
    answer = b"R" + struct.pack(">ii", 8, 0) + b"Z" + struct.pack(">i", 5) + b"I"
    """AuthenticationOk and ReadyForQuery."""

    def meet(self, line: Line, attack: Attack, connect: Connect) -> Met:
        while (first := line.read(8)) in (SSL_REQUEST, GSS_REQUEST):
            if first == SSL_REQUEST and not attack.strips:
                server = connect(True)
                server.sendall(SSL_REQUEST)
                line.send(server.recv(1) + (self.answer if attack.injects == "beside" else b""))
                return Met(server, encrypted=True, first=b"")
            line.send(b"N")
        return Met(connect(False), encrypted=False, first=first)

    def greeting(self, heard: bytes) -> int:
        at = 0
        while heard[at : at + 8] in (SSL_REQUEST, GSS_REQUEST):
            at += 8
        return at
