"""Turns the slices of a cell, one by one, into ratios with intervals, a verdict and warnings. Pure; METHODOLOGY.md has the method.

Each complete block is kept as four rows of numbers, not as records, so estimating a run of 100,000 slices takes about 20 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from ciphercost.estimate import (
    disturbance,
    failures,
    headline,
    latency_ratios,
    objective_capacity,
    statistics,
    steadiness,
    tool_latency,
    totals,
)
from ciphercost.estimate.client_ratios import client_ratios
from ciphercost.estimate.cost_ratios import (
    RATIOS,
    added,
    added_by_session,
    ratio_of_totals,
    throughput_differs,
    without_ratio,
)
from ciphercost.estimate.failures import FailuresSoFar
from ciphercost.estimate.latency_ratios import QUANTILES_BY_METRIC, WHOLE_SESSIONS
from ciphercost.estimate.so_far import OnlineEstimator, has_failed
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import QUANTILES, Arms, Floats, Tally
from ciphercost.estimate.to_estimate import around, to_estimate, with_totals
from ciphercost.estimate.tool_latency import ToolLatencies
from ciphercost.estimate.verdict import judge
from ciphercost.estimate.waits import Waits
from ciphercost.estimate.warnings import DISTURBED, describe, warnings
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, decode, merge
from ciphercost.model.result import CellEstimate, Estimate
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, COUNTED, SEARCHING, Arm, Mode

UNITS = (
    {"throughput": "operations/s", objective_capacity.METRIC: "operations/s"}
    | dict.fromkeys(tool_latency.METRICS, tool_latency.UNIT)
    | {name: unit for name, _, _, unit in RATIOS}
)


class CellEstimator(OnlineEstimator):
    """Keeps all that a recorded cell's slices say, for the estimate at the end."""

    KEEPS_CURVE = True

    def __init__(self, void_sessions: Iterable[int] = (), *, sequential: bool = False, objective: str = "") -> None:
        super().__init__(void_sessions, sequential=sequential, objective=objective)
        self._failures = FailuresSoFar()
        self._tallies = {"capacity": Tally(), "latency": Tally()}
        self._tool = ToolLatencies()
        self._waits = {phase: {arm: Waits() for arm in ARMS} for phase in self._tallies}

    def add(self, record: SliceRecord) -> None:
        if record.session not in self._void and record.phase in COUNTED:
            self._failures.add(record, failed=has_failed(record))
        super().add(record)

    def void(self, session: int) -> None:
        super().void(session)
        self._failures.drop(session)
        self._tool.drop(session)
        for tally in self._tallies.values():
            tally.drop(session)

    def _keep(self, records: Sequence[SliceRecord], sign: int) -> bool:
        latencies = None
        phase = records[0].phase
        if phase in SEARCHING:
            return super()._keep(records, sign)
        if phase == "latency":
            latencies = self._histograms(records, sign)
            if latencies is None:
                return False
        self._tallies[phase].append(sign, records, latencies)
        self._tool.add(records, sign)
        for record in records:
            self._waits[phase][record.arm].add(record)
        return super()._keep(records, sign)

    def _histograms(self, records: Sequence[SliceRecord], sign: int) -> tuple[Histogram, Histogram] | None:
        """Both arms' histograms of a block (plain, encrypted), or None if a slice has none."""
        texts = [record.agent.histogram for record in records if record.agent is not None]
        if not all(texts):
            return None
        try:
            decoded = [decode(text) for text in texts]
            for record, one in zip(records, decoded, strict=True):
                checked.histogram(record, one.total)
            outer, inner = merge([decoded[0], decoded[3]]), merge([decoded[1], decoded[2]])
        except ValueError as error:
            raise UsageError(f"{checked.place(records[0])}: {error}") from None
        if not len(outer.counts) or not len(inner.counts):
            return None
        return (outer, inner) if sign > 0 else (inner, outer)

    def main(self) -> tuple[Arms, str]:
        """The blocks of the closed loop, or of the open loop if there are no others; and the name of that phase."""
        capacity = self._tallies["capacity"].arms()
        return (capacity, "capacity") if len(capacity.sessions) else (self._tallies["latency"].arms(), "latency")

    # ── at the end ────────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, mode: Mode = "full", margin: float = 0.01, lowest: float = 0.0) -> CellEstimate:
        """The cell's estimate; equivalence is judged within ± log(1 + `margin`). `lowest`: rate that the search for an objective could try.

        Raises UsageError without a complete block.
        """
        self._close_block()
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main, tally = self.main()
        if not len(main.sessions):
            raise UsageError(
                "no complete block of four good slices: there is nothing to estimate; give the run more --time"
            )
        overhead: dict[str, Estimate] = {}
        log_ratios = self.intervals(mode)
        for name, interval in log_ratios.items():
            if name not in UNITS and name not in QUANTILES_BY_METRIC:
                continue
            estimate = to_estimate(interval, mode, UNITS.get(name, "latency"))
            if (share := QUANTILES_BY_METRIC.get(name)) and latency.unit_of(share, mode) == "session":
                estimate = msgspec.structs.replace(estimate, method=f"{estimate.method}; {WHOLE_SESSIONS}")
            overhead[name] = with_totals(estimate, log_ratios.get(totals.key(name)))
        primary = "latency_p50" if tally == "latency" and "latency_p50" in log_ratios else "throughput"
        failed = self._failures.total(log_ratios.get("throughput"), mode, self._most_nu)
        judged = judge(
            log_ratios.get(primary),
            log_ratios.get(totals.key(primary)),
            mode,
            margin,
            log_ratios.get(failures.key(primary)),
            one_fails=failures.differ(failed),
        )
        if failed is not None and judged.failures_open:
            failed = msgspec.structs.replace(failed, undecided=True)
        few, hit = without_ratio(main), disturbance.total(self.counts)
        levels, startup = self.typical(mode), self._tool.startup(mode)
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
                | startup.get(arm, {})
                | {"typical": levels[arm]}
                for arm in ARMS
            },
            warnings=[
                *failures.warnings(failed, self.counts["incomplete"]),
                *disturbance.warnings(hit),
                *warnings(
                    self.counts, mode, overhead, self.disagreements(mode), carried, capacity, latency, self.error_kinds
                ),
                *steadiness.warnings(*self._by_session(), mode),
                *(self._capacities.warnings() if self._capacities else []),
            ],
            smallest_effect=judged.smallest_effect,
            sessions_needed=judged.sessions_needed,
            totals_open=judged.totals_open
            or (judged.verdict == "unresolved" and primary == "throughput" and self._typically_within(mode, margin)),
            disturbed=0 < self.counts["slices"] == self.counts[DISTURBED],
            disturbance=hit,
            failures=failed,
            carryover={"lambda": carried.value, "p_value": carried.p_value},
            too_few=few,
            waits={arm: wait for arm in ARMS if (wait := self._waits[tally][arm].fixed_wait()) is not None},
            added={name: added_cpu for name, added_cpu in added(main, mode).items() if f"{name}_per_op" not in few},
            objective=self._capacities.finish(mode, self._most_nu, self.plain_capacity(), lowest)
            if self._capacities
            else None,
        )

    def intervals(self, mode: Mode = "full") -> dict[str, Interval]:
        """The log ratio of every metric, encrypted − plain, with its standard errors, for `finish` and for comparing runs.

        A robust metric's ratio of totals has the key `totals.key(metric)`, that of a run with failed slices also `failures.key(metric)`.
        """
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main = capacity if len(capacity.sessions) else latency
        log_ratios: dict[str, Interval | None] = {"throughput": self._throughput(mode)}
        if log_ratios["throughput"]:
            all_of_it = ratio_of_totals(capacity, ("work",), "seconds", mode, self._most_nu)
            log_ratios[totals.key("throughput")] = all_of_it
        pooled = latency_ratios.pooled(self._tallies["latency"], latency, mode)
        for column, (name, share) in enumerate(QUANTILES):
            if unit := latency.unit_of(share, mode):
                quantile_ratio = latency_ratios.quantile_interval(
                    latency, column, mode, self._most_nu, whole=unit == "session"
                )
                log_ratios[f"latency_{name}"] = quantile_ratio
                if quantile_ratio is not None:
                    log_ratios[totals.key(f"latency_{name}")] = pooled.interval(column, quantile_ratio, self._most_nu)
        if lost := self._failures.lost(mode, self._most_nu):
            log_ratios |= {
                failures.key(name): failures.with_failures(
                    log_ratios.get(name), lost, more_is_better=name == "throughput"
                )
                for name in ("throughput", "latency_p50")
            }
        if self._capacities:
            log_ratios[objective_capacity.METRIC] = self._capacities.interval(mode, self._most_nu)
        log_ratios |= self._tool.intervals(mode, self._most_nu)
        few = without_ratio(main)
        for name, numerator, denominator, _ in RATIOS:
            if name in few:
                continue
            log_ratios[name] = ratio_of_totals(main, numerator or main.machine, denominator, mode, self._most_nu)
        return {name: interval for name, interval in log_ratios.items() if interval is not None}

    def _by_session(self) -> tuple[list[Floats], Floats]:
        """Block values of each session and the sessions' centres, in the order of measurement."""
        return [self._values(session) for session in self._rates], np.array(
            [self._centre(session) for session in self._rates]
        )

    def _typically_within(self, mode: Mode, margin: float) -> bool:
        """Whether only the totals keep the cell from being equivalent; in quick mode the verdict says so itself."""
        if mode != "full" or len(self._rates) < 2:
            return False
        return headline.typically_within(self._sessions(self._rates), margin, self._most_nu)

    def against(self, reference: CellEstimator, mode: Mode) -> Estimate | None:
        """This cell's throughput ratio ÷ the reference's, over the sessions that both share; None with fewer than two.

        Full mode uses the differences of session values, quick mode those of blocks in order: blocks of one round are
        next to each other in time, so noise that affects both cancels.
        """
        if mode == "full":
            shared = [session for session in self._rates if session in reference._rates]
            theirs, mine = reference._sessions(shared), self._sessions(shared)
            interval = headline.difference(theirs, mine, self._most_nu) if len(shared) >= 2 else None
        else:
            pairs = [
                (value, other)
                for session in self._rates
                for value, other in zip(self._values(session), reference._values(session), strict=False)
            ]
            values = np.array([value - other for value, other in pairs])
            interval = statistics.block_interval(values) if len(values) >= 2 else None
        return None if interval is None else to_estimate(interval, mode, "ratio of ratios")

    def added_by_session(self, mode: Mode) -> dict[str, dict[int, float]]:
        """What encryption adds to an operation's CPU time, µs, by end and session; empty in quick mode."""
        return added_by_session(self.main()[0], mode)

    def client_against(self, reference: CellEstimator, mode: Mode) -> dict[str, Estimate]:
        """What this cell's client costs ÷ the reference's, arm by arm: `throughput_plain`, `server_cpu_plain`, `client_cpu_plain`, ….

        Pairs are formed as in `against`.
        """
        mine, theirs = (estimator._tallies["capacity"].arms() for estimator in (self, reference))
        return client_ratios(mine, theirs, mode, self._most_nu)

    # ── one estimator for levels and ratio ────────────────────────────────────────────────────────────────────────────

    def typical(self, mode: Mode = "full") -> dict[Arm, dict[str, Any]]:
        """Both arms' levels that match the robust ratio: `throughput` in operations/s, `latency_ms` by quantile.

        The level of both arms together is estimated exactly as their ratio is (Hodges–Lehmann over blocks, mean over sessions), with half
        of the log ratio on either side. So encrypted ÷ plain is the printed ratio.
        """
        levels: dict[Arm, dict[str, Any]] = {arm: {} for arm in ARMS}
        if interval := self._throughput(mode):
            groups = [[session] for session in self._rates] if mode == "full" else [list(self._rates)]
            middles = [self._log_rates(group)[1].mean(axis=1) for group in groups]
            level = float(np.mean([statistics.hodges_lehmann(block_levels) for block_levels in middles]))
            for arm, value in around(level, interval.centre).items():
                levels[arm]["throughput"] = value
        if self._capacities:
            for arm, value in self._capacities.levels(mode).items():
                levels[arm][objective_capacity.METRIC] = value
        for arm, figures in self._tool.levels(self._tool.intervals(mode, self._most_nu), mode).items():
            if (seconds := figures.pop(tool_latency.DURATION, None)) is not None:
                levels[arm][tool_latency.DURATION] = seconds
            if figures:
                levels[arm]["tool_latency_ms"] = figures
        latency = self._tallies["latency"].arms()
        for column, (name, share) in enumerate(QUANTILES):
            if not (unit := latency.unit_of(share, mode)):
                continue
            whole = unit == "session"
            quantile_ratio = latency_ratios.quantile_interval(latency, column, mode, self._most_nu, whole=whole)
            if quantile_ratio is None:
                continue
            level = latency_ratios.level(latency, column, mode, whole=whole)
            for arm, value in around(level, quantile_ratio.centre).items():
                levels[arm].setdefault("latency_ms", {})[name] = value / 1e6
        return levels

    # ── what the robust ratio leaves out ──────────────────────────────────────────────────────────────────────────────

    def disagreements(self, mode: Mode = "full") -> dict[str, float]:
        """By metric: p-value that the typical block and all slices together show the same cost; absent: not tested."""
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        p_values = {"throughput": throughput_differs(capacity)} if len(capacity.sessions) >= 2 else {}
        together = latency_ratios.pooled(self._tallies["latency"], latency, mode)
        return p_values | latency_ratios.disagreements(latency, together, mode)
