"""Capacity at an objective: each arm's highest rate that keeps it, their ratio with its interval, and both arms' curves. Pure.

The interval is Student's t over the sessions' pseudo-values by the jackknife, because all sessions share one curve for each arm; with one
session, over those of groups of blocks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import objective_all
from ciphercost.estimate.histogram import quantiles
from ciphercost.estimate.notation import number
from ciphercost.estimate.objective_answers import latency, slow
from ciphercost.estimate.objective_curve import ArmSoFar, Fit, Tried
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import Floats
from ciphercost.estimate.to_estimate import to_estimate
from ciphercost.model.histogram import decode, merge
from ciphercost.model.objective_capacity import AllRequests, AtRate, LoadPoint, ObjectiveArm, ObjectiveCapacity
from ciphercost.model.result import Warning_
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.plan.latency_objective import Objective

METRIC = "rate_at_objective"
"""Key of the ratio in `Cell.overhead`."""
SHORT = 5.0
"""Slice ÷ time in which the queue settles, below which the report warns."""
UNCLEAR = (
    "the blocks do not show each arm's capacity: they are too few, or the same rate was kept in some and not in others; use a longer "
    "--time, or a quieter machine"
)
LEAST_BLOCKS = LEAST_SESSIONS = 2
"""Fewest blocks, and sessions, for an interval."""


class Capacities:
    """What both arms did in the search, block by block."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.arms: dict[Arm, list[Tried]] = {arm: [] for arm in ARMS}
        self._curve: dict[float, dict[Arm, list[SliceRecord]]] = defaultdict(lambda: {arm: [] for arm in ARMS})
        """By rate, the slices in which both arms had it."""
        self._known: dict[tuple[object, ...], dict[Arm, Parts]] = {}
        """What `_parts` has worked out, by mode and number of blocks, since the last change."""

    def add(self, records: Sequence[SliceRecord], *, keep: bool) -> None:
        """Add a block's four slices. `keep`: with what the curve needs. Raises UsageError if a histogram is damaged."""
        self._known.clear()
        for arm in ARMS:
            arm_records = [record for record in records if record.arm == arm]
            first = arm_records[0]
            of = self.objective
            (over, late, later), requests = slow(
                arm_records, (of.seconds, *map(of.exceeded, objective_all.TIMES_RARER))
            )
            at = (first.session, first.block, first.phase, first.rate)
            self.arms[arm].append(Tried(*at, over, requests, first.length, late, later))
            if keep and first.phase == "curve":
                self._curve[first.rate][arm] += arm_records

    def drop(self, session: int) -> None:
        """Remove a session."""
        self._known.clear()
        self.arms = {arm: [block for block in tried if block.session != session] for arm, tried in self.arms.items()}
        for both in self._curve.values():
            for arm in ARMS:
                both[arm] = [record for record in both[arm] if record.session != session]

    # ── estimates ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _parts(self, mode: Mode) -> dict[Arm, Parts]:
        """Log capacities of the arms that have one among the rates that were tried, with their pseudo-values.

        Of sessions in full mode, once there are two, else of groups of blocks, which are the same in both arms.
        """
        asked = (mode, *map(len, self.arms.values()))
        if asked not in self._known:
            self._known[asked] = self._worked_out(mode)
        return self._known[asked]

    def _worked_out(self, mode: Mode) -> dict[Arm, Parts]:
        arms = {arm: ArmSoFar(self.arms[arm], self.objective) for arm in ARMS}
        arms = {arm: so_far for arm, so_far in arms.items() if len(so_far.aimed) >= LEAST_BLOCKS and so_far.shows()}
        if not arms:
            return {}
        sessions = np.array([group.session for group in next(iter(arms.values())).groups])
        apart = mode == "full" and len(set(sessions.tolist())) >= LEAST_SESSIONS
        outs = (
            [sessions == session for session in np.unique(sessions)]
            if apart
            else list(np.eye(len(sessions), dtype=bool))
        )
        parts, n = {}, len(outs)
        for arm, so_far in arms.items():
            whole = so_far.fit.capacity
            values = n * whole - (n - 1) * np.array([so_far.without(out) for out in outs])
            parts[arm] = Parts(so_far.fit, values, apart)
        return parts

    def interval(self, mode: Mode, most_nu: int | None = None) -> Interval | None:
        """The log ratio of both arms' capacities, encrypted − plain; None unless both have one, and all requests together agree."""
        return self._confirmed(self._parts(mode), most_nu)[0]

    def _confirmed(self, parts: Mapping[Arm, Parts], most_nu: int | None) -> tuple[Interval | None, AllRequests | None]:
        """The log ratio, None unless both arms have a capacity and all requests together agree; and what all of them show."""
        typical = _ratio(parts, most_nu)
        if typical is None:
            return None, None
        fits = {arm: arm_parts.fit for arm, arm_parts in parts.items()}
        together = objective_all.judged(self.arms, self.objective, fits, by_session=parts["plain"].sessions)
        if together is None:
            return typical, None
        return (objective_all.widened(typical, together, fits) if together.agree else None), together

    def levels(self, mode: Mode) -> dict[Arm, float]:
        """Both arms' capacities, operations/s, of which encrypted ÷ plain is the ratio; empty without a ratio."""
        parts = self._parts(mode)
        if self._confirmed(parts, None)[0] is None:
            return {}
        return {arm: math.exp(arm_parts.centre) for arm, arm_parts in parts.items()}

    def finish(self, mode: Mode, most_nu: int | None, top: float, lowest: float) -> ObjectiveCapacity:
        """The estimate. `top`: the plain arm's operations/s in the closed loop; `lowest`: the lowest rate that could be tried."""
        parts = self._parts(mode)
        ratio, together = self._confirmed(parts, most_nu)
        arms: dict[str, ObjectiveArm] = {}
        for arm in ARMS:
            so_far = ArmSoFar(self.arms[arm], self.objective)
            rates = [block.rate for block in so_far.tried]
            # Between rates that were tried, but the blocks do not show where.
            kind = so_far.kind() if arm in parts or so_far.kind() != "within" else "unknown"
            if kind == "within":
                arms[arm] = ObjectiveArm("within", math.exp(parts[arm].centre))
            elif kind == "below":
                lowest_point = next((point for point in self._points() if point.rate == min(rates)), None)
                fastest = getattr(lowest_point, arm).latency_ms if lowest_point else None
                arms[arm] = ObjectiveArm("below", high=min(rates), fastest_ms=fastest)
            elif kind == "above":
                arms[arm] = ObjectiveArm("above", low=max(rates))
            else:
                arms[arm] = ObjectiveArm("unknown")
        if together is not None and not together.agree:
            return ObjectiveCapacity(
                objective=self.objective.text,
                # Two rates would be a cost.
                arms={arm: ObjectiveArm("unknown") for arm in ARMS},
                curve=self._points(),
                reason=objective_all.reason(together, self.objective.text),
                all_requests=together,
            )
        capacity = ObjectiveCapacity(
            objective=self.objective.text,
            arms=arms,
            curve=self._points(),
            ratio=None if ratio is None else to_estimate(ratio, mode, "operations/s"),
            all_requests=together,
        )
        if ratio is not None:
            return capacity
        bound = _bound(arms, {arm: self._ends(arm, arms[arm], parts.get(arm), mode, most_nu) for arm in ARMS})
        return ObjectiveCapacity(
            objective=capacity.objective,
            arms=arms,
            curve=capacity.curve,
            at_most=bound[0],
            at_least=bound[1],
            reason=reason(capacity, top, lowest),
        )

    def _ends(self, arm: Arm, of: ObjectiveArm, parts: Parts | None, mode: Mode, most_nu: int | None) -> Ends:
        """Lowest and highest rate that an arm's capacity may be; None: not known."""
        if of.kind not in ("within", "above"):
            return of.low, of.high
        fit = parts.fit if parts else None
        by_session = parts.sessions if parts else mode == "full"
        lower = objective_all.lowered(self.arms[arm], self.objective, fit, by_session=by_session)
        low, high = map(math.exp, parts.interval(most_nu).bounds()) if parts else (of.low, of.high)
        return (low * math.exp(lower) if low else None), high

    def warnings(self) -> list[Warning_]:
        """What limits the estimate."""
        warnings = []
        for arm, parts in self._parts("quick").items():
            lengths = [block.length for block in self.arms[arm] if block.phase == "objective"]
            settling = self.objective.settling(math.exp(parts.centre))
            if min(lengths) < SHORT * settling:
                text = (
                    f"{self.objective.text}: slices of {min(lengths):.2g} s are short beside the {settling:.2g} s in which a queue "
                    f"settles at the {arm} arm's capacity, so the capacities of both arms may be too high; use a longer --time"
                )
                warnings.append(Warning_("objective-slices-short", text))
        return warnings[:1]

    def _points(self) -> list[LoadPoint]:
        """The load–latency curve of both arms, by rate."""
        return [
            LoadPoint(rate, *(self._at(both[arm]) for arm in ARMS))
            for rate, both in sorted(self._curve.items())
            if all(both[arm] for arm in ARMS)
        ]

    def _at(self, records: Sequence[SliceRecord]) -> AtRate:
        """What an arm did at one rate, over all sessions."""
        answers = [record.agent for record in records if record.agent is not None]
        decoded = [decode(answer.histogram) for answer in answers if answer.operations]
        median = float(quantiles(merge(decoded), [0.5])[0]) / 1e6 if decoded else None
        seconds = sum(answer.seconds for answer in answers)
        return AtRate(
            latency_ms=_ms(latency(records, self.objective.share)),
            p50_ms=median,
            done_per_s=sum(answer.operations for answer in answers) / seconds if seconds else 0.0,
            requests=sum(answer.operations for answer in answers),
        )


