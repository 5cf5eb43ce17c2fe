"""What the rest of a session knows about the route of an arm's connections through a hop."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from ciphercost.host.relay import Relay
from ciphercost.host.supervisor import Process
from ciphercost.model.connection import Connection
from ciphercost.provision.delay import Address


class Chain(msgspec.Struct):
    """A hop that runs. Connections to `address` arrive at the server."""

    title: str
    address: Address
    processes: tuple[Process, ...] = ()
    relays: tuple[Relay, ...] = ()
    """In a chain for the wire witness: one before each process and one before the server, the client's first."""

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self.processes)


class Route(Protocol):
    """How one arm's connections reach the server through a hop."""

    legs: tuple[bool, ...]
    """Whether each part of the way is encrypted, from the client to the server."""
    chain: Chain
    """The processes that carry the load."""

    @property
    def ends_tls(self) -> bool:
        """Whether a process of the hop ends TLS, or begins it."""

    @property
    def own_tls(self) -> str:
        """How the hop's processes encrypt between themselves on this way; empty: they do not."""

    def watched(self) -> AbstractContextManager[Chain]:
        """A second chain of the same kind, which records what crosses each part of the way."""

    def connection(self, chain: Chain) -> Connection:
        """The arm's connection through this chain."""
