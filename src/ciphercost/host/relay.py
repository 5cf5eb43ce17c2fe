"""relay: a relay on loopback, or before a Unix-domain socket, that records the bytes it forwards, for the wire witness. Needs no root.

It runs as two threads per connection in this process, so it dies with the run.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ciphercost.host import local_socket
from ciphercost.host.ports import is_loopback, listening_at
from ciphercost.model.connection import Changes, Connection

KEEP = 8 << 20
"""Bytes recorded per direction; later bytes are forwarded but not recorded (a witness checks a handful of rows)."""


def moved(connection: Connection, host: str, port: int) -> Connection:
    """The connection through a relay. The certificate is still checked against the server's name. Pure.

    `relayed` tells the agent that the server is on another machine, so that it sends no password as if the server were
    local.
    """
    changes: Changes = {"host": host, "port": port}
    if connection.tls is not None:
        changes["tls_server_name"] = connection.tls_server_name or connection.host
    if connection.user is not None and not is_loopback(connection.host):
        changes["relayed"] = True
    return connection | changes


class Relay:
    """Listens on 127.0.0.1 (or `listen`) and forwards each connection to `host:port`.

    With `path`, it forwards to that Unix-domain socket, and listens on one of its own in `directory`. It serves processes of this user
    alone, because the server takes them for this one.

    `to_server` and `to_client` hold the recorded bytes of all connections in order of arrival; `sent` and `received`
    count all bytes. `turns`: how often the client sent after the server had.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        listen: str = "127.0.0.1",
        path: str = "",
        directory: Path | None = None,
        watch: Callable[[int, bytes, bool], None] | None = None,
    ) -> None:
        """`watch`: gets all bytes with the number of their connection, and whether the client sent them, instead of `to_server` and
        `to_client`. One thread at a time calls it.
        """
        self._target = (host, port)
        self._watch = watch
        self._path = path
        self.sent = self.received = self.turns = 0
        self._clients_turn = False
        self._lock = threading.Lock()
        self.to_server = bytearray()
        self.to_client = bytearray()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.file = directory / f"relay-{secrets.token_hex(4)}" if path and directory else None
        self.port = 0
        if self.file:
            self._listener = local_socket.listening(self.file)
        else:
            self._listener = listening_at(listen)
            self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def before(cls, connection: Connection, directory: Path | None) -> Self:
        """A relay before the server of this connection. `directory`: for a socket of its own. Raises RunError if its path is too long."""
        return cls(*connection.address, path=connection.socket or "", directory=directory)

    def moved(self, connection: Connection) -> Connection:
        """The connection through this relay."""
        return connection | {"socket": str(self.file)} if self.file else moved(connection, "127.0.0.1", self.port)

    def close(self) -> None:
        """Close every connection and every file kept open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self.file:
            self.file.unlink(missing_ok=True)
        self._accepting.join(timeout=5)
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for open_socket in sockets:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)
        for open_socket in sockets:
            open_socket.close()

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connected(client)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            number += 1
            for source, sink, kept in ((client, server, self.to_server), (server, client, self.to_client)):
                thread = threading.Thread(target=self._pass_on, args=(number, source, sink, kept), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _connected(self, client: socket.socket) -> socket.socket:
        """A connection to the server for this client. Raises OSError, also for a client of another user."""
        if not self.file:
            return socket.create_connection(self._target, timeout=10)
        if local_socket.peer_of(client).user != os.getuid():
            raise PermissionError
        return local_socket.connected(self._path, 10)

    def _pass_on(self, number: int, source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    if self._watch:
                        self._watch(number, data, kept is self.to_server)
                    else:
                        kept += data[: max(0, KEEP - len(kept))]
                    self._count(len(data), by_client=kept is self.to_server)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _count(self, size: int, *, by_client: bool) -> None:
        if by_client:
            self.sent += size
            self.turns += not self._clients_turn
        else:
            self.received += size
        self._clients_turn = by_client


HANDSHAKE_BEGINS = re.compile(rb"\x16\x03[\x01-\x03]..[\x01\x02]", re.DOTALL)
"""A handshake record that begins with a ClientHello or a ServerHello."""


def tls_records(data: bytes) -> int:
    """Number of TLS application-data records (type 0x17) found by walking from the first handshake record. Pure."""
    return len(tls_record_sizes(data))


def tls_record_sizes(data: bytes) -> list[int]:
    """Sizes in bytes of each of those records, in order, without their five-byte headers; an incomplete last one as
    announced. Pure.

    The walk begins at a handshake record, because database protocols send unencrypted bytes before TLS begins. Those
    may look like one (MySQL's greeting contains random bytes), so the longest walk counts.
    """
    return max((_walk(data, hello.start()) for hello in HANDSHAKE_BEGINS.finditer(data)), key=len, default=[])


def _walk(data: bytes, at: int) -> list[int]:
    sizes = []
    while at + 5 <= len(data) and data[at] in (0x14, 0x15, 0x16, 0x17) and data[at + 1] == 3:
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        if data[at] == 0x17:
            sizes.append(size)
        at += 5 + size
    return sizes
