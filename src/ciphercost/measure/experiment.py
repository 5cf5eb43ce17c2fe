"""experiment: runs cells that share their sessions, from finding their servers to their last block. Most often it is
one cell.

In an experiment of several cells, every session starts all of them, and their blocks alternate in an order drawn anew
each round. So all cells see the same disturbances, and can be compared with each other as well as with their own plain
arms.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping

from ciphercost.host import idle, idle_setting, run_ownership
from ciphercost.load.agent import Agent
from ciphercost.load.driver_agent import DriverAgent
from ciphercost.load.jdbc import options as jdbc_options
from ciphercost.load.load_client import SliceClient
from ciphercost.measure import (
    connection_memory,
    enciphered,
    fio,
    key_rotation,
    operations,
    profiling,
    round_trips,
    site,
    storms,
)
from ciphercost.measure.cell_errors import ends_all, without_block
from ciphercost.measure.cell_measurement import CellMeasurement
from ciphercost.measure.command_cell import open_commands
from ciphercost.measure.fleet_cell import load_clients, on_those_left
from ciphercost.measure.pause import Pause
from ciphercost.measure.progress import PREPARING
from ciphercost.measure.recorded_facts import (
    describe,
    describe_agent,
    describe_at_rest,
    describe_awake,
    describe_client,
    describe_columns,
    describe_idle,
    describe_link,
    describe_quota,
    describe_rows,
    describe_scale,
    describe_session,
    describe_version,
    opened,
    warn,
)
from ciphercost.measure.run_context import CellRun, LiveCell, Run
from ciphercost.measure.samplers import samplers_of
from ciphercost.measure.session import Session
from ciphercost.measure.warm_up import NoSteadyState
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model import system_error
from ciphercost.model.connection import Connected
from ciphercost.model.errors import CiphercostError, LoadStopped, RunError, Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import Warning_
from ciphercost.model.run_directory import Record, read_slices
from ciphercost.model.spec import ARMS, Arm, Spec
from ciphercost.plan import schedule
from ciphercost.prove import aes_mask, destructive_test, load_connections, proof_verdict, same_rows, witnesses
from ciphercost.prove.replies import Verdict
from ciphercost.provision import cache, own_scale, scratch_schema, server_pairs, users_server
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

DONE = object()
BLOCKS_OF_FIO_QUICK = 4


def experiment(numbers: list[int], run: Run) -> None:
    """Run cells that share their sessions (most often one), from finding their servers to their last session.

    An error of one cell goes into its facts; the others continue. Finished cells, and complete sessions of an
    interrupted run, are kept as they are.
    """
    cells = run.record.facts.cells
    together = sum(run.cells[number].clients for number in numbers) if len(numbers) > 1 else 0
    shared = ExperimentResources(run.scratch / "secrets" / f"group-{numbers[0]}", together)
    with contextlib.ExitStack() as stack:
        units: list[CellRun] = []
        last = max((session for number in numbers for session in cells[number].whole_sessions), default=0)
        wanted = [number for number in numbers if cells[number].status is None]
        for number in wanted:
            run.display.phase(number, last + 1, PREPARING)
            if stopped_elsewhere(cells[number], run):
                continue
            with recording_errors(cells[number], run):
                bench = stack.enter_context(
                    server_pairs.bench(
                        run.cells[number],
                        run.supervisor,
                        run.scratch,
                        run.record.logs,
                        number,
                        shared,
                        left=functools.partial(schema_left, cells[number]),
                        paused=run.display.paused,
                        servers=run.servers,
                        say=run.display.say,
                        show=functools.partial(run.display.loading, number),
                    )
                )
                describe(cells[number], bench)
                if isinstance(bench.mechanism, AtRest) and not cells[number].whole_sessions:
                    run_destructive_test(number, bench, cells[number], run)
                facts = run.record.facts
                measurement = CellMeasurement(
                    number, facts.spec, cells[number], facts.seed, run.record, run.display, run.stopping
                )
                if cells[number].whole_sessions:
                    measurement.recall(record for record in read_slices(run.record.directory) if record.cell == number)
                units.append(CellRun(bench, measurement))
        session = last
        while live := [unit for unit in units if unit.wants_more]:
            session += 1
            one_session(session, live, shared, run)
            for unit in live:
                if unit.measurement.facts.status is None and unit.measurement.must_repeat(session):
                    run.display.say(
                        f"{title(unit.measurement.facts)}: carry-over between arms detected; slice length is now "
                        f"{unit.measurement.facts.slice_seconds:g} s"
                    )
            whole = [unit.measurement for unit in live if unit.measurement.facts.status is None]
            for measurement in whole:
                measurement.facts.whole_sessions = [*measurement.facts.whole_sessions, session]
            run.record.checkpoint(*(measurement.number for measurement in whole))
        for unit in units:
            with recording_errors(unit.measurement.facts, run):
                facts_ = unit.measurement.facts
                if facts_.status is None and not unit.measurement.estimator.blocks:
                    records = (
                        record for record in read_slices(run.record.directory) if record.cell == unit.measurement.number
                    )
                    raise RunError(without_block(records, facts_.slice_seconds))
                facts_.status = facts_.status or "ok"
    for number in wanted:
        status, reason = cells[number].status, cells[number].reason
        run.display.done(number, f"{status}{': ' + reason if reason else ''}")
    run.record.save_facts()
    run.record.checkpoint(*(number for number in wanted if cells[number].status == "ok"))


def run_destructive_test(number: int, bench: PreparedCell, facts: CellFacts, run: Run) -> None:
    """Check what only a disposable server pair can show. Raises Unproven."""
    run.display.phase(number, 1, "destructive test")
    outcome = destructive_test.run(bench)
    facts.findings = outcome.findings
    if outcome.rotation_s is not None:
        facts.key_life["rotation_s"] = outcome.rotation_s
    run.record.prove(number, outcome.proofs)
    if reason := proof_verdict.failed(outcome.proofs):
        raise Unproven(reason)


def schema_left(facts: CellFacts, sentence: str) -> None:
    """Report a scratch schema that is still on your server: at once, and in the result."""
    facts.warnings = [*facts.warnings, Warning_("schema-left", sentence)]
    scratch_schema.say_left(sentence)


@contextlib.contextmanager
def recording_errors(facts: CellFacts, run: Run) -> Iterator[None]:
    """Record any error in here as the cell's end, in its facts. A usage error that ends every cell is raised instead."""
    try:
        yield
        return
    except Unproven as error:
        facts.status, facts.reason = "unproven", str(error)
    except NoSteadyState as error:
        facts.status, facts.reason = "no-steady-state", str(error)
    except LoadStopped as error:
        facts.status, facts.reason = "failed", str(error)
        if facts.spec.url:
            run.stopped.setdefault(facts.spec.url, title(facts))
    except OSError as error:
        facts.status = "failed"
        facts.reason = system_error.words(error)
    except CiphercostError as error:
        if ends_all(error, [cell.spec for cell in run.record.facts.cells]):
            raise
        facts.status, facts.reason = "failed", str(error)
    if facts.status == "failed" and (full := run_ownership.disk_full()) and full not in facts.reason:
        facts.reason += f"; {full}"
    run.record.save_facts()