class Parts(NamedTuple):
    """An arm's curve, and what its log capacity is made of."""

    fit: Fit
    values: Floats
    """Pseudo-values of the capacity by the jackknife: of each session, or of each block."""
    sessions: bool
    """Whether they are those of sessions."""

    @property
    def centre(self) -> float:
        """The log capacity."""
        return self.fit.capacity

    def interval(self, most_nu: int | None) -> Interval:
        return objective_all.interval(self.values, self.centre, by_session=self.sessions, most_nu=most_nu)


def _ratio(parts: Mapping[Arm, Parts], most_nu: int | None) -> Interval | None:
    """The log ratio of both arms' capacities, encrypted − plain; None unless both have one."""
    if len(parts) < len(ARMS):
        return None
    plain, encrypted = (parts[arm] for arm in ARMS)
    values, centre = encrypted.values - plain.values, encrypted.centre - plain.centre
    return objective_all.interval(values, centre, by_session=plain.sessions, most_nu=most_nu)


Ends = tuple[float | None, float | None]


def _bound(arms: Mapping[str, ObjectiveArm], ends: Mapping[Arm, Ends]) -> Ends:
    """(at most, at least) of encrypted ÷ plain, if at least one of the capacities is known from one side only."""
    (plain_low, plain_high), (encrypted_low, encrypted_high) = ends["plain"], ends["encrypted"]
    most = encrypted_high / plain_low if encrypted_high is not None and plain_low else None
    least = encrypted_low / plain_high if encrypted_low and plain_high else None
    both = {arms[arm].kind for arm in ARMS}
    return (most, least) if both & {"below", "above"} and "unknown" not in both else (None, None)


