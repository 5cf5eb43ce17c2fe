"""hostile: a listener that spoils every encrypted connection in one way, and accepts unencrypted ones as a server
would.
"""

from __future__ import annotations

import socket
import ssl
import struct
from pathlib import Path

from ciphercost.host.pki import Pki
from impostors import FLAGS, NONCE, asking, packet
from listening import Listener

CERTIFICATES = ("another authority", "another name", "expired")
BREAKS = ("strip", "close", "reset", "alert", "clear")
SPOILT = (*CERTIFICATES, *BREAKS)
CLIENT_SSL, SSL_REQUEST, GSS_REQUEST = 0x0800, 80877103, 80877104
ALERT = b"\x15\x03\x03\0\x02\x02\x28"
SECONDS = 10.0


class Hostile(Listener):
    """`in_clear`: what was sent unencrypted as (part of) a login; `asked`: how many connections requested TLS, or would
    have.
    """

    def __init__(self, engine: str, how: str, directory: Path) -> None:
        self._postgres, self._how = engine == "postgresql", how
        self._version = b"5.5.5-10.11.6-MariaDB" if engine == "mariadb" else b"8.0.36"
        name = "elsewhere.invalid" if how == "another name" else ""
        pki = Pki(directory, "ecdsa-p256", name=name, expired=how == "expired")
        self.ca = Pki(directory / "other").ca if how == "another authority" else pki.ca
        """The authority that the user names."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pki.certificate, pki.key)
        self.in_clear: list[bytes] = []
        self.asked = 0
        super().__init__()

    def __exit__(self, *_: object) -> None:
        self.finish()

    def serve(self, connection: socket.socket) -> None:
        connection.settimeout(SECONDS)
        self.asked += 1
        if self._postgres:
            self._meet_postgres(connection)
        else:
            self._meet_mysql(connection)

    def _meet_postgres(self, client: socket.socket) -> None:
        while True:
            length, code = struct.unpack(">ii", client.recv(8, socket.MSG_WAITALL))
            if code == GSS_REQUEST or (code == SSL_REQUEST and self._how == "strip"):
                client.sendall(b"N")
            elif code == SSL_REQUEST:
                client.sendall(b"S")
                return self._spoil(client)
            else:
                break
        self.in_clear.append(client.recv(length - 8, socket.MSG_WAITALL))
        client.sendall(asking(10, b"SCRAM-SHA-256\0\0"))
        if more := client.recv(4096):
            self.in_clear.append(more)
        return None

    def _meet_mysql(self, client: socket.socket) -> None:
        flags = FLAGS if self._how == "strip" else FLAGS | CLIENT_SSL
        body = b"\x0a" + self._version + b"\0" + struct.pack("<I", 7) + NONCE[:8] + b"\0"
        body += struct.pack("<HBHHB", flags & 0xFFFF, 45, 2, flags >> 16, 21) + bytes(10) + NONCE[8:] + b"\0"
        client.sendall(packet(0, body + b"mysql_native_password\0"))
        first = client.recv(36, socket.MSG_WAITALL)
        if first[:3] == b"\x20\0\0" and int.from_bytes(first[4:6], "little") & CLIENT_SSL:
            self._spoil(client)
        elif first:
            self.in_clear.append(first)

    def _spoil(self, client: socket.socket) -> None:
        if self._how == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self._how in ("alert", "clear"):
            client.recv(100)
            client.sendall(ALERT if self._how == "alert" else b"HTTP/1.1 400 no\r\n\r\n")
        elif self._how != "close":
            with self._context.wrap_socket(client, server_side=True) as inner:
                inner.recv(100)
