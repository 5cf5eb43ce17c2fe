"""session: runs one session of one cell: pilot, warm-up, blocks in mirrored order, then latency in an open loop. I/O
through the agent, no statistics.

Every slice is recorded as soon as the agent answers. Time is counted as the load time requested of the agent, so that a
session has the same length on a fast and on a slow machine. Only when operations outlast their slices, the time taken
counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from ciphercost.host import unused_memory
from ciphercost.host.idle import CpuIdlePolling
from ciphercost.load.load_client import LATE, SKEWED, AgentsLost, SliceClient, SliceSampler
from ciphercost.measure import limits, load_witness, new_estimate, search
from ciphercost.measure.cell_measurement import CellMeasurement
from ciphercost.measure.pause import Pause
from ciphercost.measure.pilot import Pilot, log_rate
from ciphercost.measure.slice_marks import JAVA, slice_marks
from ciphercost.measure.warm_up import WarmUp
from ciphercost.model.errors import AgentError, LoadStopped, RunError
from ciphercost.model.slices import AGENTS, TIMEOUT, AgentSlice, Block, SliceRecord
from ciphercost.model.spec import ARMS, COUNTED, OPEN_LOOP, SEARCHING, Arm, CellSpec, Phase
from ciphercost.plan import schedule, settled
from ciphercost.provision.server_pair import ServerPair

PILOT_SLICE = 0.05
"""Seconds. Short enough to show the machine's noise at every slice length that may be chosen."""
LEAST_WARM_UP = 0.01
"""Seconds of a slice. With longer ones, `settled.WARMUP_POINTS` of them would be most of a short run's load."""
LEAST_PILOT = 8
"""Minimum number of slices of a pilot, however slow the operations are."""
LEAST_PILOT_OF_TASK = 4
"""The same of an operator's task, whose slices last as long as it takes, whatever the pilot shows."""
OVERRUN = 1.5
"""A slice that took more than this many times the requested time waited for slow operations; then the time taken
counts.
"""
COMPILE_SLICE, COMPILE_LIMIT, COMPILE_SHARE = 0.2, 8.0, 0.25
"""For an agent that compiles, in seconds: the length of a slice at a session's beginning, and the maximum of all these
slices; then the maximum as a share of the cell's time.
"""
COMPILED_SLICES = 4
"""Number of slices in a row without heavy compiling after which an agent counts as warm."""
REFRESH = 1.0
"""Seconds between two checks of which processes the server has and how much memory they use."""
MAX_FAILURES, MAX_MISTIMED = 3, 20
"""Number of slices in a row that may fail before the cell is abandoned; and of those that many agents did not count together, which
says nothing about the server.
"""


def _cost(asked: float, began: float) -> float:
    """Seconds of load that a slice cost: those requested of the agent, or those it took if operations are slow."""
    took = time.monotonic() - began
    return took if took > OVERRUN * asked else asked


def whole_slice(answer: AgentSlice, length: float, closed: int) -> float:
    """Operations of a whole slice, from those of its counted part. Pure.

    In a closed loop each of `closed` connections also finishes the operation that it is in when the slice ends, of which half is left on
    average.
    """
    return answer.done / answer.seconds * length + closed / 2 if answer.seconds else 0.0