def stopped_elsewhere(facts: CellFacts, run: Run) -> bool:
    """Whether another cell stopped the load on this cell's server; then this one has failed too."""
    stopper = run.stopped.get(facts.spec.url)
    if stopper is None:
        return False
    facts.status, facts.reason = "failed", f"not measured: {stopper} stopped the load on this server"
    return True


def one_session(session: int, units: list[CellRun], shared: ExperimentResources, run: Run) -> None:
    """Start a fresh, proven server pair for every cell, then run their phases with the cells' blocks interleaved."""
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(shared.session())
            # For all cells at once: after the controller has left the measured cores, it sees only the CPUs left to it.
            regimes = {unit.measurement.cell.regime for unit in units}
            seed, available = run.record.facts.seed, available_cpus()
            physical = idle_setting.physical(available)
            cores = {regime: schedule.cores(seed, session, available, regime, physical) for regime in regimes}
            stack.enter_context(off_measured_cores({cpu for both in cores.values() for side in both for cpu in side}))
            awake = stack.enter_context(idle.CpuIdlePolling(run.supervisor))
            ready: list[LiveCell] = []
            for unit in units:
                with recording_errors(unit.measurement.facts, run):
                    opening = open_commands if unit.bench.engine.by_command else open_unit
                    ready.append(opening(session, unit, cores[unit.measurement.cell.regime], awake, stack, run))
            rounds = schedule.turns(run.record.facts.seed, session, len(ready))
            for steps in zip(*(live_cell.phases for live_cell in ready), strict=True):
                interleave(list(zip(ready, steps, strict=True)), rounds, run)
            awake.keep(())
            for live_cell in ready:
                describe_awake(live_cell.session.facts, awake.failed())
    except (CiphercostError, OSError) as error:
        # Releasing what the cells shared failed, so all of them end here.
        for unit in units:
            if unit.measurement.facts.status is None:
                with recording_errors(unit.measurement.facts, run):
                    raise error


