"""bad_servers: a small web server that misbehaves on purpose, in threads of the test process."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

from listening import Listener

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


class BadServer(Listener):
    """Answers requests, unencrypted or, with a certificate, with TLS. `stop` looks as if it had died."""

    def __init__(self, answer: Answer, certificate: tuple[Path, Path] | None = None) -> None:
        self._answer = answer
        self._context: ssl.SSLContext | None = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
        self._numbers = itertools.count()
        self.asked = 0
        super().__init__()

    def stop(self, *, reset: bool = True) -> None:
        super().stop(reset=reset)

    def serve(self, connection: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            if self._context:
                connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
                self._open.add(connection)
                stack.callback(self._open.discard, connection)
            for head in requests(connection):
                self.asked += 1
                if not self.reply(connection, head, next(self._numbers)):
                    return

    def reply(self, connection: socket.socket, head: bytes, number: int) -> bool:
        """Answer one request. False: close the connection."""
        return self._answer(connection, number)


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