def reason(of: ObjectiveCapacity, top: float, lowest: float) -> str:
    """Why there is no ratio of capacities."""
    plain, encrypted = of.arms["plain"], of.arms["encrypted"]
    name = of.objective.partition("=")[0]
    if plain.kind == encrypted.kind == "unknown":
        if lowest and top and not of.curve:
            return (
                f"{name} needs at least {number(lowest)} operations/s in slices of this length, and the plain arm does "
                f"{number(top)}; use a longer --time, or a lower quantile"
            )
        return UNCLEAR
    if plain.kind == encrypted.kind == "below":
        assert plain.high is not None
        seen = (
            f"{name} is {number(plain.fastest_ms)} ms in the plain arm"
            if plain.fastest_ms
            else "the arms do not keep up"
        )
        return f"no rate keeps it: at {number(plain.high)} operations/s, the lowest that was tried, {seen}; allow a longer latency"
    if plain.kind == encrypted.kind == "above":
        assert plain.low is not None
        return f"every rate keeps it, up to {number(plain.low)} operations/s; use more --clients, or allow a shorter latency"
    if "unknown" in (plain.kind, encrypted.kind):
        return UNCLEAR
    words = {"below": "keeps it at no rate that was tried", "above": "keeps it at every rate that was tried"}
    return "; ".join(
        f"the {arm} arm {words[capacity.kind]}" for arm, capacity in of.arms.items() if capacity.kind in words
    )


def _ms(seconds: float) -> float | None:
    """Milliseconds; None if the arm did not keep up."""
    return seconds * 1e3 if math.isfinite(seconds) else None