def interleave(phases: list[tuple[LiveCell, Iterator[None]]], rounds: Iterator[tuple[int, ...]], run: Run) -> None:
    """Run one phase of every cell to its end: in each round, every unfinished cell has one block."""
    going = {
        number: cell_phase for number, cell_phase in enumerate(phases) if cell_phase[0].session.facts.status is None
    }
    while going:
        for number in next(rounds):
            if number not in going:
                continue
            live, steps = going[number]
            if len(going) > 1:
                live.session.pause()
            ended = True
            if stopped_elsewhere(live.session.facts, run):
                live.session.rest()
                del going[number]
                continue
            with recording_errors(live.session.facts, run):
                # A worker process of the server may outlive the supervisor and keep answering.
                run.supervisor.check()
                ended = next(steps, DONE) is DONE
            if len(going) > 1:
                live.session.rest()
            if ended:
                del going[number]


def open_unit(
    session: int,
    unit: CellRun,
    cores: tuple[tuple[int, ...], tuple[int, ...]],
    awake: idle.CpuIdlePolling,
    stack: contextlib.ExitStack,
    run: Run,
) -> LiveCell:
    """Start a fresh server pair, prove it and connect to it. `stack` closes what was opened.

    `cores`: CPUs of the server and of the agent. `awake`: keeps them from halting during load.
    """
    bench, measurement, record = unit.bench, unit.measurement, run.record
    facts, seed = measurement.facts, record.facts.seed
    measurement.display.phase(measurement.number, session, "starting and proving")
    # ciphercost does not choose the CPUs of your own server.
    server_cpus, agent_cpus = set(() if facts.spec.url else cores[0]), set(cores[1])
    pair = server_pairs.start(bench, session, server_cpus, agent_cpus, schedule.arms(seed, measurement.number, session))
    local_agent, agent = stack.enter_context(load_clients(session, bench, pair, facts, record, run.cluster))
    local_agent.watch(pair.watch.look)
    encrypted = [arm for arm in pair.connect if pair.side(arm) == "encrypted"]
    for by in dict.fromkeys(map(local_agent.of, encrypted)):
        if isinstance(by, DriverAgent):
            connect = {arm: connection for arm, connection in pair.connect.items() if local_agent.of(arm) is by}
            by.enter(connect, pair.note if facts.spec.url else None, encrypted)
    connected = proven(session, unit, pair, local_agent, record)
    users_server.ready(bench, pair)
    own_scale.find(bench, pair, local_agent)
    describe_scale(facts, bench)
    describe_session(facts, pair, connected)
    describe_client(facts, pair, local_agent)
    describe_quota(facts, pair, local_agent)
    describe_agent(facts, local_agent.hello)
    describe_idle(facts, pair)
    enciphered.floors(facts, bench, local_agent)
    on_those_left(lambda: agent.program(bench.program.seeded(seed)))

    def open_arm(arm: Arm) -> None:
        answer = opened(facts, session, pair, arm, agent)
        load_connections.load_connections(bench.engine, bench.mechanism, pair, agent, arm, answer, connected)
        describe_version(facts, answer.server_version)

    def open_arms() -> None:
        for arm in pair.login_order:
            open_arm(arm)

    def compare_rows() -> Verdict:
        open_arms()
        slice_seed = schedule.slice_seed(seed, measurement.number, session, 0, 0)
        return same_rows.same_rows(pair, agent, bench.rows_to_compare, slice_seed, facts.spec.max_rate)

    describe_rows(facts, on_those_left(compare_rows))
    warn(facts, site.COMPRESSED, site.compressed(bench, pair, local_agent))
    if isinstance(bench.mechanism, AtRest):
        describe_at_rest(facts, bench.mechanism, pair, agent)
    if pair.sealing is not None:
        describe_columns(facts, bench, pair, agent)
    if round_trips.wanted(bench) and not facts.traffic:
        facts.chatter, facts.traffic = round_trips.measure(bench, pair, local_agent)
    stack.callback(describe_link, facts, pair, bench.supervisor)
    samplers = samplers_of(pair, agent, stack)
    if not pair.embedded and pair.server is None and agent.server_sampler is None:
        unseen = Warning_("server-not-seen", "the server's processes can't be seen from here: client-side figures only")
        warn(facts, unseen.code, [unseen])
    pause = stack.enter_context(contextlib.closing(Pause(pair.by_arm)))
    maker: SliceClient = agent
    if bench.program.operation:
        maker = operations.client(bench, pair, local_agent, facts, samplers, stack)
    if wants_storage(bench, record.facts.spec, session):
        pause.none()
        measure_storage(session, unit, pair, record)
        pause.close()
    if cache.empties(facts.spec):
        # Only after the proofs, which have read every file.
        places = [path for server in pair.by_arm.values() if (v := server.volume) for path in (v.path, *v.backing)]
        facts.encryption["page_cache"] = cache.drop(places)
    reopened = functools.partial(on_those_left, open_arms)
    load = Session(session, measurement, pair, maker, samplers, reopened, pause, awake)
    blocks = schedule.blocks(seed, measurement.number, session, schedule.PROFILED)
    by_java = jdbc_options.WORD in agent.hello.drivers.split()
    profiled = profiling.phase(load, blocks, pair, agent, bench.supervisor, run.scratch, by_java=by_java)
    stack.callback(profiled.close)
    beside = (
        storms.phase(
            load, schedule.blocks(seed, measurement.number, session, schedule.STORMY), bench, pair, agent, connected
        ),
        connection_memory.phase(
            load, schedule.blocks(seed, measurement.number, session, schedule.MEMORY), bench, pair, connected
        ),
        key_rotation.phase(load, bench, pair),
    )
    for phase in beside:
        stack.callback(phase.close)
    pair.watch.check()  # so that it knows the processes that the servers have now
    settle, *counting, search = load.phases()
    phases = settle, *(enciphered.counted(load, bench, agent, phase) for phase in counting), search, profiled, *beside
    return LiveCell(load, tuple(map(pair.watch.explained, phases)))


