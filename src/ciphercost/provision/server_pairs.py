"""server_pairs: turns a PlannedCell into a server pair that is running, loaded and reachable. Data is loaded once per
cell; every session gets a fresh copy.

In transit, both arms use one server and differ only in the connection. With column encryption, they use one server with
a schema per arm. At rest (and in an embedded engine), each arm has its own data directory.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import msgspec

from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.host import cpu_quota, run_ownership, supervisor
from ciphercost.host.link import Ends, Link, check_rights, linked, veth
from ciphercost.host.standing import Standing
from ciphercost.load.program import Program
from ciphercost.mechanisms._column import Columns
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.errors import RunError, Unproven
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import conditions, connection_loads
from ciphercost.plan.planned import PlannedCell
from ciphercost.provision import columns, hop_chain, loading, packet_link, scratch_schema, users_server
from ciphercost.provision.dataset import arm_at
from ciphercost.provision.delay import delayed
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell, silent
from ciphercost.provision.server_pair import ServerPair, to_its_end
from ciphercost.provision.servers import Servers
from ciphercost.provision.watch import Watch


@contextmanager
def bench(
    planned: PlannedCell,
    run_supervisor: supervisor.Supervisor,
    scratch: Path,
    logs: Path,
    number: int,
    shared: ExperimentResources,
    *,
    data: bool = True,
    left: Callable[[str], None] = scratch_schema.say_left,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
    servers: Servers | None = None,
    say: Callable[[str], None] = silent,
    show: Callable[[str], None] = silent,
) -> Iterator[PreparedCell]:
    """Find the server, then make and load the data of one cell. Everything is removed at the end.

    `shared`: what all cells of the experiment share; it lives until the end of the experiment. `data` false: don't load
    the workload's tables. `paused`: within it, the terminal is free for a question. `servers`: those that the run has
    already found. `say`, `show`: as in `PreparedCell`. On your own server, nothing is made before `users_server.ready`. Raises RunError, MissingServer.
    """
    cell, engine, mechanism, factors = planned.spec, planned.engine, planned.mechanism, planned.factors
    if planned.linked:
        check_rights()
    if planned.conditions.hides_aes:
        conditions.mask()
        if conditions.mask_provable(cell):
            Payload.of(engine).payload(1)
    program = planned.program
    directory = scratch / f"cell-{number}"
    directory.mkdir(mode=0o711)
    shared.clients = max(shared.clients, connection_loads.server_clients(planned))
    servers = servers or Servers()

    def fits(version: str) -> None:
        engine.check_factors(mechanism.name, factors, version)
        mechanism.check_version(engine, version)

    bindir = cell.bindir or mechanism.bindir()
    installation = servers.find(engine, cell.version, cell.url, bindir, fits, say)
    prepared = PreparedCell(
        planned=planned,
        program=program,
        installation=installation,
        directory=directory,
        shared=shared,
        supervisor=run_supervisor,
        logs=logs,
        left=left,
        servers=servers,
        say=say,
        show=show,
    )
    if isinstance(mechanism, Columns):
        prepared.sealings = {arm: _sealing(prepared, arm) for arm in ARMS}
        program = _sealed(prepared)
    if not engine.loads or not data:
        program = msgspec.structs.replace(program, load=(), check="", sealed=None, creates=False)
    prepared.program = program
    if isinstance(mechanism, AtRest):
        if planned.reference:  # its keys; the compared arm's programs serve both
            mechanism.prepare(prepared.rest_of("plain"))
        prepared.installation = mechanism.prepare(prepared.rest)
    elif planned.reference and not cell.url and not engine.embedded:
        prepared.apart = prepared.server_settings("plain") != prepared.server_settings("encrypted")
    prepared.apart = prepared.apart or prepared.replicated
    if prepared.sealings and not engine.embedded:
        prepared.own_schemas = {
            arm: shared.schema_for(f"{prepared.dataset.key} {prepared.dataset.writer} {arm}", run_supervisor.run_id)
            if cell.url
            else columns.schema_name(arm)
            for arm in ARMS
        }
    elif cell.url and program.creates:
        prepared.own_schemas = dict.fromkeys(
            ARMS, shared.schema_for(f"{prepared.dataset.key} {prepared.dataset.writer}", run_supervisor.run_id)
        )
    with prepared.at_end:
        prepared.at_end.callback(shutil.rmtree, directory, ignore_errors=True)
        if engine.by_command:
            pass  # its commands find the server themselves
        elif cell.url:
            users_server.make_contact(prepared, paused)
        else:
            try:
                loading.load(prepared)
            except RunError as error:  # check now: at the end everything that fills the disk is gone
                if not (full := run_ownership.disk_full()):
                    raise
                raise RunError(f"{error}; {full}") from None
        yield prepared


def _sealing(bench: PreparedCell, arm: Arm) -> columns.Secrets:
    """How an arm's values are encrypted, in a plain arm how they would be."""
    planned = bench.planned.of(arm)
    assert isinstance(planned.mechanism, Columns)
    return columns.secrets_of(planned.mechanism, bench.engine, planned.factors, bench.secrets_of(arm))


def _sealed(bench: PreparedCell) -> Program:
    """The program whose arms store secret values as the cell's mechanism does for each."""
    planned, sealings = bench.planned, bench.sealings
    program = planned.encrypted_program(sealings["encrypted"].codec)
    if planned.reference is None:
        return program
    by_client = sealings["encrypted"].codec.client_side
    return program.beside(planned.reference.encrypted_program(sealings["plain"].codec, beside_client=by_client))


