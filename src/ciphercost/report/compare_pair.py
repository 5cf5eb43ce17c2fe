"""How the costs of two cells differ, with an interval and a verdict. Pure.

This compares the cost itself, encrypted ÷ plain: the other run's ratio ÷ the reference's. A faster machine speeds up both arms and cancels;
a changed cost does not. Each run's log ratio comes with the standard errors of its own units (sessions; blocks of a quick run), as
`estimate` computes them, not read back from a printed interval. The difference of two independent means has the standard error √(e₁² + e₂²)
and, by Welch (1947) and Satterthwaite (1946), (e₁² + e₂²)² ÷ (e₁⁴/ν₁ + e₂⁴/ν₂) degrees of freedom. Equivalence is two one-sided tests
(Schuirmann 1987) within ± log(1 + margin), of the robust ratio and of the ratio of totals. It goes first, as everywhere here. P-values are
Holm's over all compared cells, and must be below 5 %, or below 1 % for quick runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ciphercost.estimate import added_together, failures, statistics, totals
from ciphercost.estimate.statistics import ALPHA, Interval
from ciphercost.estimate.statistics import against as against
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.result import Cell, Estimate
from ciphercost.report.comparison_types import AddedChange, Change, Pair, Run
from ciphercost.report.match_cells import changes, unlike
from ciphercost.report.words import added_text, cell_text, figure_text

ACHIEVED = (
    "protocol", "cipher", "group", "peer_key", "verified", "verified_by", "key", "implementation", "server_library",
    "client_library",
)  # fmt: skip
"""Keys of `encryption` that may differ between two cells with the same request."""
PAIRS_ONLY = "these server pairs only"
EXACT = 1e-6
"""A narrower interval is that of counts that are equal in every block."""
QUICK_ALPHA = 0.01
"""Level at which quick runs differ. The interval of a single session includes neither the scatter between starts of a server nor that
between moments of a busy machine. Of 211 pairs of 30 equal quick runs, on two cores with a load of 7, 8 % differed at the 5 % level."""
MIND = (
    failures.DIFFER,
    "failed-slices",
    "disturbed-unevenly",
    "faster-encrypted",
    "fixed-wait",
    "fixed-wait-in-both-arms",
    "steal",
    "foreign-cpu",
    "throttled",
    "client-bound",
    "few-blocks",
    "few-sessions",
    "one-session",
    "carry-over",
)
"""Warning codes that matter for a comparison with another run."""


def judged(
    interval: Interval,
    margin: float,
    p_value: float,
    *,
    of_totals: Interval | None = None,
    failing: Interval | None = None,
    one_fails: bool = False,
    quick: bool = False,
) -> Verdict:
    """The verdict. Equivalence goes first: a difference that is certain but within the margin counts as none.

    Equivalence also needs the ratio of totals, because a robust ratio hides stalls in one arm of one run. `failing`: the same with failed
    slices as slices without work, which must give the same answer. `one_fails`: in one run, one arm fails more often.
    """
    level = QUICK_ALPHA if quick else ALPHA
    if failing is not None:
        same = (failing.centre > 0) == (interval.centre > 0) and failing.p_value() < level
        if max(log_ratio.tost(math.log1p(margin)) for log_ratio in (interval, failing)) >= ALPHA and not same:
            return "unresolved"
    if (
        not one_fails
        and max(log_ratio.tost(math.log1p(margin)) for log_ratio in (interval, of_totals or interval)) < ALPHA
    ):
        return "equivalent"
    return "differs" if p_value < level else "unresolved"


def compared_pair(reference: Run, other: Run, run: int, numbers: tuple[int, int], margin: float) -> Pair:
    a, b = reference.result.cells[numbers[0]], other.result.cells[numbers[1]]
    mine, theirs = reference.intervals[numbers[0]], other.intervals[numbers[1]]
    metric = next((name for name in ("throughput", "latency_p50") if name in mine and name in theirs), "")
    quick = "quick" in (a.mode, b.mode)
    change, costs = {}, {}
    for name in figure_text.LABELS:
        if name in mine and name in theirs:
            change[name] = _stated(against(mine[name], theirs[name]), quick=quick)
            costs[name] = (a.overhead[name], b.overhead[name])
    reason = ""
    if not metric:
        without = [
            f"{name}: {cell.status}{f', {cell.reason}' if cell.reason else ''}"
            for name, cell in ((reference.name, a), (other.name, b))
            if not figure_text.main_metric(cell) or cell.imported
        ]
        units = "its record has no sessions or blocks, so costs can't be compared"
        none = [
            f"{name}: {units}" for name, intervals in ((reference.name, mine), (other.name, theirs)) if not intervals
        ]
        reason = "; ".join(without or none) or "one run measured throughput, the other only latency"
    asked = unlike(a, b)
    names = {difference.name for difference in asked}
    return Pair(
        run=run,
        cells=numbers,
        title=in_common(a, b),
        metric=metric,
        verdict=judged(
            against(mine[metric], theirs[metric]),
            margin,
            change[metric].p_value or 0.0,
            of_totals=against(*(intervals.get(totals.key(metric), intervals[metric]) for intervals in (mine, theirs))),
            failing=against(*(intervals.get(failures.key(metric), intervals[metric]) for intervals in (mine, theirs)))
            if any(failures.key(metric) in intervals for intervals in (mine, theirs))
            else None,
            one_fails=any(failures.differ(cell.failures) for cell in (a, b)),
            quick=quick,
        )
        if metric
        else None,
        change=change,
        costs=costs,
        factors=asked,
        also=[difference for difference in also(a, b) if difference.name not in names],
        mind=[
            f"{name}: {warning.text}"
            for name, cell in ((reference.name, a), (other.name, b))
            for warning in cell.warnings
            if warning.code in MIND
        ],
        reason=reason,
        noise=[name for name in change if is_noise(a, b, name, change[name])],
        added=added_change(a, b),
    )


def added_change(reference: Cell, other: Cell) -> AddedChange | None:
    """What encryption adds to an operation in both cells; None if one does not tell, or tells it of another process."""
    known, theirs = added_text.of(reference), added_text.of(other)
    if known is None or theirs is None or known.key != theirs.key:
        return None
    between = added_together.difference(added_text.part(known.added), added_text.part(theirs.added))
    return AddedChange(known, theirs, between)


def is_noise(a: Cell, b: Cell, metric: str, change: Estimate) -> bool:
    """Whether a counter's change says nothing: it is not resolved, or both cells have almost nothing of it."""
    if metric not in figure_text.FLOORS:
        return False
    exact = change.high / change.low < 1 + EXACT
    return (change.low <= 1 <= change.high and not exact) or all(figure_text.is_noise(cell, metric) for cell in (a, b))


