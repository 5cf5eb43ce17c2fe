"""proxy: a TCP proxy whose connections can be broken: reset, cut, half open, silent, or refused."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close with RST instead of FIN."""


class Pair:
    """A client's connection and its continuation to the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.broken = False
        """Whether something was broken on purpose: then neither end hears of the other's end."""

    def end(self, *, reset: bool, client: bool = True) -> None:
        """End both ends, or the server's only."""
        self.broken = True
        for each in (self.server, self.client) if client else (self.server,):
            _end(each, reset=reset)


class Proxy:
    """Listens on loopback and forwards each connection to `port` on loopback."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pairs: list[Pair] = []
        self._lock = threading.Lock()
        self._forwarding = threading.Event()
        self._forwarding.set()
        self.refusing = False
        """Whether new connections are reset at once."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.speak()
        self.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self._target), 5)
            except OSError:
                _end(client, reset=True)
                continue
            server.settimeout(None)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = Pair(client, server)
            with self._lock:
                self._pairs.append(pair)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(pair, source, sink), daemon=True).start()

    def _pump(self, pair: Pair, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._forwarding.wait()
                sink.sendall(data)
            if not pair.broken:
                sink.shutdown(socket.SHUT_WR)

    # ── what can break; each returns whether there was any connection ─────────────────────────────────────────────────

    def _take(self) -> list[Pair]:
        with self._lock:
            pairs, self._pairs = self._pairs, []
        return pairs

    def reset(self) -> bool:
        """Reset every connection, at both ends."""
        pairs = self._take()
        for each in pairs:
            each.end(reset=True)
        return bool(pairs)

    def cut(self) -> bool:
        """Close every connection in order, at both ends."""
        pairs = self._take()
        for each in pairs:
            each.end(reset=False)
        return bool(pairs)

    def half_open(self) -> bool:
        """End the server's side only: the client hears nothing of it. `reset` later ends the rest."""
        with self._lock:
            pairs = list(self._pairs)
        for each in pairs:
            each.end(reset=True, client=False)
        return bool(pairs)

    def silence(self) -> bool:
        """Take everything, and forward nothing more."""
        self._forwarding.clear()
        return bool(self._pairs)

    def speak(self) -> None:
        """Forward again, also new connections."""
        self._forwarding.set()
        self.refusing = False


def _end(each: socket.socket, *, reset: bool) -> None:
    with contextlib.suppress(OSError):
        if reset:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        # A thread may be waiting in `recv`, which holds the connection open; this wakes it.
        each.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)
    each.close()
