"""storms: established connections under a steady open loop, or as fast as they can, while others connect, in slices of its own. I/O, no statistics.

One agent makes the load of the established connections, a second one opens the new ones, each with one operation of the same workload. A storm has three
parts of equal length: before, during and after. Of a failover, the new connections go to a fresh server, and so do the established ones
once the part before is over.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import msgspec

from ciphercost.load.agent import Agent
from ciphercost.load.load_client import LoadClient
from ciphercost.measure import limits
from ciphercost.measure.session import MAX_FAILURES, Session
from ciphercost.model.connection import Connected
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import AgentSlice, Block, SliceRecord
from ciphercost.model.spec import Arm
from ciphercost.model.storms import Storm, StormSlice
from ciphercost.plan import connection_loads, schedule
from ciphercost.prove.load_connections import as_proven, proof_of
from ciphercost.provision import server_pairs
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

LOAD = 0.5
"""Rate of the established connections ÷ that of the cell's open loop, unless `--rate` is given: a storm needs CPU time of its own."""
AT_ONCE_S = 0.001
"""Time in which connections that begin at once are due."""
WORK = 3
"""Operations of each established connection before it counts as one that was always there."""
LIMIT_S = 60.0
"""Seconds that new connections may take in all beyond their part."""
AT_ITS_LIMIT = "if the server is at its connection limit, raise that, or use fewer --clients or a smaller --storm"


def phase(
    session: Session,
    blocks: Iterator[Block],
    bench: PreparedCell,
    pair: ServerPair,
    agent: LoadClient,
    proven: Mapping[Arm, Connected],
) -> Generator[None]:
    """The storms of a session; nothing unless the cell has one. Pauses after every block."""
    storm = bench.planned.storm
    if storm is None:
        return
    session.display.phase(session.measured.number, session.number, "storm")
    saturated = storm.kind == "saturated"
    rate = 0.0 if saturated else session.cell.rate or LOAD * session.open_loop_rate()
    if rate <= 0 and not saturated:
        raise RunError(
            "storm: no rate for the established connections, because the cell has no capacity phase; give one with --rate"
        )
    # The agent ends first, so that nothing waits for its answer after Ctrl-C.
    with ThreadPoolExecutor(1) as pool, bench.agent(pair) as others:
        others.program(bench.program.seeded(session.measured.seed))
        storms = Storms(session, storm, rate, bench, pair, agent, others, proven, pool)
        for block in itertools.islice(blocks, schedule.storm_blocks(session.measured.spec)):
            for position, arm in enumerate(block.arms):
                storms.one(block, position, arm)
            yield
        storms.settle()


