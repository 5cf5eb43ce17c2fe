"""Capacity at an objective: what both arms can do while they keep a latency, and their load–latency curves, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.estimate.notation import number, of_what
from ciphercost.model.objective_capacity import AtRate, ObjectiveArm, ObjectiveCapacity
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.report.words import figure_text

METRIC = "rate_at_objective"
OFTEN = 3
"""Events on average of which at least one is seen in 95 % of cases, if they are independent."""


def sentence(cell: Cell) -> str:
    """`At p99=5ms it sustains 11.4 % fewer operations/s (95 % CI 10.2–12.6 %): 12,300 → 10,900 /s.`; empty without an objective."""
    if (of := cell.objective) is None:
        return ""
    return f"At {of.objective} {words(cell, of)}."


def words(cell: Cell, of: ObjectiveCapacity) -> str:
    """What encryption costs in rate at the objective, or why that is not known."""
    if METRIC in cell.overhead:
        estimate = cell.overhead[METRIC]
        change, bounds = figure_text.cost(METRIC, estimate), figure_text.bounds(METRIC, estimate)
        return f"it sustains {of_what(change, 'operations/s')} (95 % CI {bounds}): {figure_text.levels(cell, METRIC)}"
    if of.at_most is not None:
        return f"the encrypted arm sustains less than {percent(of.at_most)} of the plain arm's rate: {of.reason}"
    if of.at_least is not None:
        return f"the encrypted arm sustains more than {percent(of.at_least)} of the plain arm's rate: {of.reason}"
    return f"no cost in rate is known: {of.reason or 'the cell has no number'}"


def percent(share: float) -> str:
    return f"{number(100 * share)} %"


def line(cell: Cell) -> str:
    """Each arm's capacity: `capacity at p99=5ms: plain 12,300/s, encrypted 10,900/s`; empty if there is none."""
    of = cell.objective
    if of is None:
        return ""
    if METRIC not in cell.overhead:
        return f"at {of.objective} {words(cell, of)}"
    rates = ", ".join(f"{arm} {_arm(of.arms[arm])}" for arm in ARMS)
    return f"capacity at {of.objective}: {rates}{_unseen(of)}"


def _unseen(of: ObjectiveCapacity) -> str:
    """Which stalls the run may not have met: those of which a run of this length has none in one case of 20 or more (e⁻³)."""
    if of.all_requests is None or not of.all_requests.watched_s:
        return ""
    return f"; stalls rarer than one in {number(of.all_requests.watched_s / OFTEN)} s may not be in it"


def _arm(of: ObjectiveArm) -> str:
    return of.kind if of.rate is None else f"{number(of.rate)}/s"


def head(of: ObjectiveCapacity) -> tuple[str, str, str]:
    """Heads of the curve's columns."""
    name = of.objective.partition("=")[0]
    return "operations/s", f"plain {name}", f"encrypted {name}"


def rows(of: ObjectiveCapacity) -> Iterator[tuple[str, str, str]]:
    """The load–latency curve: a rate, and both arms' latencies at it."""
    for point in of.curve:
        yield number(point.rate), latency(point.plain), latency(point.encrypted)


def latency(of: AtRate) -> str:
    """`4.21 ms`, or what the arm answered where it did not keep up."""
    return f"only {number(of.done_per_s)}/s" if of.latency_ms is None else f"{number(of.latency_ms)} ms"
