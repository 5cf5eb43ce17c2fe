"""A listener on a loopback port, with a thread for each connection: the base of every server that misbehaves on purpose."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

SECONDS = 10.0
"""Longest wait for a thread to end."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close with RST instead of FIN."""


class Listener(ABC):
    """Runs `serve` for each connection. A context manager: `stop` ends it.

    Call `__init__` last: the listener starts in it.
    """

    def __init__(self, host: str = "127.0.0.1", backlog: int = 256) -> None:
        self._open: set[socket.socket] = set()
        self._last: object = None
        self._listening = socket.create_server((host, 0), backlog=backlog)
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @abstractmethod
    def serve(self, connection: socket.socket) -> None:
        """Talk to one client. The connection is closed afterwards, also after an OSError or a ValueError."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, *, reset: bool = False) -> None:
        """Stop listening and end all connections. `reset`: as if the server had died."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                end(each, reset=reset)
        self._join()

    def finish(self) -> None:
        """Serve every client that has connected so far to its end, then stop listening."""
        # Connections are accepted in their order, so nobody who came before this one is missed.
        with self._listening, socket.socket() as last:
            last.bind((self._listening.getsockname()[0], 0))
            self._last = last.getsockname()
            last.connect(self._listening.getsockname())
            self._threads[0].join(SECONDS)
        self._join()

    def _join(self) -> None:
        for thread in list(self._threads):
            thread.join(SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self._listening.accept()
            except OSError:
                return
            if address == self._last:
                connection.close()
                return
            self._open.add(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, struct.error), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.serve(connection)
        self._open.discard(connection)


def end(each: socket.socket, *, reset: bool = False) -> None:
    """End a connection on which a thread waits: that thread hears of it and closes. Raises OSError if it has ended."""
    if reset:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    # Ending what is sent would say FIN, before closing can say RST.
    each.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)


def forward(one: socket.socket, other: socket.socket, passed: Callable[[socket.socket, bytes], object]) -> None:
    """Send what each of two connections says to the other, until one ends. `passed(source, data)` comes before it is sent."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(one, selectors.EVENT_READ, other)
        waiting.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in waiting.select():
                assert isinstance(key.fileobj, socket.socket)
                if not (data := key.fileobj.recv(1 << 16)):
                    return
                passed(key.fileobj, data)
                key.data.sendall(data)
