"""Hops: one file per program that stands between client and server, and how it is found, configured and started.

A hop file defines `HOP`, an instance of a subclass of `Hop`. Adding a file adds a hop; names that begin with `_` are shared
code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host.installation import Installation
from ciphercost.host.launch import Launch
from ciphercost.model.registry import Registry
from ciphercost.model.secret import Secret

if TYPE_CHECKING:
    from ciphercost.engines import Engine
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor

Ends = Literal["", "hop", "server"]
"""Where encryption ends: nowhere, because there is none; at the hop; at the server."""


class Stage(msgspec.Struct, frozen=True):
    """One process of a hop. It may end the client's TLS, begin its own towards the server, both, or pass bytes on as they are."""

    accepts: bool = False
    """Whether it is the TLS server of what connects to it."""
    connects: bool = False
    """Whether it is a TLS client of what it connects to."""


class Wanted(msgspec.Struct, frozen=True):
    """What one process of a hop needs to know."""

    stage: Stage
    target: tuple[str, int]
    """Address and port of what it forwards to."""
    engine: str
    """The name of the server's engine."""
    directory: Path
    """Its own directory, for its configuration and keys; it exists already."""
    pki: Pki
    """The certificate that it presents, valid for a server and for a client, and the authority by which it checks others."""
    user: str
    """The login that it may have to know; empty: none."""
    password: Secret | None
    clients: int
    """Connections that it must carry at once."""
    address: str
    """Where it listens."""
    cpus: tuple[int, ...] | None = None
    """The CPUs that it may use. None: all."""
    logs: Path | None = None
    """Directory of its log. None: beside its own directory."""
    mutual: bool = False
    """Whether both ends of its TLS show a certificate, because both are processes of the hop."""


class Hop(ABC):
    """A program between client and server."""

    name: str
    title: str
    ends: tuple[Ends, ...] = ("hop", "server")
    """Where it lets encryption end."""
    forwards_plain: bool = True
    """Whether it can also pass on what is not encrypted. If not, the plain arm goes straight to the server."""
    own_tls: str = ""
    """How its processes encrypt between themselves, for the report; empty: there is only one."""
    speaks: bool = False
    """Whether it speaks the server's protocol, so that a client asks it for TLS as it would ask the server."""

    def stages(self, ends: Ends) -> tuple[Stage, ...]:
        """Its processes, the client's first. Here: one, which passes on what is encrypted up to the server."""
        return (Stage(accepts=ends == "hop"),)

    def legs(self, ends: Ends) -> tuple[bool, ...]:
        """Whether each part of the way is encrypted, from the client to the server."""
        return (bool(ends), ends == "server")

    def refuses(self, engine: Engine, ends: Ends) -> str:
        """Why it can't carry this server's connections; empty: it can. User-visible."""
        if not isinstance(engine, HasTls):
            return f"{self.title} carries servers with TLS, and {engine.name} has none"
        if ends == "hop" and engine.tls_begins == "on request" and not self.speaks:
            return f"a client of {engine.name} asks the server for TLS in its own protocol, which {self.title} does not speak"
        return ""

    @abstractmethod
    def find(self, *, fetch: bool = True) -> Installation:
        """Return the program: installed on this machine, fetched earlier, or (with `fetch`) fetched now. Raises MissingServer."""

    @abstractmethod
    def start(self, installation: Installation, wanted: Wanted, supervisor: Supervisor) -> Launch:
        """Start one process and wait until it accepts connections. Raises RunError with the end of its log."""


REGISTRY = Registry(__name__, "unknown hop '{}': {}")


def names() -> list[str]:
    """List the names of all hops."""
    return REGISTRY.names()


def get(name: str) -> Hop:
    """Return the hop with this name. Raises UsageError that suggests the nearest name."""
    hop: Hop = REGISTRY.get(name).HOP
    return hop
