"""Log ratios with their standard errors, read back from a result that is given without its record. Pure."""

from __future__ import annotations

import math
import re

from ciphercost.estimate import failures, student_t
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.result import Cell, Estimate, Result


def of_result(result: Result) -> list[dict[str, Interval]]:
    """For each cell, the log ratio of each metric that has an interval.

    A result has 95 % bounds and the name of the method that set them, from which the standard error follows. Where the
    record has several standard errors, only that one is known.
    """
    return [_of_cell(cell) for cell in result.cells]


def _of_cell(cell: Cell) -> dict[str, Interval]:
    if cell.status != "ok" or cell.imported is not None:
        return {}
    known = dict(cell.overhead)
    if cell.failures is not None and cell.failures.throughput is not None and "throughput" in known:
        known[failures.key("throughput")] = cell.failures.throughput
    return {name: interval for name, estimate in known.items() if (interval := _interval(estimate)) is not None}


def _interval(of: Estimate) -> Interval | None:
    if of.n < 2 or not 0 < of.low <= of.ratio <= of.high < math.inf:
        return None
    stated = re.search(r"ν = ([0-9.]+)", of.method)
    nu = float(stated[1]) if stated else of.n - 1.0
    low, high = math.log(of.low), math.log(of.high)
    half = (high - low) / 2
    error = Error(half / student_t.quantile(0.975, max(nu, 1.0)), max(nu, 1.0), of.method)
    return Interval(math.log(of.ratio), (error,), of.n, mean=(low + high) / 2)
