"""impostor: imitates a server and presents a certificate that no trusted authority has signed. A client that continues
does not verify.

It begins as the real server does (MySQL's greeting comes from the real server) and ends with the TLS handshake: it
reads no login.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import Literal, Self

from ciphercost.host.deadlines import receive
from ciphercost.host.pki import Pki

Speech = Literal["mysql", "postgres", "tls"]
"""How a connection begins; `tls`: with TLS, at once."""
Met = Literal["accepted", "refused", "clear", "unclear"]
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
CLIENT_SSL = 0x0800
HANDSHAKE = b"\x16"
"""Type of the first record of TLS."""
SECONDS = 10.0
MOST_BYTES = 4096
"""Maximum size of a packet: a greeting, or the beginning of a login."""
CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA")
"""Words in the name of a TLS alert with which a client rejects the certificate."""


class Impostor:
    """Listens on 127.0.0.1. `met`: what each client did: accepted the certificate, refused it, began an unencrypted
    login, or none of these.
    """

    def __init__(
        self, speech: Speech, host: str, port: int, directory: Path, *, certificate: str, name: str = ""
    ) -> None:
        """`host`, `port`: the real server; `certificate`: its kind, because a client may request suites of that kind;
        `name`: the server's.
        """
        self._speech = speech
        self._target = (host, port)
        # No server uses these files: they stay this process's own.
        pki = Pki(directory, certificate, name=name)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.load_cert_chain(pki.certificate, pki.key)
        self.met: list[Met] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(timeout=SECONDS)
        for thread in self._threads:
            thread.join(timeout=SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._meet, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _meet(self, client: socket.socket) -> None:
        with client:
            client.settimeout(SECONDS)
            try:
                asks = self._greets(client)
                self.met.append(self._shake_hands(client) if asks else "clear")
            except (OSError, ValueError):
                self.met.append("unclear")

    def _greets(self, client: socket.socket) -> bool:
        """Begin as the real server does. Returns whether the client then begins TLS."""
        if self._speech == "tls":
            return client.recv(1, socket.MSG_PEEK) == HANDSHAKE
        return self._greet_mysql(client) if self._speech == "mysql" else _greet_postgres(client)

    def _shake_hands(self, client: socket.socket) -> Met:
        try:
            with self._context.wrap_socket(client, server_side=True):
                return "accepted"
        except ssl.SSLError as error:
            return "refused" if any(word in str(error.reason) for word in CERTIFICATE) else "unclear"

    def _greet_mysql(self, client: socket.socket) -> bool:
        """Forward the real server's greeting. Returns whether the client then requests TLS."""
        with socket.create_connection(self._target, timeout=SECONDS) as server:
            client.sendall(_packet(server))
        answer = _packet(client)
        # A request for TLS is the first 32 bytes of a login.
        return len(answer) == 4 + 32 and bool(int.from_bytes(answer[4:6], "little") & CLIENT_SSL)


def _packet(of: socket.socket) -> bytes:
    head = receive(of, 4, SECONDS)
    size = int.from_bytes(head[:3], "little")
    if size > MOST_BYTES:
        raise OSError(f"a packet of {size} bytes")
    return head + receive(of, size, SECONDS)


def _greet_postgres(client: socket.socket) -> bool:
    while True:
        code = int.from_bytes(receive(client, 8, SECONDS)[4:], "big")
        if code != GSS_REQUEST:
            break
        client.sendall(b"N")
    if code == SSL_REQUEST:
        client.sendall(b"S")
    return code == SSL_REQUEST
