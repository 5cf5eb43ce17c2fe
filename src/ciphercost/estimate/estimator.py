"""Turns the slices of a cell, one by one, into ratios with intervals, a verdict and warnings. Pure; METHODOLOGY.md has the method.

Only complete blocks count: four good slices at positions 1 to 4 of phase `capacity` or `latency`. Each block is kept as
four rows of numbers, not as records, so estimating a run of 100,000 slices takes about 20 MB.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from ciphercost.estimate import durations, latency_ratios, statistics, totals
from ciphercost.estimate.client_ratios import client_ratios
from ciphercost.estimate.cost_ratios import RATIOS, added, ratio_of_totals, throughput_differs
from ciphercost.estimate.histogram import Histogram, decode, merge, quantiles
from ciphercost.estimate.latency_ratios import QUANTILES_BY_METRIC, WHOLE_SESSIONS
from ciphercost.estimate.stated import around, stated, with_totals
from ciphercost.estimate.statistics import Carryover, Interval
from ciphercost.estimate.tally import QUANTILES, Tally, error_kinds
from ciphercost.estimate.verdict import judge
from ciphercost.estimate.warnings import DISTURBANCES, DISTURBED, describe, warnings
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.result import CellEstimate, Estimate
from ciphercost.model.slices import AgentSlice, SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.plan.schedule import LEAST_BLOCKS_QUICK, LEAST_SESSIONS

UNITS = {"throughput": "operations/s"} | {name: unit for name, _, _, unit in RATIOS}
OFFERED, MOST_OFFERED = 0.6, 0.75
"""Rate of the open loop as a share of the plain arm's capacity, and at most as a share of the encrypted arm's."""
MOST_THINKING = 0.8
"""Most clients that may be thinking, as a share; the others wait for the server."""


class CellEstimator:
    """Takes the slices of one cell in the order of the record. Estimates are available at any time.

    `void_sessions`: numbers of sessions that were repeated; their slices are ignored. `sequential`: the run may stop on
    precision, which limits the degrees of freedom to those of LEAST_SESSIONS sessions. `recorded`: slices come from a
    file, so their histograms are checked too.
    """

    def __init__(self, void_sessions: Iterable[int] = (), *, sequential: bool = False, recorded: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        """slices, failed, errors (operations), incomplete (blocks), and one for each mark."""
        self.error_kinds: Counter[str] = Counter()
        """Those errors, by kind."""
        self._void = set(void_sessions)
        self._recorded = recorded
        self._most_nu = LEAST_SESSIONS - 1 if sequential else None
        self._tallies = {"capacity": Tally(), "latency": Tally()}
        self._values: dict[int, array[float]] = defaultdict(lambda: array("d"))
        self._centres: dict[int, tuple[int, float]] = {}
        self._other: defaultdict[str, float] = defaultdict(float)
        self._open: tuple[str, int, int] | None = None
        self._pending: dict[int, SliceRecord] = {}
        self._broken = False

    # ── input ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, record: SliceRecord) -> None:
        """Add one slice. Raises UsageError if its histogram is damaged."""
        if record.session in self._void:
            return
        agent = record.agent
        failed = bool(record.error) or agent is None or agent.done <= 0 or agent.seconds <= 0
        if record.phase not in self._tallies:
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
            if agent.error_kinds:
                self.error_kinds.update(error_kinds(record))
        if record.position == 0 or failed:
            return
        counts["slices"] += 1
        for mark in record.marks:
            counts[mark] += 1
        counts[DISTURBED] += any(mark in DISTURBANCES for mark in record.marks)
        self._pending[record.position] = record
        if len(self._pending) == 4 and not self._broken:
            self._complete(here, [self._pending[position] for position in (1, 2, 3, 4)])
            self._pending, self._open = {}, None

    def void(self, session: int) -> None:
        """Remove a session from the estimate, because it is repeated."""
        self._void.add(session)
        self._values.pop(session, None)
        for tally in self._tallies.values():
            tally.drop(session)
        self._close_block()

    def _close_block(self) -> None:
        if self._pending or self._broken:
            self.counts["incomplete"] += 1
        self._pending, self._open, self._broken = {}, None, False

    def _complete(self, here: tuple[str, int, int], records: list[SliceRecord]) -> None:
        phase, session, _ = here
        first, second = records[0].arm, records[1].arm
        if first == second or [record.arm for record in records] != [first, second, second, first]:
            self.counts["incomplete"] += 1
            return
        sign = 1 if first == "plain" else -1
        latencies = None
        if phase == "latency":
            latencies = self._histograms(records, sign)
            if latencies is None:
                self.counts["incomplete"] += 1
                return
        rates = self._tallies[phase].append(session, sign, records, latencies)
        if phase == "capacity":
            self._values[session].append(sign * (rates[1] + rates[2] - rates[0] - rates[3]) / 2)

    def _histograms(self, records: list[SliceRecord], sign: int) -> tuple[Histogram, Histogram] | None:
        """Both arms' histograms of a block (plain, encrypted), or None if a slice has none."""
        texts = [record.agent.histogram for record in records if record.agent is not None]
        if not all(texts):
            return None
        try:
            decoded = [decode(text) for text in texts]
            if self._recorded:
                for record, one in zip(records, decoded, strict=True):
                    checked.histogram(record, one.total)
            outer, inner = merge([decoded[0], decoded[3]]), merge([decoded[1], decoded[2]])
        except ValueError as error:
            raise UsageError(f"session {records[0].session}, block {records[0].block}: {error}") from None
        if not len(outer.counts) or not len(inner.counts):
            return None
        return (outer, inner) if sign > 0 else (inner, outer)

    # ── at any time ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def blocks(self) -> int:
        """Number of complete blocks of capacity, or of latency if there are none."""
        return sum(map(len, self._values.values())) or len(self._tallies["latency"])

    def throughput_interval(self, mode: Mode = "full") -> Estimate | None:
        """Encrypted ÷ plain operations a second with its 95 % interval so far; None with too few blocks."""
        interval = self._throughput(mode)
        return None if interval is None else stated(interval, mode, "operations/s")

    def precise(self, target: float, mode: Mode = "full") -> bool:
        """Whether a run may stop: the half-width of throughput's log ratio is ≤ `target`, with enough blocks or sessions."""
        interval = self._throughput(mode)
        least = LEAST_SESSIONS if mode == "full" else LEAST_BLOCKS_QUICK
        return interval is not None and interval.n >= least and interval.half() <= target

    def plain_capacity(self) -> float:
        """Operations per second of the plain arm, from its capacity slices, or else from warm-up and pilot; 0 if none ran."""
        rows = self._tallies["capacity"].arms()
        if len(rows.plain):
            return float(rows.total("plain", "work") / rows.total("plain", "seconds"))
        return self._other["work"] / self._other["seconds"] if self._other["seconds"] else 0.0

    def slice_p99(self, record: SliceRecord) -> float:
        """99th percentile of one slice's operations, seconds; 0 without operations."""
        found = decode(record.agent.histogram) if record.agent and record.agent.operations else None
        return float(quantiles(found, [0.99])[0]) / 1e9 if found else 0.0

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
        rows = self._tallies["capacity"].arms()
        if len(rows.encrypted):
            rate = min(rate, MOST_OFFERED * rows.total("encrypted", "work") / rows.total("encrypted", "seconds"))
        if think_s > 0 and clients:
            rate = min(rate, MOST_THINKING * clients / think_s)
        return rate

    def carryover(self, session: int | None = None) -> Carryover:
        """λ with its p-value, of one session or of all capacity blocks so far."""
        signs, sessions, rates = self._tallies["capacity"].log_rates()
        mine = np.ones(len(signs), bool) if session is None else sessions == session
        return statistics.carryover(rates[mine], signs[mine])

    def carries_over(self, session: int) -> bool:
        """Whether one arm's load changed the other's rate in this session (λ ≠ 0)."""
        return self.carryover(session).found

    def session_estimates(self) -> dict[int, Estimate]:
        """Throughput of each session alone, for plots: Hodges–Lehmann value and signed-rank interval of its blocks."""
        found: dict[int, Estimate] = {}
        for session, values in self._values.items():
            own = np.frombuffer(values)
            low, high = statistics.hodges_lehmann_interval(own)
            centre = statistics.hodges_lehmann(own)
            found[session] = Estimate(
                math.exp(centre), math.exp(low), math.exp(high), n=len(own), method="signed ranks of blocks"
            )
        return found

    def _throughput(self, mode: Mode) -> Interval | None:
        if mode == "full" and len(self._values) >= 2:
            centres = np.array([self._centre(session) for session in self._values])
            return statistics.session_interval(centres, most_nu=self._most_nu)
        every = np.concatenate([np.array(values) for values in self._values.values()] or [np.empty(0)])
        return statistics.block_interval(every) if len(every) >= 2 else None

    def _centre(self, session: int) -> float:
        """Session value, recomputed only when the session has grown, so that finished sessions cost nothing."""
        values = self._values[session]
        known = self._centres.get(session)
        if known is None or known[0] != len(values):
            known = (len(values), statistics.hodges_lehmann(np.array(values)))
            self._centres[session] = known
        return known[1]

    # ── at the end ────────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, mode: Mode = "full", margin: float = 0.01) -> CellEstimate:
        """The cell's estimate; equivalence is judged within ± log(1 + `margin`).

        Raises UsageError without a complete block.
        """
        self._close_block()
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main, tally = (capacity, "capacity") if len(capacity.sessions) else (latency, "latency")
        if not len(main.sessions):
            raise UsageError(
                "no complete block of four good slices: there is nothing to estimate; give the run more --time"
            )
        overhead: dict[str, Estimate] = {}
        log_ratios = self.intervals(mode)
        for name, interval in log_ratios.items():
            if name not in UNITS and name not in QUANTILES_BY_METRIC:
                continue
            estimate = stated(interval, mode, UNITS.get(name, "latency"))
            if (share := QUANTILES_BY_METRIC.get(name)) and latency.unit_of(share, mode) == "session":
                estimate = msgspec.structs.replace(estimate, method=f"{estimate.method}; {WHOLE_SESSIONS}")
            overhead[name] = with_totals(estimate, log_ratios.get(totals.key(name)))
        primary = "latency_p50" if latency is main and "latency_p50" in log_ratios else "throughput"
        judged = judge(log_ratios.get(primary), log_ratios.get(totals.key(primary)), mode, margin)
        levels = self.typical(mode)
        carried = self.carryover()
        sessions = len(set(main.sessions.tolist()))
        return CellEstimate(
            verdict=judged.verdict,
            sessions=sessions,
            blocks=len(main.sessions),
            overhead=overhead,
            arms={
                arm: describe(
                    arm,
                    main,
                    latency,
                    self._tallies["latency"].histogram(arm),
                    mode,
                    self._tallies[tally].error_kinds(arm),
                )
                | {"typical": levels[arm]}
                for arm in ARMS
            },
            warnings=warnings(
                self.counts, mode, overhead, self.disagreements(mode), carried, capacity, latency, self.error_kinds
            ),
            smallest_effect=judged.smallest_effect,
            sessions_needed=judged.sessions_needed,
            totals_open=judged.totals_open,
            disturbed=0 < self.counts["slices"] == self.counts[DISTURBED],
            carryover={"lambda": carried.value, "p_value": carried.p_value},
            added=added(main, mode),
        )

    def intervals(self, mode: Mode = "full") -> dict[str, Interval]:
        """The log ratio of every metric, encrypted − plain, with its standard errors, for `finish` and for comparing runs.

        A robust metric's ratio of totals has the key `totals.key(metric)`.
        """
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main = capacity if len(capacity.sessions) else latency
        found: dict[str, Interval | None] = {"throughput": self._throughput(mode)}
        if found["throughput"]:
            all_of_it = ratio_of_totals(capacity, ("work",), "seconds", mode, self._most_nu)
            found[totals.key("throughput")] = all_of_it
        pooled = latency_ratios.pooled(self._tallies["latency"], latency, mode)
        for column, (name, share) in enumerate(QUANTILES):
            if unit := latency.unit_of(share, mode):
                own = latency_ratios.quantile_interval(latency, column, mode, self._most_nu, whole=unit == "session")
                found[f"latency_{name}"] = own
                if own is not None:
                    found[totals.key(f"latency_{name}")] = pooled.interval(column, own, self._most_nu)
        for name, numerator, denominator, _ in RATIOS:
            found[name] = ratio_of_totals(main, numerator or main.machine, denominator, mode, self._most_nu)
        return {name: interval for name, interval in found.items() if interval is not None}

    def against(self, reference: CellEstimator, mode: Mode) -> Estimate | None:
        """This cell's throughput ratio ÷ the reference's, over the sessions that both share; None with fewer than two.

        Full mode uses the differences of session values, quick mode those of blocks in order: blocks of one round are
        next to each other in time, so noise that affects both cancels.
        """
        if mode == "full":
            shared = [session for session in self._values if session in reference._values]
            values = np.array([self._centre(session) - reference._centre(session) for session in shared])
            interval = statistics.session_interval(values, most_nu=self._most_nu) if len(values) >= 2 else None
        else:
            pairs = [
                (mine, theirs)
                for session in self._values
                for mine, theirs in zip(self._values[session], reference._values.get(session, ()), strict=False)
            ]
            values = np.array([mine - theirs for mine, theirs in pairs])
            interval = statistics.block_interval(values) if len(values) >= 2 else None
        return None if interval is None else stated(interval, mode, "ratio of ratios")

    def client_against(self, reference: CellEstimator, mode: Mode) -> dict[str, Estimate]:
        """What this cell's client costs ÷ the reference's, arm by arm: `throughput_plain`, `server_cpu_plain`, `client_cpu_plain`, ….

        Pairs are formed as in `against`.
        """
        mine, theirs = (each._tallies["capacity"].arms() for each in (self, reference))
        return client_ratios(mine, theirs, mode, self._most_nu)

    # ── one estimator for levels and ratio ────────────────────────────────────────────────────────────────────────────

    def typical(self, mode: Mode = "full") -> dict[Arm, dict[str, Any]]:
        """Both arms' levels that match the robust ratio: `throughput` in operations/s, `latency_ms` by quantile.

        The level of both arms together is estimated exactly as their ratio is (Hodges–Lehmann over blocks, mean over sessions), with half
        of the log ratio on either side. So encrypted ÷ plain is the printed ratio.
        """
        found: dict[Arm, dict[str, Any]] = {arm: {} for arm in ARMS}
        if interval := self._throughput(mode):
            _, sessions, rates = self._tallies["capacity"].log_rates()
            middles = rates.mean(axis=1)
            groups = [sessions == each for each in np.unique(sessions)] if mode == "full" else [sessions == sessions]
            level = float(np.mean([statistics.hodges_lehmann(middles[own]) for own in groups]))
            for arm, value in around(level, interval.centre).items():
                found[arm]["throughput"] = value
        latency = self._tallies["latency"].arms()
        for column, (name, share) in enumerate(QUANTILES):
            if not (unit := latency.unit_of(share, mode)):
                continue
            whole = unit == "session"
            own = latency_ratios.quantile_interval(latency, column, mode, self._most_nu, whole=whole)
            if own is None:
                continue
            level = latency_ratios.level(latency, column, mode, whole=whole)
            for arm, value in around(level, own.centre).items():
                found[arm].setdefault("latency_ms", {})[name] = value / 1e6
        return found

    # ── what the robust ratio leaves out ──────────────────────────────────────────────────────────────────────────────

    def disagreements(self, mode: Mode = "full") -> dict[str, float]:
        """By metric: p-value that the typical block and all slices together show the same cost; absent: not tested."""
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        found = {"throughput": throughput_differs(capacity)} if len(capacity.sessions) >= 2 else {}
        together = latency_ratios.pooled(self._tallies["latency"], latency, mode)
        return found | latency_ratios.disagreements(latency, together, mode)


def watching(void_sessions: Iterable[int], sequential: bool) -> CellEstimator:
    """An estimator for a cell during measurement. `sequential`: the run may stop before its time is over."""
    return CellEstimator(void_sessions, sequential=sequential)
