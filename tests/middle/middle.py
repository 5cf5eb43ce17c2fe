"""middle: a man in the middle between ciphercost and a real server, who records every byte that he receives."""

from __future__ import annotations

import select
import socket
import ssl
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from impostors import Line
from listening import RESET, Listener
from middle.attacks import Attack
from middle.chains import Presented
from middle.tls import Tls, not_tls

SECONDS = 30.0
"""Longest silence of a client or of the server."""
ALERT = b"\x15\x03\x03\0\x02\x02\x28"
"""TLS: handshake failure."""
Connect = Callable[[bool], socket.socket]
"""`connect(encrypted)`: a new connection to the real server."""


class Met(NamedTuple):
    """How a connection begins."""

    server: socket.socket
    encrypted: bool
    first: bytes
    """What the client has sent and the server must still get."""


class Upgrade(ABC):
    """How a protocol gets from its first byte to TLS."""

    strippable = True
    """Whether the server can deny that it has TLS."""
    answer: bytes
    """What a server of this protocol could say unencrypted."""

    @abstractmethod
    def meet(self, line: Line, attack: Attack, connect: Connect) -> Met:
        """Speak with client and server until TLS begins, or until the client sends something else."""

    @abstractmethod
    def greeting(self, heard: bytes) -> int:
        """How many bytes at the beginning are nothing but a request for TLS. Pure."""


class Middle(Listener):
    """`struck`: how often it carried out the attack; `learned`: what clients sent it in TLS connections that it ended itself."""

    def __init__(self, upgrade: Upgrade, attack: Attack, shown: Presented, target: Callable[[bool], int]) -> None:
        """`target(encrypted)`: the real server's port."""
        self._upgrade, self._attack, self._target = upgrade, attack, target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old versions are what is wanted
            if attack.newest < ssl.TLSVersion.TLSv1_2:
                self._context.minimum_version = ssl.TLSVersion.TLSv1
                self._context.set_ciphers("ALL:@SECLEVEL=0")
            self._context.maximum_version = attack.newest
        self._context.load_cert_chain(shown.chain, shown.key)
        self._onward = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._onward.check_hostname = False
        self._onward.verify_mode = ssl.CERT_NONE
        self.lines: list[Line] = []
        self.learned = bytearray()
        self.struck = 0
        super().__init__()

    @property
    def in_clear(self) -> list[bytes]:
        """For each client that sent something unencrypted, other than a request for TLS: this, to the end."""
        everything = (bytes(line.heard) for line in self.lines)
        return [rest for heard in everything if (rest := not_tls(heard[self._upgrade.greeting(heard) :]))]

    def serve(self, connection: socket.socket) -> None:
        connection.settimeout(SECONDS)
        line = Line(connection)
        self.lines.append(line)
        self.struck += self._attack.strips or self._attack.injects == "beside"
        with ExitStack() as stack:

            def connect(encrypted: bool) -> socket.socket:
                port = self._target(encrypted)
                return stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))

            met = self._upgrade.meet(line, self._attack, connect)
            if met.encrypted:
                self._encrypt(line, met.server, met.first or line.some())
            else:
                met.server.sendall(met.first)
                _pass_on(line, met.server, line.send, met.server.sendall)

    def _encrypt(self, line: Line, server: socket.socket, hello: bytes) -> None:
        self.struck += not (self._attack.strips or self._attack.injects == "beside")
        if self._attack.breaks:
            self._break(line)
        elif self._attack.tunnels:
            if self._attack.injects == "behind":
                line.send(self._upgrade.answer)
            server.sendall(hello)
            _pass_on(line, server, line.send, server.sendall)
        else:
            self._impersonate(line, server, hello)

    def _impersonate(self, line: Line, server: socket.socket, hello: bytes) -> None:
        """Be the server for the client, and a client for the server."""
        inner = Tls(self._context, line.send, server_side=True)
        outer = Tls(self._onward, server.sendall, server_side=False)

        def heard(data: bytes) -> None:
            plain = inner.feed(data)
            self.learned += plain
            outer.say(plain)

        heard(hello)
        while not inner.ready:
            heard(line.some())
        inner.say(outer.feed(b""))
        _pass_on(line, server, lambda data: inner.say(outer.feed(data)), heard)

    def _break(self, line: Line) -> None:
        if self._attack.breaks == "reset":
            line.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        elif self._attack.breaks != "close":
            line.send(ALERT if self._attack.breaks == "alert" else self._upgrade.answer)
            line.rest()


def _pass_on(
    line: Line, server: socket.socket, to_client: Callable[[bytes], object], to_server: Callable[[bytes], object]
) -> None:
    """Forward in one thread, because two threads can't share a TLS connection."""
    while True:
        ready, _, _ = select.select([line.client, server], [], [], SECONDS)
        if not ready:
            return
        for side in ready:
            if side is server:
                data = server.recv(1 << 16)
                if not data:
                    return
                to_client(data)
            else:
                to_server(line.some())
