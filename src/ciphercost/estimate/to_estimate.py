"""The printed form of a log ratio: an Estimate with bounds, and both arms' levels. Pure."""

from __future__ import annotations

import math

import msgspec

from ciphercost.estimate.statistics import Interval
from ciphercost.model.result import Estimate
from ciphercost.model.spec import Arm, Mode

PAIR_ONLY = "this server pair only"


def to_estimate(interval: Interval, mode: Mode, unit: str) -> Estimate:
    """The ratio, its 95 % bounds and its sample unit. `interval`: of the log ratio; `unit`: of the arms' levels."""
    low, high = interval.bounds()
    method = interval.method()
    if len(interval.errors) > 1 or mode == "quick":
        method += f"; {PAIR_ONLY}"
    return Estimate(
        ratio=math.exp(interval.centre),
        low=math.exp(low),
        high=math.exp(high),
        n=interval.n,
        method=method,
        p_value=interval.p_value(),
        unit=unit,
    )


def with_totals(estimate: Estimate, of_totals: Interval | None) -> Estimate:
    """The estimate with the ratio of totals added. None: the estimate is itself the ratio of totals."""
    if of_totals is None:
        return msgspec.structs.replace(estimate, ratio_of_totals=estimate.ratio)
    low, high = of_totals.bounds()
    return msgspec.structs.replace(
        estimate, ratio_of_totals=math.exp(of_totals.centre), totals_low=math.exp(low), totals_high=math.exp(high)
    )


def around(level: float, log_ratio: float) -> dict[Arm, float]:
    """Both arms' levels from the log level of both together; encrypted ÷ plain is exp(`log_ratio`)."""
    return {"plain": math.exp(level - log_ratio / 2), "encrypted": math.exp(level + log_ratio / 2)}
