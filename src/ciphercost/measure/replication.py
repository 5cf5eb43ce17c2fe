"""replication: what encryption of the link between primary and replica costs, beside the commits that wait for the replica: lag under a
steady rate of writes, a backlog that the replica applies, a full copy. I/O, no statistics.

The session's load are commits that wait for the replica. What is measured here comes after them, in blocks in mirrored order.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import statistics
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.engines.capabilities.replication import CopyRequest, FullCopy, Replicates
from ciphercost.host import deadlines
from ciphercost.host.procfs import tree
from ciphercost.host.run_ownership import hand_over
from ciphercost.load.load_client import LoadClient
from ciphercost.measure.operations.context import Tool
from ciphercost.measure.pause import signal_all
from ciphercost.measure.session import MAX_FAILURES, Session
from ciphercost.model.connection import Connected
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.replication import KINDS, LINK, ReplicationEvent, ReplicationKind
from ciphercost.model.slices import Block, Proof
from ciphercost.model.spec import Arm
from ciphercost.plan import schedule
from ciphercost.prove import proof_verdict, replication_witness
from ciphercost.provision import cache
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.replicas import Replica
from ciphercost.provision.server_pair import ServerPair

SUSTAINABLE = 0.5
"""Rate of the writes under which lag is measured ÷ the rate at which the slower replica applies a backlog, unless `--rate` is given or the
open loop's rate is lower: above 1 the lag would grow.
"""
WARM_UP: tuple[ReplicationKind, ...] = ("catch-up", "copy", "lag")
"""Their order before the first block: the backlog decides the rate for the lag."""
LEAST_BEATS = 5
"""Writes whose median is a lag."""
BEAT_S = 10.0
"""Seconds that a replica may need to show a write."""
PAUSE_S = 0.005
"""Between two writes of which the lag is measured."""
POLL_S = 0.001
"""Between two looks at how much of a backlog the replica has applied."""


def proven(
    bench: PreparedCell, pair: ServerPair, replicas: Mapping[Arm, Replica], session: int
) -> tuple[list[Proof], Mapping[Arm, Connected]]:
    """Prove the links of both arms, and let commits wait for the replicas from then on. Raises RunError."""
    for replica in replicas.values():  # a tool that is missing is an error before any load
        _copy_of(bench, replica, replica.directory / "copy")
    proofs, connected = replication_witness.prove(
        bench.mechanism, replicas, bench.program.replication["word"], pair.canary, session
    )
    for replica in replicas.values():
        replica.synchronous(on=True)
    return proofs, connected


def describe(facts: CellFacts, bench: PreparedCell) -> None:
    """Record in what the arms differ: in the link between their servers."""
    facts.config_diff = [f"{LINK}{' | '.join(Replicates.of(bench.engine).link_settings)}"]
    facts.encryption["verified"] = "yes"


def phase(
    session: Session,
    blocks: Iterator[Block],
    bench: PreparedCell,
    pair: ServerPair,
    agent: LoadClient,
    replicas: Mapping[Arm, Replica],
) -> Generator[None]:
    """The figures of a session; nothing unless the cell has replicas. Pauses after every block."""
    if not replicas:
        return
    session.display.phase(session.measured.number, session.number, "lag, backlog, full copy")
    check_links(session, replicas)
    with contextlib.ExitStack() as stack:
        # The tool ends first, so that nothing waits for its answer after Ctrl-C.
        pool = stack.enter_context(ThreadPoolExecutor(1))
        events = Events(session, bench, pair, agent, replicas, pool, Tool(pair, bench, stack))
        events.warm_up()
        for block in itertools.islice(blocks, schedule.replication_blocks(session.measured.spec)):
            for kind in KINDS:
                for position, arm in enumerate(block.arms[1:], start=1):
                    events.one(kind, block, position, arm)
            yield
    check_links(session, replicas)


def check_links(session: Session, replicas: Mapping[Arm, Replica]) -> None:
    """Raises Unproven if a link is not any more what it was proven to be."""
    for arm, replica in replicas.items():
        session.alone(arm)
        if reason := proof_verdict.failed(replication_witness.again({arm: replica}, session.number)):
            raise Unproven(f"after the load: {reason}")


class Events:
    """Measures the figures of one session."""

    def __init__(
        self,
        session: Session,
        bench: PreparedCell,
        pair: ServerPair,
        agent: LoadClient,
        replicas: Mapping[Arm, Replica],
        pool: ThreadPoolExecutor,
        tool: Tool,
    ) -> None:
        """`agent` has the clients' connections."""
        self._session, self._bench, self._pair, self._agent, self._replicas = session, bench, pair, agent, replicas
        self._pool, self._tool = pool, tool
        self._rate = session.cell.rate or session.open_loop_rate()
        """Operations per second that clients owe while the lag is measured."""
        self._statements = bench.program.replication
        self._beat = self._failures = 0

    def warm_up(self) -> None:
        """Measure everything once in each arm, without a record: the first of each is like no other. Choose the rate for the lag.

        Raises AgentError, RunError.
        """
        applied: list[float] = []
        for kind, arm in itertools.product(WARM_UP, self._replicas):
            if kind == "lag" and not self._session.cell.rate:
                self._rate = min(self._rate, SUSTAINABLE * min(applied))
            self._pair.watch.arm = arm
            self._session.alone(arm)
            found = self.measure(kind, arm)
            if kind == "catch-up":
                applied.append(found["rows"] / found["seconds"])

    def one(self, kind: ReplicationKind, block: Block, position: int, arm: Arm) -> None:
        """One figure, recorded. Raises RunError if several fail in a row."""
        session = self._session
        draft = ReplicationEvent(
            session.measured.number, session.number, block.number, block.order, position, arm, kind
        )
        self._pair.watch.arm = arm
        session.alone(arm, "latency")
        began = time.monotonic()
        try:
            found = self.measure(kind, arm)
        except AgentError as error:
            self._failures += 1
            session.measured.record.append_beside(msgspec.structs.replace(draft, error=str(error)))
            self._pair.watch.check()
            if self._failures >= MAX_FAILURES:
                raise RunError(f"replication, {kind}, {arm} arm: {error}") from None
            return
        self._failures = 0
        session.measured.record.append_beside(msgspec.structs.replace(draft, **found))
        session.display.slice(draft.cell, time.monotonic() - began, 0.0, arm)

    def measure(self, kind: ReplicationKind, arm: Arm) -> dict[str, Any]:
        """Fields of an event. Raises AgentError, RunError."""
        replica = self._replicas[arm]
        do = {"lag": self._lag, "catch-up": self._catch_up, "copy": self._copy}[kind]
        return do(replica)

    def _lag(self, replica: Replica) -> dict[str, Any]:
        """Seconds from the beginning of a write until the replica shows it, while clients write at a steady rate: the median."""
        length = schedule.storm_part(self._session.measured.spec)
        self._beat += 1
        load = self._pool.submit(self._agent.slice, replica.arm, length, discard=0.0, seed=self._beat, rate=self._rate)
        lags: list[float] = []
        try:
            while not load.done() or len(lags) < LEAST_BEATS:
                lags.append(self._shown(replica))
                time.sleep(PAUSE_S)
        finally:
            answer = load.result()
        if answer.errors:
            raise AgentError(answer.first_error)
        return {"seconds": statistics.median(lags), "samples": len(lags), "rate": self._rate}

    def _shown(self, replica: Replica) -> float:
        """Seconds until the replica shows one write."""
        self._beat += 1
        began = time.monotonic()
        replica.primary(self._statements["beat"].replace(":beat", str(self._beat)))
        while replica.replica(self._statements["seen"]) != [[str(self._beat)]]:
            if time.monotonic() - began > BEAT_S:
                raise AgentError(f"the replica does not show a write after {BEAT_S:g} s")
        return time.monotonic() - began

    def _catch_up(self, replica: Replica) -> dict[str, Any]:
        """Seconds that the replica needs for a backlog: it stood still (SIGSTOP) while clients changed rows."""
        parameters, each = self._bench.program.parameters, int(self._statements["each"])
        replica.synchronous(on=False)
        stopped = tree(replica.server.pid)
        try:
            try:
                signal_all(stopped, signal.SIGSTOP)
                replica.write(int(parameters["changes"]))
                position = replica.position()
                began = time.monotonic()
            finally:
                signal_all(stopped, signal.SIGCONT)
            while replica.applied() < position:
                self._pair.watch.check()
                if time.monotonic() - began > deadlines.load():
                    raise AgentError(f"the replica has not applied a backlog after {deadlines.load():g} s")
                time.sleep(POLL_S)
            took = time.monotonic() - began
        finally:
            replica.synchronous(on=True)
        return {"seconds": took, "rows": each * int(parameters["changes"])}

    def _copy(self, replica: Replica) -> dict[str, Any]:
        """Seconds of a full copy over a link like that of the arm."""
        bench, engine = self._bench, replica.engine
        target = replica.directory / "copy"
        target.mkdir(mode=0o700)
        hand_over(target)
        made = _copy_of(bench, replica, target)
        try:
            if made.command:
                took = self._tool.run(made.command, engine.copied_by)["seconds"]
            else:
                began = time.monotonic()
                for statement in made.statements:
                    replica.replica(statement)
                if made.joins:
                    replica.wait(partial(engine.joined, replica.primary, replica.replica), deadlines.load())
                took = time.monotonic() - began
            size = cache.size(target)
        finally:
            shutil.rmtree(target, ignore_errors=True)
        if made.joins:
            replica.synchronous(on=True)
        return {"seconds": took, "bytes": size, "by": engine.copied_by}


def _copy_of(bench: PreparedCell, replica: Replica, target: Path) -> FullCopy:
    """How an arm's copy is made. Raises MissingServer."""
    secrets = bench.shared.secrets / f"copy-{replica.arm}"
    secrets.mkdir(mode=0o700, exist_ok=True)
    hand_over(secrets)
    return replica.engine.full_copy(CopyRequest(bench.installation, replica.link(), target, secrets))
