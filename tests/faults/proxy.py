"""proxy: a TCP proxy whose connections can be broken: reset, cut, half open, silent, or refused."""

from __future__ import annotations

import contextlib
import socket
import threading

from listening import RESET, Listener, end, forward

SECONDS = 5.0
"""Longest wait for the server to accept a connection."""


class Pair:
    """A client's connection and its continuation to the server."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.may_close = threading.Event()
        """Clear: the client is to hear nothing of the server's end."""
        self.may_close.set()


class Proxy(Listener):
    """Forwards each connection to `port` on loopback."""

    def __init__(self, port: int) -> None:
        self.target = port
        self._pairs: list[Pair] = []
        self._forwarding = threading.Event()
        self._forwarding.set()
        self.refusing = False
        """Whether new connections are reset at once."""
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        if self.refusing:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            return
        with socket.create_connection(("127.0.0.1", self.target), SECONDS) as server:
            server.settimeout(None)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = Pair(connection, server)
            self._pairs.append(pair)
            with contextlib.suppress(OSError):
                forward(connection, server, lambda *_: self._forwarding.wait())
        pair.may_close.wait()
        self._pairs.remove(pair)

    def stop(self, *, reset: bool = True) -> None:
        self.speak()
        self.reset()
        super().stop(reset=reset)

    # ── what can break; each returns whether there was any connection ─────────────────────────────────────────────────

    def reset(self) -> bool:
        """Reset every connection, at both ends."""
        return self._end(reset=True)

    def cut(self) -> bool:
        """Close every connection in order, at both ends."""
        return self._end(reset=False)

    def half_open(self) -> bool:
        """End the server's side only: the client hears nothing of it. `reset` later ends the rest."""
        pairs = list(self._pairs)
        for pair in pairs:
            pair.may_close.clear()
            with contextlib.suppress(OSError):
                end(pair.server, reset=True)
        return bool(pairs)

    def silence(self) -> bool:
        """Take everything, and forward nothing more."""
        self._forwarding.clear()
        return bool(self._pairs)

    def speak(self) -> None:
        """Forward again, also new connections."""
        self._forwarding.set()
        self.refusing = False

    def _end(self, *, reset: bool) -> bool:
        pairs = list(self._pairs)
        for pair in pairs:
            for side in (pair.server, pair.client):
                with contextlib.suppress(OSError):
                    end(side, reset=reset)
            pair.may_close.set()
        return bool(pairs)
