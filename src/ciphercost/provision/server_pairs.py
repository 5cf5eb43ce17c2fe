"""server_pairs: PlannedCell -> twins that are up, loaded and reachable. Data is loaded once a cell; every session gets a fresh copy of it.

In transit both arms use one server and differ in the connection alone; in columns they use one server, and each has a schema of its own;
at rest (and in an embedded engine) each arm has a directory of its own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import msgspec

from ciphercost.engines import Server
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.host import marks, supervisor
from ciphercost.host.link import Link, check_rights, linked
from ciphercost.mechanisms._column import Columns
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.errors import RunError, Unproven
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import conditions
from ciphercost.plan.planned import PlannedCell
from ciphercost.provision import columns, loading, scratch_schema, users_server
from ciphercost.provision.bench import Bench
from ciphercost.provision.delay import delayed
from ciphercost.provision.servers import Servers
from ciphercost.provision.shared import Shared
from ciphercost.provision.twins import Twins


@contextmanager
def bench(
    planned: PlannedCell,
    run_guard: supervisor.Guard,
    scratch: Path,
    logs: Path,
    number: int,
    shared: Shared,
    *,
    data: bool = True,
    left: Callable[[str], None] = scratch_schema.say_left,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
    servers: Servers | None = None,
) -> Iterator[Bench]:
    """Find the server, make and load the data of one cell. Everything made is gone afterwards.

    `shared`: what it has in common with the other cells of its experiment, all of which live to the end of it. `data` false:
    the workload's tables are not needed. `paused`: within it a terminal is free for a question. `servers`: those that the run has
    found already. On a server that is the user's nothing is made before `users_server.ready`. Raises RunError, MissingServer.
    """
    cell, engine, mechanism, factors = planned.spec, planned.engine, planned.mechanism, planned.factors
    if planned.conditions.shaped:
        check_rights()
    if planned.conditions.hides_aes:
        conditions.mask()
        if conditions.mask_provable(cell):
            Payload.of(engine).payload(1)
    sealing = columns.secrets_of(mechanism, engine, factors, shared.secrets) if isinstance(mechanism, Columns) else None
    program = planned.encrypted_program(sealing.codec) if sealing else planned.program
    if not engine.loads or not data:
        program = msgspec.structs.replace(program, load=(), check="", sealed=None)
    directory = scratch / f"cell-{number}"
    directory.mkdir(mode=0o711)
    shared.clients = max(shared.clients, planned.clients)
    servers = servers or Servers()
    installation = servers.find(engine, cell.version, cell.url, cell.bindir or mechanism.bindir())
    engine.check_factors(mechanism.name, factors, installation.version)
    mechanism.check_version(engine, installation.version)
    made = Bench(
        planned=planned,
        program=program,
        installation=installation,
        directory=directory,
        shared=shared,
        guard=run_guard,
        logs=logs,
        left=left,
        servers=servers,
        sealing=sealing,
    )
    if isinstance(mechanism, AtRest):
        made.installation = mechanism.prepare(made.rest)
    if sealing and not engine.embedded:
        made.own_schemas = {
            arm: shared.schema_for(f"{made.dataset.key} {arm}", run_guard.run_id)
            if cell.url
            else columns.schema_name(arm)
            for arm in ARMS
        }
    elif cell.url and program.load:
        made.own_schemas = dict.fromkeys(ARMS, shared.schema_for(made.dataset.key, run_guard.run_id))
    with made.at_end:
        made.at_end.callback(shutil.rmtree, directory, ignore_errors=True)
        if cell.url:
            users_server.meet(made, paused)
        else:
            try:
                loading.load(made)
            except RunError as error:  # said here: at the end all that fills the disk is gone
                if not (full := marks.disk_full()):
                    raise
                raise RunError(f"{error}; {full}") from None
        yield made


def twins(
    bench: Bench, number: int, server_cpus: set[int], agent_cpus: set[int], arms: tuple[Arm, ...] = ARMS
) -> Twins:
    """Fresh twins: data copied, servers started, nothing connected yet. All of it is gone at the end of the shared session.

    `arms`: in which order, now and in all that is done to both before the load.
    """
    work, dataset, held = bench.directory / f"session-{number}", bench.dataset, bench.planned.conditions
    servers = {
        place: bench.shared.server(_like(bench, place), _server(bench, place, work / place, server_cpus))
        for place in (arms if dataset.separate else dataset.places)
    }
    if bench.cell.url:
        users_server.enter(bench, servers)
    connect = direct = {arm: bench.connection(arm, servers, len(agent_cpus)) for arm in arms}
    relay = 0
    if held.delay_s:
        others = usable_cpus() - server_cpus - agent_cpus
        connect, relay = bench.shared.enter(delayed(bench.guard, direct, held.delay_s, others))
    way = bench.shared.enter(_link(bench)) if held.shaped else None
    by_arm: dict[Arm, Server] = {arm: servers[dataset.place(arm)] for arm in ARMS}
    return Twins(
        connect=connect,
        by_arm=by_arm,
        rest=bench.rest if isinstance(bench.mechanism, AtRest) else None,
        sealing=bench.sealing,
        promised=bench.promised,
        openings={arm: each.opening for arm, each in by_arm.items()} if dataset.separate else {},
        relay=relay,
        netns=way.path if way else None,
        device=way.device if way else "",
        direct=direct,
        place=users_server.place(bench) if bench.cell.url else None,
        refused=bench.servers.refused if bench.cell.url else None,
        servers=list(servers.values()),
        canary=bench.shared.canary,
        server_cpus=server_cpus,
        agent_cpus=agent_cpus,
        embedded=bench.engine.embedded,
    )


@contextmanager
def _link(bench: Bench) -> Iterator[Link]:
    """The way of --bandwidth and --mtu, which the load must have taken."""
    held = bench.planned.conditions
    with linked(bench.guard, held.bits_per_second, held.mtu) as way:
        yield way
        if not way.crossed():
            raise RunError("not a byte crossed the link of --bandwidth or --mtu: the load took another way")


def _like(bench: Bench, place: str) -> str:
    """What a server of this cell is made of: two cells of which this is the same can have one between them."""
    settings = "" if bench.cell.url else sorted(bench.settings(place).items())
    data = bench.directory if bench.cell.url else bench.dataset.template(place)
    own = (place, bench.mechanism.name, sorted(bench.factors.items())) if isinstance(bench.mechanism, AtRest) else ()
    return repr((bench.installation, bench.cell.url, str(data), settings, own))


@contextmanager
def _server(bench: Bench, place: str, directory: Path, cpus: set[int] | None) -> Iterator[Server]:
    if bench.cell.url:
        yield bench.engine.start(bench.installation, directory, bench.guard, logs=bench.logs)
        return
    with bench.volume(place, directory) as volume:
        bench.fetch(place, volume)
        try:
            server = bench.start(place, volume, cpus)
        except RunError as error:
            if place == "encrypted" and isinstance(bench.mechanism, AtRest) and (line := of_encryption(str(error))):
                raise Unproven(f"server witness, encrypted arm: its server does not start: {line}") from None
            raise
        try:
            if bench.engine.volatile:
                loading.refill(bench, place, volume, server)
            yield server
        finally:
            server.stop()
            shutil.rmtree(volume.path, ignore_errors=True)


def of_encryption(words: str) -> str:
    """Of a server's last words the first line that speaks of keys or encryption; empty where none does. Pure."""
    lines = [line.strip() for line in words.splitlines()[1:]]
    return next((line for line in lines if re.search(r"\bkey|keyring|encrypt", line.lower())), "")[:200]


def usable_cpus() -> set[int]:
    return os.sched_getaffinity(0)
