"""The smallest difference that a comparison of two averages can show, from the scatter of what was averaged. Pure.

The scatter of a few values is itself uncertain, so each resolution has a 95 % interval: that of a normal sample's standard deviation
(chi-square). All values are natural logarithms of rates, so a resolution of 0.005 is half a per cent.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ciphercost.estimate import chi_square, student_t

MOST_RUNS = 1_000_000
SEARCHED = 0.005
"""The difference that is asked for: half a per cent."""


class Spread(NamedTuple):
    """Pooled standard deviation of groups of values, with its 95 % interval."""

    sd: float
    low: float
    high: float
    freedom: int
    """Degrees of freedom."""


class Resolution(NamedTuple):
    """Half-width of the 95 % interval of a difference of two averages: a smaller one can't be told from none."""

    value: float
    low: float
    high: float


class Needed(NamedTuple):
    """How many are needed, with the 95 % interval that comes from that of their spread."""

    value: int
    low: int
    high: int


def spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    """Spread of values around their group's mean; None if no group has two values, or all of them are equal."""
    freedom = sum(len(group) - 1 for group in groups if group)
    squares = sum((value - fmean(group)) ** 2 for group in groups if group for value in group)
    if freedom < 1 or squares == 0:
        return None
    low, high = (math.sqrt(squares / chi_square.quantile(p, freedom)) for p in (0.975, 0.025))
    return Spread(math.sqrt(squares / freedom), low, high, freedom)


def resolution(of: Spread, runs: int = 1) -> Resolution:
    """That of averages over `runs` values each, whose spread is known with the degrees of freedom of `of`."""
    scale = student_t.quantile(0.975, of.freedom) * math.sqrt(2 / runs)
    return Resolution(of.sd * scale, of.low * scale, of.high * scale)


def sessions_needed(half: float, sessions: int, wanted: float) -> Needed | None:
    """Sessions after which the interval over sessions of a log ratio is ± `wanted`, if that of `sessions` sessions is ± `half`.

    None for fewer than two sessions: their spread is not known.
    """
    if sessions < 2 or half <= 0:
        return None
    freedom = sessions - 1
    sd = half * math.sqrt(sessions) / student_t.quantile(0.975, freedom)
    low, high = (sd * math.sqrt(freedom / chi_square.quantile(p, freedom)) for p in (0.975, 0.025))
    return Needed(*(_fewest(value, wanted) for value in (sd, low, high)))


def _fewest(sd: float, wanted: float) -> int:
    """Fewest values whose mean is known to ± `wanted`; MOST_RUNS if more are needed."""
    return bisect.bisect_left(
        range(MOST_RUNS),
        True,
        lo=2,
        key=lambda n: student_t.quantile(0.975, n - 1) * sd / math.sqrt(n) <= wanted,
    )


def runs_needed(sd: float, wanted: float = SEARCHED) -> int:
    """Runs of each arm after which a difference of two averages is known to ±`wanted`; MOST_RUNS if more are needed."""
    runs = 2
    while runs < MOST_RUNS and student_t.quantile(0.975, 2 * runs - 2) * sd * math.sqrt(2 / runs) > wanted:
        # Beyond some hundreds Student's t is the normal distribution.
        runs = runs + 1 if runs < 500 else max(runs + 1, math.ceil(2 * (1.96 * sd / wanted) ** 2))
        if runs > 500:
            return min(runs, MOST_RUNS)
    return runs
