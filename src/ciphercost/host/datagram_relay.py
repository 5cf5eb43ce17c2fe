"""datagram_relay: a UDP relay on loopback that records the datagrams it forwards, for the wire witness. Needs no root.

It runs as a thread in this process, so it dies with the run.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Sequence
from typing import NamedTuple, Self

from ciphercost.host.relay import KEEP

LONGEST = 65_535
LONG_HEADER, FIXED_BIT = 0x80, 0x40
VERSION_1 = 1
"""QUIC's version 1 (RFC 9000); version 2 and drafts are not counted as QUIC."""


class DatagramRelay:
    """Listens on 127.0.0.1 and forwards the datagrams of each client to `host:port`, and back.

    `to_server` and `to_client` hold the recorded datagrams in order of arrival, `KEEP` bytes of each direction at most.
    """

    def __init__(self, host: str, port: int) -> None:
        family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._family: socket.AddressFamily = family
        self._target = target
        self.datagrams: dict[str, list[bytes]] = {"to_server": [], "to_client": []}
        self._kept = {"to_server": 0, "to_client": 0}
        self._servers: dict[object, socket.socket] = {}
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every socket."""
        self._waker.close()
        self._thread.join(timeout=5)
        for open_socket in (self._listener, self._woken, *self._servers.values()):
            open_socket.close()
        self._selector.close()

    @property
    def to_server(self) -> bytes:
        return b"".join(self.datagrams["to_server"])

    @property
    def to_client(self) -> bytes:
        return b"".join(self.datagrams["to_client"])

    def _forward(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    return
                # A client or server that is gone refuses what is sent to it: the other side notices by itself.
                with contextlib.suppress(OSError):
                    if key.fileobj is self._listener:
                        self._from_client()
                    else:
                        self._from_server(key.fileobj, key.data)  # type: ignore[arg-type]

    def _from_client(self) -> None:
        data, client = self._listener.recvfrom(LONGEST)
        if client not in self._servers:
            server = self._servers[client] = socket.socket(self._family, socket.SOCK_DGRAM)
            server.setblocking(False)
            server.connect(self._target)
            self._selector.register(server, selectors.EVENT_READ, client)
        self._keep("to_server", data)
        self._servers[client].send(data)

    def _from_server(self, server: socket.socket, client: tuple[str, int]) -> None:
        data = server.recv(LONGEST)
        self._keep("to_client", data)
        self._listener.sendto(data, client)

    def _keep(self, direction: str, data: bytes) -> None:
        if self._kept[direction] + len(data) <= KEEP:
            self._kept[direction] += len(data)
            self.datagrams[direction].append(data)


class QuicSeen(NamedTuple):
    """What datagrams of one direction look like from outside."""

    handshakes: int
    """Datagrams that begin with a long header of QUIC version 1."""
    protected: int
    """Datagrams that begin with a short header: packets of the application, once the handshake is over."""
    others: int
    """Datagrams that are no QUIC."""


def quic_seen(datagrams: Sequence[bytes]) -> QuicSeen:
    """Count what QUIC's invariants and version 1 show of each datagram's first packet (RFC 8999; RFC 9000, 17). Pure."""
    handshakes = protected = 0
    for datagram in datagrams:
        first = datagram[0] if datagram else 0
        if not first & FIXED_BIT:
            continue
        if not first & LONG_HEADER:
            protected += 1
        elif int.from_bytes(datagram[1:5], "big") == VERSION_1:
            handshakes += 1
    return QuicSeen(handshakes, protected, len(datagrams) - handshakes - protected)


def quic_sign(to_server: Sequence[bytes], to_client: Sequence[bytes]) -> tuple[bool, str]:
    """Whether the datagrams of both directions are QUIC's and some of each are protected, and a description. Pure."""
    seen = quic_seen(to_server), quic_seen(to_client)
    if strange := sum(direction.others for direction in seen):
        return False, f"{strange} of {sum(map(sum, seen))} datagrams are not of QUIC version 1"
    if not all(direction.handshakes and direction.protected for direction in seen):
        return False, "there are no QUIC packets of a handshake and after it in both directions"
    handshakes, protected = (sum(direction[at] for direction in seen) for at in (0, 1))
    return True, f"QUIC version 1 by UDP, {handshakes} datagrams of the handshake and {protected} after it"