class Storms:
    """Makes the storms of one session."""

    def __init__(
        self,
        session: Session,
        storm: Storm,
        rate: float,
        bench: PreparedCell,
        pair: ServerPair,
        agent: LoadClient,
        others: Agent,
        proven: Mapping[Arm, Connected],
        pool: ThreadPoolExecutor,
    ) -> None:
        """`rate`: operations per second of the established connections; 0: as fast as they can. `agent` has these, `others`
        opens the new ones; `proven`: what each arm's proof negotiated."""
        self._session, self._storm, self._rate, self._proven = session, storm, rate, proven
        self._bench, self._pair, self._agent, self._others, self._pool = bench, pair, agent, others, pool
        self._away: set[Arm] = set()
        """Arms whose established connections went to a server that is gone."""
        self._ready: set[Arm] = set()
        """Arms whose new connections have been tried, unless they go to a fresh server each time."""
        self._failures = self._fresh = 0

    def one(self, block: Block, position: int, arm: Arm) -> None:
        """One storm, recorded. Raises RunError if several fail in a row or no new connection succeeds, LoadStopped at a limit of the cell."""
        session = self._session
        length = schedule.storm_part(session.measured.spec)
        length = schedule.lead_in_seconds(length) if position == 0 else length
        draft = StormSlice(
            cell=session.measured.number,
            session=session.number,
            block=block.number,
            order=block.order,
            position=position,
            arm=arm,
            kind=self._storm.kind,
            asked=self._storm.text,
            length=length,
            rate=self._rate,
            wanted=self._storm.clients or max(1, round(self._storm.rate * length)),
        )
        self._pair.watch.arm = arm
        session.alone(arm, "latency")
        try:
            record = self._failover(draft) if self._storm.kind == "failover" else self._beside(draft)
        except AgentError as error:
            self._failures += 1
            session.measured.record.append_beside(msgspec.structs.replace(draft, error=str(error)))
            self._pair.watch.check()
            if self._failures >= MAX_FAILURES:
                raise RunError(f"storm, {arm} arm: {error}") from None
            self._away.update(self._pair.connect)
            self._ready.clear()
            return
        self._failures = 0
        session.measured.record.append_beside(record)
        session.display.slice(record.cell, 3 * length, record.during.done / length if record.during else 0.0, arm)
        self._check(record)

    def settle(self) -> None:
        """Bring established connections that are elsewhere back to the session's own server, and let each work: the first operations of a
        connection take longer.
        """
        for arm in [arm for arm in self._pair.login_order if arm in self._away]:
            self._agent.connect(arm, self._pair.connect[arm])
            self._agent.slice(arm, LIMIT_S, discard=0.0, operations=WORK * self._pair.connect[arm].connections)
        self._away.clear()

    def _beside(self, draft: StormSlice) -> StormSlice:
        """New connections to the server that the established ones use."""
        arm = draft.arm
        self.settle()
        if arm not in self._ready:
            self._open_others(arm, self._pair)
            self._ready.add(arm)
        before = self._part(draft, 1)
        storm = self._begin(draft)
        with _awaited(storm):
            during, after = self._part(draft, 2), self._part(draft, 3)
        return msgspec.structs.replace(draft, before=before, during=during, after=after, back=storm.result())

    def _failover(self, draft: StormSlice) -> StormSlice:
        """All connections of the arm to a fresh server."""
        arm, bench, pair = draft.arm, self._bench, self._pair
        self.settle()
        self._fresh += 1
        with bench.shared.apart():
            name = f"{self._session.number}-storm{self._fresh}"
            standby = server_pairs.start(bench, name, pair.server_cpus, pair.agent_cpus, tuple(pair.connect))
            self._open_others(arm, standby)
            before = self._part(draft, 1)
            began = time.monotonic()
            storm = self._begin(draft)
            self._away.add(arm)
            with _awaited(storm):
                answer = self._agent.connect(arm, standby.connect[arm])
                reconnect = time.monotonic() - began
                as_proven(standby, arm, answer, proof_of(self._pair, arm, self._proven))
                during, after = self._part(draft, 2), self._part(draft, 3)
            record = msgspec.structs.replace(
                draft, before=before, during=during, after=after, back=storm.result(), reconnect_s=reconnect
            )
            self.settle()
            self._others.disconnect(arm)
        return record

    def _open_others(self, arm: Arm, pair: ServerPair) -> None:
        """Make one of the new connections, which shows how they are encrypted and lets the server know the account, and one more operation:
        the first slice of an arm takes 50 ms longer where the client closes its connections.
        """
        slots = connection_loads.new_connections(self._bench.planned)
        try:
            answer = self._others.connect(arm, pair.connect[arm] | {"per_request": True, "connections": slots})
            if (trial := self._others.slice(arm, LIMIT_S, discard=0.0, operations=1)).errors:
                raise AgentError(trial.first_error)
        except AgentError as error:
            raise RunError(
                f"storm, {arm} arm: a new connection beside the established ones failed: {error.words}; {AT_ITS_LIMIT}"
            ) from None
        as_proven(pair, arm, answer, proof_of(self._pair, arm, self._proven))

    def _part(self, draft: StormSlice, number: int) -> AgentSlice:
        """One part of the established connections' load. Raises LoadStopped if it passed a limit of the cell."""
        session = self._session
        seed = schedule.slice_seed(
            session.measured.seed, draft.cell, draft.session, draft.block, 3000 + 10 * draft.position + number
        )
        answer = self._agent.slice(draft.arm, draft.length, discard=0.0, seed=seed, rate=self._rate)
        record = SliceRecord(
            draft.cell, draft.session, "latency", draft.block, draft.order, draft.position, draft.arm, 0.0, draft.length
        )
        record = msgspec.structs.replace(record, rate=self._rate, agent=answer)
        limits.check(session.cell, draft.arm, answer, partial(session.measured.estimator.slice_p99, record))
        return answer

    def _begin(self, draft: StormSlice) -> Future[AgentSlice]:
        """Let the new connections begin."""
        seed = schedule.slice_seed(
            self._session.measured.seed, draft.cell, draft.session, draft.block, 3000 + 10 * draft.position
        )
        return self._pool.submit(
            self._others.slice,
            draft.arm,
            draft.length + LIMIT_S,
            discard=0.0,
            seed=seed,
            rate=self._storm.rate or draft.wanted / AT_ONCE_S,
            operations=draft.wanted,
        )

    def _check(self, record: StormSlice) -> None:
        """Raises RunError if no new connection succeeded."""
        back = record.back
        if back is None or back.operations or not back.errors:
            return
        raise RunError(
            f"storm, {record.arm} arm: all {back.errors} new connections failed: {back.first_error}; {AT_ITS_LIMIT}"
        )


@contextlib.contextmanager
def _awaited(storm: Future[AgentSlice]) -> Iterator[None]:
    """Where a request of the established connections fails, wait for the new ones: their agent takes the next request only then."""
    try:
        yield
    except AgentError:
        storm.exception()
        raise
