"""connection_loads: what `--storm` and `--connections` ask for, and the cells and machines that can't do it. Raises UsageError."""

from __future__ import annotations

import math
import re
import resource
from collections.abc import Sequence

import msgspec

from ciphercost.host import ports
from ciphercost.load import clients, units
from ciphercost.model.connection_memory import IDLE, USUAL_CONNECTIONS
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Spec
from ciphercost.model.storms import STORM, Storm
from ciphercost.plan.planned import PlannedCell

EXAMPLE = (
    "write --storm 160 (new connections a second), --storm saturated=160 (beside connections that send as fast as they can), "
    "--storm failover=1000, or --storm rotation=30m/15"
)
USUAL_RATE = "160"
"""New connections per second of workload `storm`: those of the published case with Valkey."""
MOST_CLIENTS, MOST_CONNECTIONS, MOST_RATE = 10_000, 10_000, 100_000.0
"""Agents open at most 10,000 connections for an arm."""
STEPS = 8
"""Steps in which idle connections are opened."""
SLOTS = 256
"""Most new connections of a storm at a rate that are open at once."""
SPARE_FILES = 64


def storm_of(text: str) -> Storm:
    """The storm that a text asks for. Raises UsageError. Pure."""
    word, equals, value = text.strip().partition("=")
    if word == "failover":
        clients = _count(value, text) if equals else 0
        return Storm("failover", text, clients=clients)
    if word == "rotation":
        lifetime, slash, pool = value.partition("/")
        if not slash:
            raise UsageError(
                f"--storm {text}: a rotation has a lifetime and a pool's connections; write rotation=30m/15"
            )
        every = units.duration(lifetime, f"--storm {text}")
        if every <= 0:
            raise UsageError(f"--storm {text}: the lifetime must be above 0")
        return Storm("rotation", text, clients=_count(pool, text), every_s=every)
    if word == "saturated":
        return Storm("saturated", text, rate=_rate(value, text))
    if equals:
        raise UsageError(f"--storm {text}: not a storm; {EXAMPLE}")
    return Storm("rate", text, rate=_rate(word, text))


def _rate(text: str, whole: str) -> float:
    """New connections per second. Raises UsageError."""
    if not re.fullmatch(r"\d+(\.\d+)?(/s)?", text):
        raise UsageError(f"--storm {whole}: not a storm; {EXAMPLE}")
    rate = float(text.removesuffix("/s"))
    if not 0 < rate <= MOST_RATE or not math.isfinite(rate):
        raise UsageError(f"--storm {whole}: must be above 0 and at most {MOST_RATE:,.0f} new connections a second")
    return rate


def _count(text: str, whole: str) -> int:
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MOST_CLIENTS:
        raise UsageError(
            f"--storm {whole}: '{text}' is not a number of connections from 1 to {MOST_CLIENTS:,}; {EXAMPLE}"
        )
    return int(text)


def with_loads(planned: PlannedCell) -> PlannedCell:
    """The cell with its storm and its number of idle connections, as asked for or as its workload implies. Raises UsageError."""
    cell = planned.spec
    wanted = cell.storm or (USUAL_RATE if cell.workload == STORM and not cell.own_script else "")
    idle = cell.connections or (USUAL_CONNECTIONS if cell.workload == IDLE and not cell.own_script else 0)
    if not wanted and not idle:
        return planned
    storm = storm_of(wanted) if wanted else None
    if storm and storm.kind == "failover" and not storm.clients:
        storm = Storm("failover", storm.text, clients=planned.clients)
    for option, given in ((f"--storm {wanted}", bool(storm)), (f"--connections {idle}", bool(idle))):
        if given:
            _check(planned, option)
    if storm and cell.url and storm.kind == "failover":
        raise UsageError(
            f"--storm {wanted}: a failover goes to a fresh server, and ciphercost starts none beside yours; write --storm 160, or remove --url"
        )
    if storm and cell.max_rate:
        raise UsageError(
            "--storm and --max-rate: a storm adds connections that the limit does not count; remove --max-rate, and set the established "
            "load with --rate"
        )
    if storm and cell.rate and storm.kind == "saturated":
        raise UsageError(
            f"--storm {wanted} and --rate: its established connections send as fast as they can; remove --rate, or write --storm {storm.rate:g}"
        )
    if idle:
        _check_idle(planned, idle)
    return msgspec.structs.replace(planned, storm=storm, idle_connections=idle)


