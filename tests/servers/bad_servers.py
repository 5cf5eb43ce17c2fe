"""bad_servers: a small web server that misbehaves on purpose, in threads of the test process."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

Answer = Callable[["socket.socket", int], bool]
"""Answers a request, given its number on this server. False: close the connection."""
BODY = b"The quick brown fox jumps over the lazy dog. " * 20


def response(status: str = "200 OK", *headers: str, body: bytes = BODY, length: int | None = None) -> bytes:
    stated = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", "Server: bad/1.0", f"Content-Length: {stated}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def says(words: bytes, *, close: bool = False) -> Answer:
    """The same answer to everybody."""

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(words)
        return not close

    return answer


def mostly(every: int, words: bytes, *, close: bool = False, after: int = 0) -> Answer:
    """A good answer, except to every n-th request (`every`). `after`: start counting after this many requests."""

    def answer(connection: socket.socket, number: int) -> bool:
        bad = number >= after and number % every == every - 1
        connection.sendall(words if bad else response())
        return not (bad and close)

    return answer


GOOD = says(response())


class BadServer:
    """Listens on a loopback port, unencrypted or, with a certificate, with TLS. A context manager: `stop` ends it with
    all connections.
    """

    def __init__(self, answer: Answer, certificate: tuple[Path, Path] | None = None) -> None:
        self._answer = answer
        self._context: ssl.SSLContext | None = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
        self._numbers = itertools.count()
        self.asked = 0
        self._open: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """As if it had died: open connections are reset."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.add(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        raw = connection
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            stack.callback(self._open.discard, raw)
            stack.enter_context(raw)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                connection = stack.enter_context(self._context.wrap_socket(raw, server_side=True))
                self._open.add(connection)
                stack.callback(self._open.discard, connection)
            for _ in requests(connection):
                self.asked += 1
                if not self._answer(connection, next(self._numbers)):
                    return


def requests(connection: socket.socket) -> Iterator[bytes]:
    """Heads of requests without bodies."""
    held = b""
    while True:
        while b"\r\n\r\n" not in held:
            if not (more := connection.recv(1 << 16)):
                return
            held += more
        head, _, held = held.partition(b"\r\n\r\n")
        yield head