def _stated(interval: Interval, *, quick: bool) -> Estimate:
    low, high = interval.bounds()
    method = interval.method() + (f"; {PAIRS_ONLY}" if quick else "")
    ratio, low, high = (math.exp(value) for value in (interval.centre, low, high))
    return Estimate(ratio, low, high, n=interval.n, method=method, p_value=interval.p_value(), unit="ratio of ratios")


def corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the p-values of their verdicts corrected for their number (Holm). A pair that no longer differs is unresolved."""
    judged_ = [pair for pair in pairs if pair.metric]
    adjusted = iter(statistics.holm([pair.change[pair.metric].p_value or 0.0 for pair in judged_]))
    corrected_pairs = []
    for pair in pairs:
        if not pair.metric:
            corrected_pairs.append(pair)
            continue
        p = next(adjusted)
        change = pair.change | {pair.metric: msgspec.structs.replace(pair.change[pair.metric], p_value=p)}
        level = QUICK_ALPHA if is_quick(pair) else ALPHA
        verdict: Verdict | None = "unresolved" if pair.verdict == "differs" and p >= level else pair.verdict
        corrected_pairs.append(msgspec.structs.replace(pair, change=change, verdict=verdict))
    return corrected_pairs


def is_quick(pair: Pair) -> bool:
    """Whether one of the two runs is a quick run, which holds for one server pair only."""
    return bool(pair.metric) and PAIRS_ONLY in pair.change[pair.metric].method


def in_common(a: Cell, b: Cell) -> str:
    """The words that both headings share; if the engine versions differ, the engine's name."""
    mine, theirs = cell_text.heading_words(a), cell_text.heading_words(b)
    shared = [mine[name] for name in mine if mine[name] and mine[name] == theirs[name]]
    if a.engine == b.engine and mine["engine"] != theirs["engine"]:
        shared.insert(0, a.engine)
    return " · ".join([*shared, *([a.variant] if a.variant and a.variant == b.variant else [])])


def also(a: Cell, b: Cell) -> list[Change]:
    """What else differs although the request was the same: negotiated encryption, libraries, mode, cores."""
    differences = changes(a.encryption, b.encryption, ACHIEVED) + changes({"mode": a.mode}, {"mode": b.mode})
    differences += changes(*({f"cores of {name}": value for name, value in cell.cores.items()} for cell in (a, b)))
    return [difference for difference in differences if difference.reference or difference.other]