def start(
    bench: PreparedCell, number: int | str, server_cpus: set[int], agent_cpus: set[int], arms: tuple[Arm, ...] = ARMS
) -> ServerPair:
    """A fresh server pair: data copied, servers started, nothing connected yet. All of it is removed at the end of the
    shared session.

    `number`: of the session; servers beside those of a session have a name that begins with it. `arms`: the order of the
    arms, here and in everything that is done to both before the load.
    """
    work, dataset, held = bench.directory / f"session-{number}", bench.dataset, bench.planned.conditions
    servers = {
        place: bench.shared.server(_like(bench, place), _server(bench, place, work / place, server_cpus))
        for place in (arms if dataset.separate else dataset.places)
    }
    if bench.cell.url and not bench.engine.by_command:
        users_server.log_in(bench, servers, arms)
    threads = cpu_quota.threads(len(agent_cpus), cpu_quota.tightest(os.getpid()))  # the agent is in the same group
    straight = {arm: bench.connection(arm, servers, threads) for arm in arms}
    ways = hop_chain.ways(bench, {arm: servers[dataset.place(arm)] for arm in arms}, straight, server_cpus)
    chains = {arm: way.chain for arm, way in ways.items()}
    connect = direct = {arm: ways[arm].connection(chains[arm]) if arm in ways else straight[arm] for arm in arms}
    relay = 0
    others = usable_cpus() - server_cpus - agent_cpus
    if held.delay_s and not bench.planned.by_packet:
        connect, relay = bench.shared.enter(delayed(bench.supervisor, direct, held.delay_s, others))
    ends = packet_link.carried(held.delay_s, held.loss, others) if bench.planned.by_packet else veth
    way = bench.shared.enter(_link(bench, ends)) if bench.planned.linked else None
    by_arm: dict[Arm, Server] = {arm: servers[dataset.place(arm)] for arm in ARMS}
    helpers = [
        *(
            Standing(f"the hop ({chain.title})", of.pid, status=of.poll)
            for chain in chains.values()
            for of in chain.processes
        ),
        *(
            Standing("the encrypting file system's daemon", pid)
            for server in servers.values()
            if server.volume
            for pid in server.volume.pids
        ),
        *([Standing("the relay for --delay", relay)] if relay else []),
        *([Standing("the link's process", way.carrier)] if way and way.carrier else []),
    ]
    return ServerPair(
        connect=connect,
        by_arm=by_arm,
        sides={arm: bench.clients_side(arm) for arm in ARMS},
        asked_for={arm: bench.asked_for(arm) for arm in ARMS},
        rests={arm: bench.rest_of(arm) for arm in ARMS} if isinstance(bench.mechanism, AtRest) else {},
        sealings=bench.sealings,
        promised={arm: bench.promised(arm) for arm in ARMS},
        openings={arm: server.opening for arm, server in by_arm.items()} if dataset.separate else {},
        relay=way.carrier if way and way.carrier else relay,
        link=way,
        direct=direct,
        ways=ways,
        in_clear=bench.mechanism.layer == "control",
        libraries={arm: bench.mechanism.server_library(bench.planned.of(arm).factors) for arm in ARMS},
        fips={arm: bench.mechanism.server_fips(bench.planned.of(arm).factors) for arm in ARMS},
        place=users_server.place(bench) if bench.cell.url else None,
        refused=bench.servers.refused if bench.cell.url else None,
        servers=list(servers.values()),
        canary=bench.shared.canary,
        directory=bench.directory,
        server_cpus=server_cpus,
        agent_cpus=agent_cpus,
        embedded=bench.engine.embedded,
        watch=Watch(bench.supervisor, by_arm, helpers, way),
    )


@contextmanager
def _link(bench: PreparedCell, ends: Ends) -> Iterator[Link]:
    """The link for --bandwidth, --mtu and --loss. Raises RunError if the load did not cross it."""
    held = bench.planned.conditions
    with linked(bench.supervisor, held.bits_per_second, held.mtu, ends) as way:
        yield way
        if not way.crossed():
            raise RunError("no byte crossed the link of --bandwidth, --mtu or --loss: the load took another route")


def _like(bench: PreparedCell, place: str) -> str:
    """A description of what a cell's server consists of. Two cells with the same description can share one server."""
    settings = "" if bench.cell.url else sorted(bench.settings(place).items())
    data = bench.directory if bench.cell.url else bench.dataset.template(place)
    factors = bench.planned.of(arm_at(place)).factors
    own = isinstance(bench.mechanism, AtRest) or bench.replicated
    at_rest = (place, bench.mechanism.name, sorted(factors.items())) if own else ()
    return repr((bench.installation, bench.cell.url, str(data), bench.dataset.writer, settings, at_rest))


@contextmanager
def _server(bench: PreparedCell, place: str, directory: Path, cpus: set[int] | None) -> Iterator[Server]:
    if bench.cell.url:
        yield bench.engine.start(StartRequest(bench.installation, directory, bench.supervisor, logs=bench.logs))
        return
    with bench.volume(place, directory) as volume:
        bench.fetch(place, volume)
        try:
            server = bench.start(place, volume, cpus)
        except RunError as error:
            encrypts = bench.side(arm_at(place)) == "encrypted" and isinstance(bench.mechanism, AtRest)
            if encrypts and (line := encryption_line(str(error))):
                raise Unproven(f"server witness, {place} arm: its server does not start: {line}") from None
            raise
        with to_its_end(server, volume.path):
            if bench.engine.volatile:
                loading.refill(bench, place, volume, server)
            yield server


def encryption_line(words: str) -> str:
    """The first line of a server's last output that mentions keys or encryption; empty if there is none. Pure."""
    lines = [line.strip() for line in words.splitlines()[1:]]
    return next((line for line in lines if re.search(r"\bkey|keyring|encrypt", line.lower())), "")[:200]


def usable_cpus() -> set[int]:
    return os.sched_getaffinity(0)
