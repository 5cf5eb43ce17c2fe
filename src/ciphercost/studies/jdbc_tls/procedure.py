"""Run the loop of single-row inserts in new Java processes: once each in the published order, then in random rounds. I/O.

A JVM starts by interpreting and compiles what runs often. So the first rows of a process cost more than later ones, with any driver.
Each run is a process of its own: it times its first rows (cold), continues until hardly anything is being compiled, and times more
rows (warm).
"""

from __future__ import annotations

import contextlib
import random
import time

from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import procfs
from ciphercost.host.relay import Relay, moved
from ciphercost.load.jdbc import options
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import CellSpec
from ciphercost.model.study import StudyRun
from ciphercost.plan import schedule
from ciphercost.studies import Stage
from ciphercost.studies.jdbc_tls import wire
from ciphercost.studies.jdbc_tls.loops import Loop
from ciphercost.studies.jdbc_tls.setups import EVERY, ON_THE_WIRE, PUBLISHED, Setup

INTERLEAVED, WIRE = "interleaved", "wire"
SENT, RECEIVED = "sent_bytes", "received_bytes"
"""Series of a wire observation: message sizes for one insert."""
JAVA, LIBRARY = "java", "server_library"
"""Keys of the record's tools."""
COLD, WARM = "cold", "warm"
"""Prefixes of a run's series."""
ANSWER_SECONDS = 600.0
WARM_SLICES = 4
SETTLED, SETTLED_SLICES = 0.10, 4
"""A run is warm if compiling takes at most this share of each of so many slices in a row."""
MOST_WARMING = 24
"""Slices after which a run counts as warm anyway; the record has how much was compiled."""


def run(stage: Stage, loop: Loop) -> None:
    """Observe an insert on the wire, run the published three setups once each, then every setup in random order for each round.

    Raises RunError, Unproven.
    """
    settings = stage.record.settings
    rows, began = int(settings["rows"]), time.monotonic()
    if stage.pair.server and stage.pair.server.library:
        stage.record.tools[LIBRARY] = stage.pair.server.library
    for setup in ON_THE_WIRE:
        on_the_wire(stage, loop, setup, began)
    for setup in PUBLISHED:
        one_run(stage, loop, setup, rows, began, {}, warm=False)
    for number in range(1, int(settings["runs"]) + 1):
        started = time.monotonic()
        order = list(EVERY)
        random.Random(schedule.slice_seed(stage.seed, 0, number, 0, 0)).shuffle(order)  # noqa: S311 - not a secret
        for position, setup in enumerate(order):
            where = {"session": float(number), "position": float(position)}
            one_run(stage, loop, setup, rows, began, where, warm=True)
        stage.say(
            f"cold and warm, round {number} of {settings['runs']:.0f}: {len(order)} starts of Java in {time.monotonic() - started:.0f} s"
        )


def agent_of(stage: Stage, loop: Loop, setup: Setup) -> JdbcAgent:
    """A new Java process with the setup's driver."""
    cell, pair = stage.bench.cell, stage.pair
    driver = options.driver_of(CellSpec(cell.engine, cell.mechanism, client=f"{options.WORD}:{setup.driver}"))
    return JdbcAgent(
        driver,
        EncryptsConnections.of(stage.bench.engine),
        {**loop.options, **setup.options},
        pair.connect["encrypted"],
        cpus=pair.agent_cpus or None,
        log=stage.bench.logs / "agent.log",
        supervisor=stage.bench.supervisor,
    )


def connect(stage: Stage, agent: JdbcAgent, setup: Setup, connection: Connection) -> None:
    """Open one connection and declare the loop's program. Raises Unproven if the connection isn't encrypted as the arm says."""
    agent.program(stage.bench.program)
    answer = agent.connect(setup.arm, connection)
    if answer.encrypted != (setup.arm == "encrypted"):
        raise Unproven(f"client witness, {setup.words}: the loop's connection is not what was proven")
    stage.record.tools[JAVA] = answer.library