def proven(session: int, unit: CellRun, pair: ServerPair, agent: Agent, record: Record) -> Mapping[Arm, Connected]:
    """Run every witness for both arms and record the proofs. Returns what each arm negotiated. Raises Unproven."""
    bench = unit.bench
    if bench.sealing:
        # The column witnesses need the tables. Both arms connect alike, so no data goes over the wrong connection.
        users_server.ready(bench, pair)
    proofs, connected = witnesses.prove(bench.engine, bench.mechanism, pair, agent, session)
    if bench.mask:
        proofs += aes_mask.prove(bench, pair, agent, session)
    record.prove(unit.measurement.number, proofs)
    mute = bench.engine.silent(bench.mechanism.layer)
    alone = bench.cell.url and not bench.planned.reference
    enforced = witnesses.instead(bench.engine, bench.mechanism, proofs, connected.get("encrypted")) if alone else ""
    advice = functools.partial(users_server.what_to_do, bench, pair, agent)
    witnesses.require(proofs, bench.mechanism, mute, pair.closed, bench.planned.witnesses, enforced, advice)
    return connected


def wants_storage(bench: PreparedCell, spec: Spec, session: int) -> bool:
    """Whether fio runs as well: it is installed, the arms' file systems differ, and the cell asks for it or has time
    for it.

    It runs in every other session: it takes as long as the server's load and has less to measure.
    """
    below = isinstance(bench.mechanism, AtRest) and bench.mechanism.loaded_once
    wanted = bench.cell.fio_bytes or spec.time >= fio.LEAST_CELL_SECONDS
    return below and session % 2 == 1 and bool(wanted) and bool(fio.find())


def measure_storage(session: int, unit: CellRun, pair: ServerPair, record: Record) -> None:
    """Run fio on both arms' directories and record the results."""
    measurement, facts = unit.measurement, record.facts
    measurement.display.phase(measurement.number, session, "fio on both directories")
    directories = {arm: volume.path.parent for arm in ARMS if (volume := pair.by_arm[arm].volume)}
    blocks = 1 if facts.spec.mode == "full" else BLOCKS_OF_FIO_QUICK
    size = unit.bench.cell.fio_bytes or fio.SIZE
    for storage_slice in fio.measure(
        directories, session, facts.seed, unit.bench.supervisor, cell=measurement.number, blocks=blocks, size=size
    ):
        record.append_beside(storage_slice)


@contextlib.contextmanager
def off_measured_cores(measured: set[int]) -> Iterator[None]:
    """Keep the controller off the measured cores, if there are others."""
    before = os.sched_getaffinity(0)
    others = before - measured
    if others:
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def available_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def title(facts: CellFacts) -> str:
    """`postgresql:tls point-select`, as shown to users."""
    cell = facts.spec
    version = f"@{cell.version}" if cell.version else ""
    what = cell.variant or (cell.script_names or cell.workload)
    return f"{cell.engine}{version}:{cell.mechanism} {what}"