def _check(planned: PlannedCell, option: str) -> None:
    """Refuse cells without connections that an agent of ours keeps open. Raises UsageError."""
    cell, engine = planned.spec, planned.engine
    if engine.embedded:
        raise UsageError(
            f"{option}: {cell.engine} runs in the client and has no connections; use a server, or remove the option"
        )
    if planned.mechanism.layer not in ("transit", "control"):
        raise UsageError(
            f"{option}: shows what encrypted connections cost, and {cell.mechanism} encrypts none; use {cell.engine}:tls, or remove the option"
        )
    if planned.client or engine.by_jdbc or (planned.reference and planned.reference.client):
        raise UsageError(
            f"{option}: only the Rust agent opens its connections; remove {clients.option(cell) if planned.client else cell.engine}"
        )
    if planned.opens:
        raise UsageError(
            f"{option}: the established connections stay open, and here each operation opens its own; use another workload, or remove the option"
        )
    if cell.objective:
        raise UsageError(f"{option} and --objective are two experiments; run one after the other")


def _check_idle(planned: PlannedCell, idle: int) -> None:
    """Refuse a number of idle connections that this machine or the cell does not allow. Raises UsageError."""
    cell = planned.spec
    if idle > MOST_CONNECTIONS:
        raise UsageError(f"--connections {idle}: must be at most {MOST_CONNECTIONS:,}")
    if idle < STEPS:
        raise UsageError(f"--connections {idle}: must be at least {STEPS}, one for each step")
    if cell.url:
        raise UsageError(
            f"--connections {idle}: each arm needs a fresh server whose processes ciphercost sees, so it can't be yours; remove --url"
        )
    if planned.linked:
        raise UsageError(
            f"--connections {idle}: memory is measured over loopback; remove --bandwidth, --mtu and --loss, which do not change it"
        )
    if (room := ports.free_ports()) and idle > room:
        raise UsageError(
            f"--connections {idle}: this machine has room for {room:,} connections to one server ({ports.PORT_RANGE}); write --connections {room}, "
            "or as root: sysctl net.ipv4.ip_local_port_range='10000 65000'"
        )


def new_connections(planned: PlannedCell) -> int:
    """Connections that a storm has open at once beside the established ones. Pure."""
    if planned.storm is None:
        return 0
    return planned.storm.clients or min(SLOTS, math.ceil(planned.storm.rate))


def server_clients(planned: PlannedCell) -> int:
    """Connections of each arm for which a server of the cell must have room, as engines count them: half of all. Pure."""
    together = max(2 * planned.clients + new_connections(planned), planned.idle_connections)
    if planned.storm and planned.storm.kind == "failover":
        together += planned.clients
    return -(-together // 2)


def check_machine(planned: PlannedCell) -> None:
    """Raises UsageError if this machine's limit on open files is too low for the connections."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if allowed == resource.RLIM_INFINITY:
        return
    for option, most, each in (
        (f"--storm {planned.storm.text}" if planned.storm else "", new_connections(planned), 2),
        (f"--connections {planned.idle_connections}", planned.idle_connections, 1),
    ):
        # Of a hop, a connection is one of its client's and one to the server.
        needed = most * (2 if planned.factors.get("hop") else each) + SPARE_FILES
        if most and needed > allowed:
            raise UsageError(
                f"{option}: {most} connections need {needed} open files in a process, but the hard limit here is {allowed} (ulimit -Hn); "
                f"use fewer connections, or raise the limit: as root, prlimit --nofile={needed} --pid $$ in the shell that starts ciphercost"
            )


def check_spec(spec: Spec, cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError for a run that can't have storms or idle connections: one on a cluster."""
    loaded = [cell for cell in cells if cell.storm or cell.idle_connections]
    if not loaded:
        return
    option = "--storm" if loaded[0].storm else "--connections"
    if spec.cluster:
        raise UsageError(
            f"{option}: only this machine's own agent opens the connections; remove --cluster, or remove {option}"
        )
