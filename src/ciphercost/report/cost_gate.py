"""A budget for encryption's cost: which cells are within it, over it, or unresolved. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ciphercost.estimate import disturbance, failures, notation, plausible
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.report.comparison_types import Gate, Passed, Run
from ciphercost.report.words import added_text, cell_text, figure_text, verdict_text

UNEVEN = "other processes disturbed {}: the interval does not include that, so nothing is decided; run again on a quieter machine"
MOSTLY = (
    "other processes disturbed {}, both arms alike: a quieter machine may show another cost, in a narrower interval"
)


def gated_runs(runs: Sequence[Run]) -> range:
    """Numbers of the runs to check: all but the reference; with a single run, that run."""
    return range(1, len(runs)) if len(runs) > 1 else range(1)


def gate(result: Result, run: int, limit: float) -> list[Gate]:
    """Check every cell against the budget. Controls encrypt nothing, so they count only if there are no other cells."""
    numbers = [number for number, cell in enumerate(result.cells) if not cell_text.is_control(cell)] or range(
        len(result.cells)
    )
    return [_gate(result.cells[number], run, number, limit) for number in numbers]


def _gate(cell: Cell, run: int, number: int, limit: float) -> Gate:
    return msgspec.structs.replace(_judged(cell, run, number, limit), verdict=cell.verdict, added=added_text.of(cell))


def _judged(cell: Cell, run: int, number: int, limit: float) -> Gate:
    title = cell_text.heading(cell) + (f" · {cell.variant}" if cell.variant else "")
    metric = figure_text.main_metric(cell)
    if not metric or cell.status != "ok":
        estimate = cell.overhead.get(metric)
        return Gate(run, number, title, metric, "failed", estimate, cell.reason or "this cell has no number")
    estimate = cell.overhead[metric]
    outcome = passed(metric, estimate, limit)
    if plausible.is_no_cost(cell):
        return Gate(run, number, title, metric, "unresolved", estimate, verdict_text.doubt(cell), "no-cost")
    how, hit = disturbance.state(cell), disturbance.counted(cell.disturbance)
    if how == "uneven":
        return Gate(run, number, title, metric, "unresolved", estimate, UNEVEN.format(hit), how)
    judged = with_failures(metric, cell, limit)
    if judged != outcome or (failures.differ(cell.failures) and judged != "fail"):
        return Gate(run, number, title, metric, judged, estimate, verdict_text.failing(cell), "failures")
    apart = outcome != robustly(metric, estimate, limit) or (outcome != "pass" and differ(cell))
    reasons = [hidden(metric, estimate) if apart else ""]
    reasons += [MOSTLY.format(hit)] if how else []
    return Gate(run, number, title, metric, outcome, estimate, "; ".join(filter(None, reasons)), how)


def passed(metric: str, estimate: Estimate, limit: float) -> Passed:
    """Whether a cost is certainly within the budget, certainly over it, or neither, by the worse of robust ratio and ratio of totals.

    Stalls that encryption causes are a cost, and only the totals include them.
    """
    outcomes = [robustly(metric, ratio, limit) for ratio in (estimate, of_totals(estimate)) if ratio is not None]
    return next(outcome for outcome in ("fail", "unresolved", "pass") if outcome in outcomes)


def with_failures(metric: str, cell: Cell, limit: float) -> Passed:
    """The same with what failed, which is part of the cost.

    A cost is within the budget only if it is with failed slices as slices without work too, and if neither arm fails more often. It is over
    the budget if it is with and without them, or if slices of one arm surely fail more often and with them it is.
    """
    estimate = cell.overhead[metric]
    outcome, of = passed(metric, estimate, limit), cell.failures
    if of is None:
        return outcome
    # A share of slices that succeed is lost like throughput.
    worst = [
        robustly("throughput", ratio, limit)
        for ratio in (of.throughput if metric == "throughput" else of.succeeded,)
        if ratio
    ]
    if "fail" in worst and (outcome == "fail" or (failures.slices_differ(of) and failures.more(of) == "encrypted")):
        return "fail"
    if failures.differ(of) or any(other != outcome for other in worst):
        return "unresolved"
    return outcome


def robustly(metric: str, estimate: Estimate, limit: float) -> Passed:
    """The same by the headline's interval alone."""
    _, low, high = figure_text.loss(metric, estimate)
    return "pass" if high <= limit else "fail" if low > limit else "unresolved"


def differ(cell: Cell) -> bool:
    """Whether the typical block hides a cost that all slices together show: a warning says so, or only the totals leave the verdict open."""
    return cell.totals_open or bool({"totals-disagree", "stalls"} & {warning.code for warning in cell.warnings})


def of_totals(estimate: Estimate) -> Estimate | None:
    """The ratio of totals as an estimate; None if the estimate is itself the ratio of totals."""
    ratio, low, high = estimate.ratio_of_totals, estimate.totals_low, estimate.totals_high
    return None if ratio is None or low is None or high is None else Estimate(ratio, low, high)


def hidden(metric: str, estimate: Estimate) -> str:
    """`all slices together, stalls included: 1.8 % fewer operations per second (0.3–3.2 %)`: the cost that the robust ratio hides."""
    totals_ = of_totals(estimate)
    if totals_ is None:
        return ""
    cost = notation.of_what(figure_text.cost(metric, totals_), figure_text.LABELS[metric])
    return f"all slices together, stalls included: {cost} ({figure_text.bounds(metric, totals_)})"