def on_the_wire(stage: Stage, loop: Loop, setup: Setup, began: float) -> None:
    """Sizes of one insert and of its answer, seen by a relay; not timed."""
    started = time.monotonic() - began
    empty(stage, loop)
    connection = stage.pair.connect[setup.arm].single
    with Relay(*connection.address) as relay, agent_of(stage, loop, setup) as agent:
        connect(stage, agent, setup, moved(connection, "127.0.0.1", relay.port))
        sizes = wire.of_an_insert(agent, setup.arm, relay, encrypted=setup.arm == "encrypted")
    series = {SENT: sizes.sent, RECEIVED: sizes.received}
    load = {"rows": float(2 * wire.FEW + wire.MORE)}
    stage.keep(StudyRun(setup.call, setup.arm, round(started, 3), load, series, workload=setup.name, design=WIRE))


def one_run(
    stage: Stage, loop: Loop, setup: Setup, rows: int, began: float, where: dict[str, float], *, warm: bool
) -> None:
    """Run one Java process with one connection. Raises Unproven if it isn't encrypted as the arm says."""
    started = time.monotonic() - began
    empty(stage, loop)
    server = stage.pair.server
    sampler = procfs.Sampler(server.pid, server.cgroups) if server else procfs.Sampler()
    with contextlib.closing(sampler), agent_of(stage, loop, setup) as agent:
        connect(stage, agent, setup, stage.pair.connect[setup.arm].single)
        series = timed(agent, sampler, setup, COLD, operations=rows)
        if warm:
            length = stage.record.settings["warm_slice_s"]
            series["warming_slices"] = [float(warm_up(agent, setup, length))]
            series |= timed(agent, sampler, setup, WARM, seconds=length * WARM_SLICES)
        series["start_s"] = [round(time.monotonic() - began - started, 3)]
    design = INTERLEAVED if where else ""
    stage.keep(
        StudyRun(
            setup.call,
            setup.arm,
            round(started, 3),
            {"rows": float(rows), **where},
            series,
            workload=setup.name,
            design=design,
        )
    )


def timed(
    agent: JdbcAgent, sampler: procfs.Sampler, setup: Setup, name: str, *, operations: int = 0, seconds: float = 0.0
) -> dict[str, list[float]]:
    """Insert so many rows, or for so long: µs per insert of time and of CPU time of the server, of Java and of its load thread."""
    sampler.refresh()
    sampler.begin()
    answer = agent.slice(setup.arm, seconds or ANSWER_SECONDS, discard=0.0, operations=operations)
    counters = sampler.end()
    checked(answer)
    return {
        f"{name}_us": [answer.seconds * 1e6 / answer.operations],
        f"{name}_server_us": [counters.server_cpu_ns / 1e3 / answer.operations],
        f"{name}_java_us": [answer.process_cpu_ns / 1e3 / answer.operations],
        f"{name}_load_us": [(answer.cpu_user_ns + answer.cpu_system_ns) / 1e3 / answer.operations],
        f"{name}_compiling_ms": [float(answer.jit_ms)],
        f"{name}_collecting_ms": [float(answer.gc_ms)],
    }


def warm_up(agent: JdbcAgent, setup: Setup, seconds: float) -> int:
    """Run slices of so many seconds until hardly anything is being compiled."""
    calm = 0
    for number in range(1, MOST_WARMING + 1):
        answer = agent.slice(setup.arm, seconds, discard=0.0)
        if answer.errors:
            checked(answer)
        # A slice without an insert, on a machine that stalls, shows nothing about compiling.
        calm = calm + 1 if answer.operations and answer.jit_ms / 1e3 <= SETTLED * answer.seconds else 0
        if calm == SETTLED_SLICES:
            return number
    return MOST_WARMING


def checked(answer: AgentSlice) -> None:
    """Raises AgentError if an insert failed or none ran."""
    if answer.errors or not answer.operations:
        raise AgentError(f"the loop: {answer.first_error or 'no insert ran'}", "statement")


def empty(stage: Stage, loop: Loop) -> None:
    """Empty the table before each run and set the captured loop's first id, which decides the length of an OK packet."""
    stage.agent.connect("loader", stage.pair.direct["plain"].single)
    stage.agent.query("loader", f"TRUNCATE TABLE {loop.table}")
    if loop.first_id:
        stage.agent.query("loader", f"ALTER TABLE {loop.table} AUTO_INCREMENT = {loop.first_id}")
    stage.agent.disconnect("loader")
