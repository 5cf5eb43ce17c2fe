"""What measuring needs to know of a cell's slices so far: precision, carry-over, and the rate of the open loop. Pure.

Only complete blocks count: four good slices at positions 1 to 4 of phase `capacity` or `latency`. Of each block this keeps five
numbers, so a controller needs 40 bytes for four slices, however long it measures.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ciphercost.estimate import disturbance, durations, headline, statistics
from ciphercost.estimate.headline import Sessions
from ciphercost.estimate.histogram import quantiles
from ciphercost.estimate.objective_capacity import Capacities
from ciphercost.estimate.objective_search import Search
from ciphercost.estimate.rows import Rows
from ciphercost.estimate.statistics import Carryover, Interval
from ciphercost.estimate.tally import Floats, error_kinds
from ciphercost.estimate.to_estimate import to_estimate
from ciphercost.estimate.warnings import DISTURBED
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import decode
from ciphercost.model.result import Estimate
from ciphercost.model.slices import AgentSlice, SliceRecord
from ciphercost.model.spec import ARMS, COUNTED, SEARCHING, Arm, Mode, Phase
from ciphercost.plan.latency_objective import parse
from ciphercost.plan.schedule import LEAST_BLOCKS_QUICK, LEAST_SESSIONS, LEAST_SESSIONS_PRECISE

OFFERED, MOST_OFFERED = 0.6, 0.75
"""Rate of the open loop as a share of the plain arm's capacity, and at most as a share of the encrypted arm's."""
MOST_THINKING = 0.8
"""Most clients that may be thinking, as a share; the others wait for the server."""


def has_failed(record: SliceRecord) -> bool:
    """Whether a slice has no figures. In a search, a rate at which no operation finishes is an answer."""
    agent = record.agent
    if record.error or agent is None:
        return True
    return record.phase not in SEARCHING and (agent.done <= 0 or agent.seconds <= 0)


class OnlineEstimator:
    """Takes the slices of one cell in the order of the record. What it tells is available at any time.

    `void_sessions`: numbers of sessions that were repeated; their slices are ignored. `sequential`: the run may stop on
    precision, which limits the degrees of freedom to those of LEAST_SESSIONS sessions. `objective`: the cell's, `p99=5ms`.
    """

    KEEPS_CURVE = False
    """Whether it keeps the slices of the load–latency curve."""

    def __init__(self, void_sessions: Iterable[int] = (), *, sequential: bool = False, objective: str = "") -> None:
        self.counts: Counter[str] = Counter()
        """slices, failed, errors (operations), incomplete (blocks), and one for each mark."""
        self.error_kinds: Counter[str] = Counter()
        """Those errors, by kind."""
        self._void = set(void_sessions)
        self._most_nu = LEAST_SESSIONS - 1 if sequential else None
        self._rates: dict[int, Rows] = {}
        """By session, of each block of capacity: +1 for ABBA and −1 for BAAB, then the log rates of its four slices."""
        self._expected: dict[int, int] = {}
        """By session, how many blocks of capacity it will have."""
        self._done: dict[int, Counter[str]] = defaultdict(Counter)
        """By session, over its blocks of capacity: seconds and work of each arm, e.g. `plain work`."""
        self._latency_blocks: Counter[int] = Counter()
        """By session."""
        self._centres: dict[int, tuple[int, float]] = {}
        self._other: defaultdict[str, float] = defaultdict(float)
        self._open: tuple[str, int, int] | None = None
        self._pending: dict[int, SliceRecord] = {}
        self._broken = False
        self._capacities = Capacities(parse(objective, "objective")) if objective else None

    # ── input ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, record: SliceRecord) -> None:
        """Add one slice. Raises UsageError if the record is damaged."""
        if record.session in self._void:
            return
        agent = record.agent
        failed = has_failed(record)
        if record.phase not in COUNTED:
            if agent is not None and not failed and record.arm == "plain":
                self._other["work"] += agent.done
                self._other["seconds"] += agent.seconds
            return
        here = (record.phase, record.session, record.block)
        if here != self._open:
            self._close_block()
            self._open = here
        counts = self.counts
        if failed:
            counts["failed"] += 1
            self._broken = (
                True  # A failed lead-in spoils its block too, because the arms no longer follow each other as planned.
            )
        if agent is not None:
            counts["errors"] += agent.errors
            counts[f"errors {record.arm}"] += agent.errors
            if agent.error_kinds:
                self.error_kinds.update(error_kinds(record))
        if record.position == 0 or failed:
            return
        counts["slices"] += 1
        for mark in record.marks:
            counts[mark] += 1
        counts[DISTURBED] += disturbance.disturbed(record)
        self._pending[record.position] = record
        if len(self._pending) == 4 and not self._broken:
            self._complete([self._pending[position] for position in (1, 2, 3, 4)])
            self._pending, self._open = {}, None

    def expect(self, session: int, blocks: int) -> None:
        """Take memory for that many blocks of capacity with the session's first one, so that the others take no more."""
        self._expected[session] = blocks

    def void(self, session: int) -> None:
        """Remove a session, because it is repeated."""
        self._void.add(session)
        for by_session in (self._rates, self._done, self._latency_blocks):
            by_session.pop(session, None)
        if self._capacities:
            self._capacities.drop(session)
        self._close_block()

    def _close_block(self) -> None:
        if self._pending or self._broken:
            self.counts["incomplete"] += 1
        self._pending, self._open, self._broken = {}, None, False

    def _complete(self, records: list[SliceRecord]) -> None:
        first, second = records[0].arm, records[1].arm
        in_order = first != second and [record.arm for record in records] == [first, second, second, first]
        if in_order and self._keep(records, 1 if first == "plain" else -1):
            disturbance.count(self.counts, records)
        else:
            self.counts["incomplete"] += 1

    def _keep(self, records: Sequence[SliceRecord], sign: int) -> bool:
        """Take over a complete block, `sign` +1 for ABBA. False if something is missing after all."""
        session = records[0].session
        if records[0].phase in SEARCHING:
            if self._capacities:
                self._capacities.add(records, keep=self.KEEPS_CURVE)
            return True
        if records[0].phase == "latency":
            self._latency_blocks[session] += 1
            return True
        rates = [float(sign)]
        for record in records:
            assert record.agent is not None
            work, seconds = record.agent.done, record.agent.seconds
            rates.append(math.log(work / seconds))
            self._done[session].update({f"{record.arm} work": work, f"{record.arm} seconds": seconds})
        if session not in self._rates:
            self._rates[session] = Rows(len(rates), self._expected.get(session, 0))
        self._rates[session].append(rates)
        return True

    # ── what it tells ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def blocks(self) -> int:
        """Number of complete blocks of capacity, or of latency if there are none."""
        return sum(map(len, self._rates.values())) or self._latency_blocks.total()

    def throughput_interval(self, mode: Mode = "full") -> Estimate | None:
        """Encrypted ÷ plain operations a second with its 95 % interval so far; None with too few blocks."""
        interval = self._throughput(mode)
        return None if interval is None else to_estimate(interval, mode, "operations/s")

    def precise(self, target: float, mode: Mode = "full") -> bool:
        """Whether a run may stop: the half-width of throughput's log ratio is ≤ `target`, with enough blocks or sessions."""
        interval = self._throughput(mode)
        least = LEAST_SESSIONS_PRECISE if mode == "full" else LEAST_BLOCKS_QUICK
        return interval is not None and interval.n >= least and interval.half() <= target

    def capacity_of(self, arm: Arm) -> float:
        """Operations per second of an arm, from its capacity slices; 0 if none ran."""
        work, seconds = (sum(done[f"{arm} {what}"] for done in self._done.values()) for what in ("work", "seconds"))
        return work / seconds if seconds else 0.0

    def plain_capacity(self) -> float:
        """Operations per second of the plain arm, from its capacity slices, or else from warm-up and pilot; 0 if none ran."""
        if capacity := self.capacity_of("plain"):
            return capacity
        return self._other["work"] / self._other["seconds"] if self._other["seconds"] else 0.0

    def slice_p99(self, record: SliceRecord) -> float:
        """99th percentile of one slice's operations, seconds; 0 without operations."""
        histogram = decode(record.agent.histogram) if record.agent and record.agent.operations else None
        return float(quantiles(histogram, [0.99])[0]) / 1e9 if histogram else 0.0

    def slowest_operation(self, slices: Iterable[tuple[AgentSlice, float]], clients: int) -> float:
        """See `durations.slowest_usual`. Raises UsageError if a histogram is damaged."""
        try:
            return durations.slowest_usual(slices, clients)
        except ValueError as error:
            raise UsageError(f"pilot: {error}") from None

    def open_loop_rate(self, fallback: float = 0.0, *, clients: int = 0, think_s: float = 0.0) -> float:
        """Operations per second of the open loop, for both arms: OFFERED of the plain arm's capacity, or less if the encrypted arm needs it.

        Above an arm's capacity its queue grows as long as the phase lasts, and latency only measures the phase. A thinking client, for
        `think_s` seconds per operation, keeps its connection, so some of the `clients` must be left.
        `fallback`: the plain arm's capacity if no slice has measured it.
        """
        rate = OFFERED * (self.plain_capacity() or fallback)
        if encrypted := self.capacity_of("encrypted"):
            rate = min(rate, MOST_OFFERED * encrypted)
        if think_s > 0 and clients:
            rate = min(rate, MOST_THINKING * clients / think_s)
        return rate

    def next_of_search(self, session: int, lowest: float, *, alone: bool) -> tuple[Phase, dict[Arm, float]] | None:
        """The next block of the search for capacity at the cell's objective: phase and each arm's rate. None: the search is over.

        `lowest`: the lowest rate that has enough requests; `alone`: the run has one session.
        """
        if self._capacities is None:
            return None
        search = Search(
            self._capacities.objective,
            {arm: self._capacities.arms[arm] for arm in ARMS},
            self.plain_capacity(),
            lowest,
            alone,
        )
        return search.next(session)

    def carryover(self, session: int | None = None) -> Carryover:
        """λ with its p-value, of one session or of all capacity blocks so far."""
        sessions = list(self._rates) if session is None else [session]
        signs, rates = self._log_rates(sessions)
        return statistics.carryover(rates, signs)

    def carries_over(self, session: int) -> bool:
        """Whether one arm's load changed the other's rate in this session (λ ≠ 0)."""
        return self.carryover(session).significant

    # ── by session ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _log_rates(self, sessions: Iterable[int]) -> tuple[Floats, Floats]:
        """Signs (blocks,) and log rates by position (blocks, 4) of these sessions, in the order of measurement."""
        rows = [self._rates[session].values for session in sessions if session in self._rates]
        table = np.concatenate([np.empty((0, 5)), *rows])
        return table[:, 0], table[:, 1:]

    def _values(self, session: int) -> Floats:
        """The log ratio of each block of a session, encrypted − plain."""
        signs, rates = self._log_rates([session])
        values: Floats = signs * (rates[:, 1] + rates[:, 2] - rates[:, 0] - rates[:, 3]) / 2
        return values

    def _centre(self, session: int) -> float:
        """Session value, recomputed only when the session has grown, so that finished sessions cost nothing."""
        known = self._centres.get(session)
        if known is None or known[0] != len(self._rates[session]):
            known = (len(self._rates[session]), statistics.hodges_lehmann(self._values(session)))
            self._centres[session] = known
        return known[1]

    def _sessions(self, sessions: Iterable[int]) -> Sessions:
        """What each of these sessions says of throughput, in this order."""
        wanted = list(sessions)

        def sums(arm: Arm) -> tuple[Floats, Floats]:
            work, seconds = (
                [self._done[session][f"{arm} {what}"] for session in wanted] for what in ("work", "seconds")
            )
            return np.array(work, dtype=np.float64), np.array(seconds, dtype=np.float64)

        return Sessions(np.array([self._centre(session) for session in wanted]), sums("plain"), sums("encrypted"))

    def _throughput(self, mode: Mode) -> Interval | None:
        if mode == "full" and len(self._rates) >= 2:
            return headline.over_sessions(self._sessions(self._rates), self._most_nu)
        every = np.concatenate([self._values(session) for session in self._rates] or [np.empty(0)])
        return statistics.block_interval(every) if len(every) >= 2 else None


def watching(void_sessions: Iterable[int], sequential: bool, objective: str = "") -> OnlineEstimator:
    """What a cell has shown so far, during measurement. `sequential`: the run may stop before its time is over. `objective`: the cell's."""
    return OnlineEstimator(void_sessions, sequential=sequential, objective=objective)
