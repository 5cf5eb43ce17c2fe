"""The verdict of a cell (equivalent, differs or unresolved), and its correction for the number of cells. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import ALPHA, Interval
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.result import CellEstimate
from ciphercost.model.spec import Mode
from ciphercost.plan.schedule import LEAST_SESSIONS


class Judged(NamedTuple):
    """A verdict, the smallest effect that could have been detected, and what would resolve an open verdict."""

    verdict: Verdict
    smallest_effect: float | None = None
    """As a share: 0.013 is 1.3 %."""
    sessions_needed: int | None = None
    totals_open: bool = False
    """The typical block is within the margin, but all slices together may not be."""
    failures_open: bool = False
    """The slices that did not fail would decide it, but failed ones may change the answer."""


def judge(
    interval: Interval | None,
    of_totals: Interval | None,
    mode: Mode,
    margin: float,
    failing: Interval | None = None,
    *,
    one_fails: bool = False,
) -> Judged:
    """The verdict from the log ratios of the robust estimate and of the totals.

    Equivalence goes first: an effect that is certainly there and certainly within the margin counts as none. Both estimates must pass:
    the robust one hides stalls that encryption causes, and the ratio of totals includes them.
    `failing`: the robust estimate with failed slices as slices without work; None: none failed. Where it would give another answer, the
    verdict is open. `one_fails`: one arm fails more often by more than chance, so the arms are not equivalent.
    """
    if interval is None:
        return Judged("unresolved")
    judged = _judged(interval, of_totals, mode, margin)
    if failing is None and not one_fails:
        return judged
    if judged.verdict == "equivalent":
        sure = not one_fails and failing is not None and failing.tost(math.log1p(margin)) < ALPHA
    elif judged.verdict == "differs" and failing is not None:
        sure = failing.p_value() < ALPHA and (failing.centre > 0) == (interval.centre > 0)
    else:
        sure = True
    if sure:
        return judged
    return Judged("unresolved", math.expm1((failing or interval).smallest_effect()), failures_open=True)


def _judged(interval: Interval, of_totals: Interval | None, mode: Mode, margin: float) -> Judged:
    """The verdict from slices that did not fail."""
    bound = math.log1p(margin)
    smallest = math.expm1(interval.smallest_effect())
    within = interval.tost(bound) < ALPHA
    if within and (of_totals is None or of_totals.tost(bound) < ALPHA):
        return Judged("equivalent", smallest)
    if interval.p_value() < ALPHA:
        return Judged("differs", smallest)
    open_ = within and of_totals is not None
    if within and of_totals is not None:
        # Only the cost by the totals is open, so its interval gives the smallest effect and the sessions needed.
        interval = of_totals
        smallest = math.expm1(interval.smallest_effect())
    # One session has no information on the scatter between sessions; its own error is a lower limit of it.
    between = math.sqrt(interval.n) if mode == "full" and len(interval.errors) == 1 else 1.0
    sd = between * max(error.standard for error in interval.errors)
    needed = statistics.sessions_needed(interval.centre, sd, bound)
    return Judged("unresolved", smallest, None if needed is None else max(needed, LEAST_SESSIONS), open_)


def holm(cells: Sequence[CellEstimate]) -> list[CellEstimate]:
    """The same cells, with the p-values of their verdicts corrected for their number (Holm).

    A cell that differs on its own but not after the correction becomes `unresolved`. It loses its smallest detectable effect, which would
    be that of the uncorrected test. `equivalent` stays: each claim of equivalence is about one cell.
    """
    keys = ["throughput" if "throughput" in cell.overhead else "latency_p50" for cell in cells]
    raw = [cell.overhead[key].p_value if key in cell.overhead else None for cell, key in zip(cells, keys, strict=True)]
    adjusted = iter(statistics.holm([p for p in raw if p is not None]))
    result = []
    for cell, key, p in zip(cells, keys, raw, strict=True):
        if p is None:
            result.append(cell)
            continue
        p_value = next(adjusted)
        overhead = {**cell.overhead, key: msgspec.structs.replace(cell.overhead[key], p_value=p_value)}
        cell = msgspec.structs.replace(cell, overhead=overhead)
        if cell.verdict == "differs" and p_value >= ALPHA:
            cell = msgspec.structs.replace(cell, verdict="unresolved", smallest_effect=None, sessions_needed=None)
        result.append(cell)
    return result
