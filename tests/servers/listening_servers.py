"""listening_servers: any server that ciphercost starts, on an address of the test's choice, with the fields that reach both arms."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.launch import LISTEN
from ciphercost.host.namespaces import NAMESPACES
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.spec import ARMS, Arm
from network_namespaces import ip, namespace

CANARY = "canary0123456789abcdef"
NEAR, FAR = "198.18.77.1", "198.18.77.2"
"""Addresses of the two ends of a pair, from a range that RFC 2544 sets aside for tests."""


class Listening(msgspec.Struct):
    """A server that is up."""

    engine: Engine
    server: Server
    connect: dict[Arm, Connection]
    """Fields of the agent's `connect`."""
    run_id: str


@contextmanager
def started(installation: Installation, address: str, logs: Path) -> Iterator[Listening]:
    """A server that listens on this address, with encryption that a client can verify."""
    engine = engines.get(installation.engine)
    mechanism = mechanisms.get("wire-crypt" if engine.name == "firebird" else "tls")
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        directory, keys = scratch / "data", scratch / "secrets"
        place, factors = {LISTEN: address}, mechanism.check({})
        engine.initialise(installation, directory, run_supervisor, place)
        if isinstance(engine, Documents):
            engine.lay_out(directory, scratch / "documents", {}, CANARY)
        settings = mechanism.server_settings(engine, factors, keys, address) | place
        server = engine.start(StartRequest(installation, directory, run_supervisor, settings=settings, logs=logs))
        connect: dict[Arm, Connection] = {
            arm: server.connection() | mechanism.connection(engine, arm, factors, keys) for arm in ARMS
        }
        connect["encrypted"] |= server.other_ports.get("tls", {})
        try:
            yield Listening(engine, server, connect, run_supervisor.run_id)
        finally:
            server.stop()
    assert run_supervisor.problems == []


@contextmanager
def neighbour() -> Iterator[Path]:
    """The file of a network namespace with the address FAR, joined to this one, which has NEAR. Needs root."""
    device = f"cct{secrets.token_hex(4)}"
    with ExitStack() as stack:
        name = stack.enter_context(namespace())
        ip("link", "add", device, "type", "veth", "peer", "name", "far", "netns", name)
        stack.callback(ip, "link", "del", "dev", device)
        for where, end, address in (([], device, NEAR), (["-n", name], "far", FAR)):
            ip(*where, "address", "add", f"{address}/30", "dev", end)
            ip(*where, "link", "set", "dev", end, "up")
        yield NAMESPACES / name