class Session:
    """Makes the load of one session of one cell, over connections that are proven."""

    def __init__(
        self,
        number: int,
        measured: CellMeasurement,
        pair: ServerPair,
        agent: SliceClient,
        samplers: dict[Arm, SliceSampler],
        open_arms: Callable[[], None],
        pause: Pause,
        awake: CpuIdlePolling,
    ) -> None:
        """`open_arms` connects both arms and checks that they are what was proven; `pause` stops the server of the other arm;
        `awake` keeps cores from halting.
        """
        self.number = number
        self.measured = measured
        self.facts, self.budget, self.display = measured.facts, measured.budget, measured.display
        self.samplers = samplers
        self._pair, self._agent, self._open_arms = pair, agent, open_arms
        self._pause, self._awake = pause, awake
        self._arms = schedule.arms(measured.seed, measured.number, number)
        """The arms in this session's order."""
        self._seen = load_witness.Seen()
        """What this session's load shows about encryption."""
        self._last_answer = 0.0
        self._warm_for = 0
        """Slices in a row without heavy compiling."""
        self.done = dict.fromkeys(ARMS, 0.0)
        """Operations of each arm so far, uncounted parts of slices included."""
        self.failed = 0
        """Slices that failed so far."""
        self.draft: SliceRecord | None = None
        """The slice that is being measured. None: there was none yet."""

    def phases(self) -> tuple[Iterator[None], ...]:
        """The session's phases, in order. Run each to its end; it pauses after every block, so that cells can alternate.

        A phase raises RunError if it can't continue, NoSteadyState if there is no level to measure at.
        """
        blocks = schedule.blocks(self.measured.seed, self.measured.number, self.number)
        return self._settle(), self._capacity(blocks), self._latency(blocks), self._search(blocks)

    @property
    def cell(self) -> CellSpec:
        return self.facts.spec

    def pause(self) -> None:
        """Another cell runs now: the time until the next slice does not count as the controller's."""
        self._last_answer = 0.0

    def alone(self, arm: Arm, phase: Phase = "capacity") -> None:
        """Let this arm's server work without the other, as in a slice of this phase."""
        self._pause.only(arm)
        self._awake.keep(self._polling(phase))

    def rest(self) -> None:
        """Stop both servers of this cell until its next turn."""
        self._pause.none()

    # ── phases ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _settle(self) -> Iterator[None]:
        """Pilot, if there was none yet, and warm-up."""
        self._compile()
        if not self.facts.slice_seconds:
            self.facts.slice_seconds = self._pilot()
            self.measured.record.save_facts()
            new_estimate.say(self.display, self.measured.number, self.facts, self.budget)
            yield
        self._warm_up()
        for arm, server in self._pair.by_arm.items():
            self._pause.only(arm)  # a stopped server can't answer
            server.handshakes()  # discard these: they only collect tickets for resumption
        yield

    def _compile(self) -> None:
        """Load both arms until an agent that compiles, and is new in each session, has finished compiling. What follows
        then sees the state that will be measured.
        """
        if not self._agent.compiles:
            return
        self.display.phase(self.measured.number, self.number, "warm-up")
        limit = min(COMPILE_LIMIT, COMPILE_SHARE * self.budget.total_s)
        spent, step = 0.0, 0
        while spent < limit and self._warm_for < COMPILED_SLICES:
            _, cost = self._uncounted("warmup", step, self._arms[step % 2], COMPILE_SLICE)
            spent, step = spent + cost, step + 1

    def _pilot(self) -> float:
        """Record both arms in short slices and choose the slice length from that."""
        if self.measured.spec.slice_seconds:
            return self._agent.fitting(self.measured.spec.slice_seconds)
        self.display.phase(self.measured.number, self.number, "pilot")
        seen, spent, step = Pilot(), 0.0, 0
        length = self._agent.fitting(limits.length(self.cell, PILOT_SLICE))
        least = LEAST_PILOT_OF_TASK if schedule.operation_of(self.cell) else LEAST_PILOT
        while step < least or spent < self.budget.pilot_s:
            arm = self._arms[step % 2]
            answer, cost = self._uncounted("pilot", step, arm, length)
            if answer is not None:
                seen.took[arm].append((answer, cost))
            spent, step = spent + cost, step + 1
        if capacity := seen.capacity():
            self.facts.capacity = capacity
        # Under a limit, operations wait for their turn: their lengths say nothing.
        slowest = (
            None if self.cell.max_rate or schedule.one_shot(self.cell) else self.measured.estimator.slowest_operation
        )
        room = self.budget.capacity_s / (schedule.SLICES_A_BLOCK * schedule.MIN_BLOCKS)
        return self._agent.fitting(seen.slice_length(length, self.budget, self.facts.clients, slowest), room)

    def _warm_up(self) -> None:
        """Alternate the arms until both have reached a steady level."""
        self.display.phase(self.measured.number, self.number, "warm-up")
        coarse = schedule.one_shot(self.cell)
        seen, spent, step = WarmUp(self.budget, steady_by_itself=bool(self.cell.max_rate), coarse=coarse), 0.0, 0
        shortest = max(LEAST_WARM_UP, self.budget.warmup_s / (2 * settled.WARMUP_POINTS))
        length = self._agent.fitting(limits.length(self.cell, shortest))
        ended = False
        while not ended:
            for arm in self._arms if step % 2 == 0 else self._arms[::-1]:
                answer, cost = self._uncounted("warmup", 2 * step, arm, length)
                if answer is not None:
                    seen.rates[arm].append(log_rate(answer))
                spent += cost
            step += 1
            ended, warning = seen.ended(spent, step, warm=not self._agent.compiles or self._warm_for >= COMPILED_SLICES)
            if warning is not None:
                self.measured.warn(warning)

    def _uncounted(self, phase: Phase, position: int, arm: Arm, length: float) -> tuple[AgentSlice | None, float]:
        """Run one slice of pilot or warm-up. Returns the answer, None if it failed, and the time it took, as `_cost` counts
        it.
        """
        began = time.monotonic()
        answer = self._slice(phase, 0, "", position, arm, length, discard=0.0)
        return answer, _cost(length, began)

    def _capacity(self, blocks: Iterator[Block]) -> Iterator[None]:
        """Closed loop: each connection sends its next operation when it has received the answer to the previous one."""
        yield from self.run_blocks("capacity", blocks, self.budget.capacity_s, self.facts.slice_seconds, rate=0.0)
        load_witness.check_sealed(self._pair, self._seen)
        load_witness.check_early(self._pair, self._seen)

    def run_blocks(
        self, phase: Phase, blocks: Iterator[Block], seconds: float, length: float, *, rate: float
    ) -> Iterator[None]:
        spent, done = 0.0, 0
        unused_memory.settle()
        if phase == "capacity":
            self.measured.estimator.expect(self.number, int(seconds / (schedule.SLICES_A_BLOCK * length)) + 1)
        usual = min(self.budget.min_blocks, schedule.MIN_BLOCKS)
        least = schedule.profile_blocks(self.measured.spec.mode) if phase == "profile" else usual
        while spent + schedule.SLICES_A_BLOCK * length <= seconds or (seconds > 0 and done < least):
            spent += self._block(phase, next(blocks), length, dict.fromkeys(ARMS, rate))
            done += 1
            if phase == "capacity":
                self.display.interval(
                    self.measured.number, partial(self.measured.estimator.throughput_interval, self.measured.spec.mode)
                )
                if self.measured.spec.mode == "quick" and self.measured.precise_enough():
                    return
            yield

    def _block(self, phase: Phase, block: Block, length: float, rates: Mapping[Arm, float]) -> float:
        """Run a lead-in and four slices, each arm at its own rate (0: closed loop). Returns the seconds that count as spent."""
        spent = 0.0
        self.display.phase(self.measured.number, self.number, phase)
        for position, arm in enumerate(block.arms):
            if position == 1:
                for sampler in set(self.samplers.values()):
                    sampler.refresh(every=REFRESH)
            asked = self._agent.fitting(schedule.lead_in_seconds(length)) if position == 0 else length
            began = time.monotonic()
            self._slice(phase, block.number, block.order, position, arm, asked, rate=rates[arm])
            spent += _cost(asked, began)
        load_witness.count_handshakes(self.facts, self._pair, self._pause.only)
        unused_memory.give_back()
        return spent

    def _search(self, blocks: Iterator[Block]) -> Iterator[None]:
        """Open loop at several rates: find each arm's highest rate that keeps the cell's objective."""
        if self.measured.objective is None:
            return
        steps = search.Steps(self.measured.objective, self.budget, self.facts.slice_seconds)
        unused_memory.settle()
        while (step := steps.next(self.measured.estimator, self.number)) is not None:
            steps.spent += self._block(step.phase, next(blocks), step.length, step.rates)
            yield

    def _latency(self, blocks: Iterator[Block]) -> Iterator[None]:
        """Open loop: one fixed rate for both arms, each request timed from its scheduled start."""
        if not self.budget.latency_s:
            return
        rate = self.open_loop_rate()
        if rate > 0:
            length = schedule.latency_slice_length(self.budget.latency_s, rate, self.facts.slice_seconds)
            yield from self.run_blocks("latency", blocks, self.budget.latency_s, length, rate=rate)

    def open_loop_rate(self) -> float:
        """Operations per second of the open loop, which the first session decides; 0: unknown."""
        if not self.facts.rate:
            pilot = self.facts.capacity.get("pilot_per_s", 0.0)
            rate = self.measured.estimator.open_loop_rate(pilot, clients=self.facts.clients, think_s=self.facts.think_s)
            slower = min(pilot, self.facts.capacity.get("pilot_encrypted_per_s", pilot))
            rate = limits.open_loop_rate(self.cell, rate, slower)
            self.facts.rate = self.cell.rate or round(rate, 1 if rate < 100 else 0)
            self.measured.record.save_facts()
        return self.facts.rate

    # ── one slice ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _slice(
        self,
        phase: Phase,
        block: int,
        order: str,
        position: int,
        arm: Arm,
        length: float,
        *,
        rate: float = 0.0,
        discard: float = schedule.DISCARD,
    ) -> AgentSlice | None:
        rate = limits.rate(self.cell, rate)
        draft = self.draft = SliceRecord(
            cell=self.measured.number,
            session=self.number,
            phase=phase,
            block=block,
            order=order,
            position=position,
            arm=arm,
            started=round(self.measured.elapsed, 6),
            length=length,
            rate=rate,
        )
        seed = schedule.slice_seed(
            self.measured.seed,
            self.measured.number,
            self.number,
            block,
            schedule.draws(position, even=self.facts.draw == "even") + (1000 if phase in ("pilot", "warmup") else 0),
        )
        self._pair.watch.arm = arm
        self._pause.only(arm)
        self._awake.keep(self._polling(phase))
        sampler = self.samplers[arm]
        sent = time.monotonic()
        if self._last_answer:
            self.measured.record.facts.idle_seconds += sent - self._last_answer
        try:
            answer = self._agent.slice(
                arm,
                length,
                discard=discard,
                seed=seed,
                rate=rate,
                arrivals=("random" if phase in SEARCHING else self.facts.arrivals) if rate else "even",
                on_counting=sampler.begin,
                on_counted=sampler.stop,
            )
        except AgentError as error:
            lost, mistimed = isinstance(error, AgentsLost), error.code in (LATE, SKEWED)
            marks = [AGENTS] if lost or mistimed else [TIMEOUT] if error.code == TIMEOUT else []
            self._fail(msgspec.structs.replace(draft, marks=marks), str(error), lost=lost, mistimed=mistimed)
            return None
        self._last_answer = time.monotonic()
        self.measured.record.facts.load_seconds += self._last_answer - sent
        counters = sampler.end(*self._agent.own_cpu(answer))
        self._warm_for = self._warm_for + 1 if answer.jit_ms / 1e3 <= JAVA * answer.seconds else 0
        if answer.errors and not answer.operations:
            self._check_limits(msgspec.structs.replace(draft, agent=answer, error=answer.first_error))
            self._fail(msgspec.structs.replace(draft, agent=answer), answer.first_error)
            return None
        self.measured.failures = self.measured.mistimed = 0
        self._seen.add(arm, answer)
        self.done[arm] += whole_slice(answer, length, 0 if rate else self.facts.clients)
        record = msgspec.structs.replace(
            draft,
            agent=answer,
            counters=counters,
            reported=self._agent.reported,
            start_skew=self._agent.start_skew,
            marks=slice_marks(answer, counters, self._pair, self._agent.machines),
        )
        self._check_limits(record)
        self.measured.record.append(record)
        self.measured.estimator.add(record)
        counted = position > 0 and phase in COUNTED
        speed = answer.done / answer.seconds if answer.seconds else 0.0
        self.display.slice(self.measured.number, length, speed, arm, record.marks if counted else None)
        return answer

    def _check_limits(self, record: SliceRecord) -> None:
        """Raises LoadStopped if the slice passed a limit of the cell; the slice is then the cell's last."""
        try:
            if record.agent is not None:
                limits.check(self.cell, record.arm, record.agent, partial(self.measured.estimator.slice_p99, record))
        except LoadStopped:
            self.measured.record.append(record)
            raise

    def _polling(self, phase: Phase) -> set[int]:
        """The CPUs that are kept from halting in a slice: the client's and, in a closed loop, which measures capacity,
        the server's too.

        In an open loop the server's cores idle as they would in production, and a request waits for them to wake.
        """
        if self.facts.idle != "poll":
            return set()
        closed = self.cell.regime != "latency" and phase not in OPEN_LOOP
        return self._pair.agent_cpus | (self._pair.server_cpus if closed else set())

    def _fail(self, draft: SliceRecord, reason: str, *, lost: bool = False, mistimed: bool = False) -> None:
        """Record a failed slice instead of leaving a gap. Raises RunError when several fail in a row.

        `lost`: agents were lost; those that are left go on, in the pilot too. `mistimed`: agents did not count the same window;
        the next slice may be in time.
        """
        record = msgspec.structs.replace(draft, error=reason or "no operation finished")
        self.measured.record.append(record)
        self.measured.estimator.add(record)
        self.failed += 1
        self.measured.failures += not (lost or mistimed)
        self.measured.mistimed += mistimed
        self._last_answer = time.monotonic()
        self._pair.watch.check()
        fatal = draft.phase == "pilot" and not mistimed
        if not lost and (fatal or self.measured.failures >= MAX_FAILURES or self.measured.mistimed >= MAX_MISTIMED):
            raise RunError(f"{draft.arm} arm: {record.error}")
        if mistimed:
            return
        self._pause.close()
        # Reopen a lost connection, so that one broken slice costs one block and not the session.
        self._open_arms()
