"""Whether the cost itself stayed the same during a run, and whether its sessions are skewed: what an interval does not show. Pure.

A run's ratio is a mean over its time. If the cost changes within it (a cache that fills up, a plan that flips, a neighbour that only one arm
meets), the ratio is that of no time, and its interval only says how well the mean is known.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.estimate import student_t
from ciphercost.estimate.statistics import ROUNDING, Floats
from ciphercost.model.result import Warning_
from ciphercost.model.spec import Mode

ALPHA = 0.01
"""Level of both tests. They run on every cell, so 5 % would warn too often."""
LEAST_BLOCKS, LEAST_SIDE = 12, 4
"""Fewest blocks, and fewest before and after a change, where blocks are the unit."""
LEAST_SESSIONS, LEAST_SESSIONS_SIDE = 4, 2
"""The same for sessions."""
ORDERS = 1999
"""Random orders of the blocks."""
MOST_BLOCKS = 200
"""More blocks are taken together in this many groups, of which the medians count."""
SMALLEST = 0.01
"""Changes of the log ratio below this are not reported, however certain they are."""
LEAST_FOR_SKEWNESS = 8
"""Fewest sessions for the test of skewness, whose approximation begins there."""


class Change(NamedTuple):
    """The cost changed: what it was before and after, as log ratios."""

    after: int
    """How many units came before the change."""
    unit: str
    before: float
    behind: float
    p_value: float


def change(sessions: Sequence[Floats], centres: Floats, mode: Mode) -> Change | None:
    """The most certain change of the cost, if there surely was one; None if not, or if there is too little to see one in.

    `sessions`: each one's block values in the order of measurement; `centres`: their Hodges–Lehmann values.
    """
    if mode == "full" and len(sessions) > 1:
        return _of_sessions(centres) if len(centres) >= LEAST_SESSIONS else None
    blocks = np.concatenate(sessions) if sessions else np.empty(0)
    return _of_blocks(blocks) if len(blocks) >= LEAST_BLOCKS else None


def _of_sessions(values: Floats) -> Change | None:
    """Two-sample t of every split; Bonferroni for their number. Eight sessions have too few orders for a permutation test at 1 %."""
    n = len(values)
    ends = range(LEAST_SESSIONS_SIDE, n - LEAST_SESSIONS_SIDE + 1)
    best, at = 1.0, 0
    for end in ends:
        first, last = values[:end], values[end:]
        squares = float(((first - first.mean()) ** 2).sum() + ((last - last.mean()) ** 2).sum())
        standard = math.sqrt(squares / (n - 2) * (1 / end + 1 / (n - end)))
        distance = abs(float(last.mean() - first.mean()))
        p_value = 2 * student_t.upper_tail(distance / max(standard, ROUNDING), n - 2)
        if p_value < best:
            best, at = p_value, end
    return _large(values, at, "sessions", len(ends) * best) if at else None


def _of_blocks(values: Floats) -> Change | None:
    """Pettitt's rank test (Applied Statistics 1979), each split in units of its own standard deviation, against random orders.

    The coin makes blocks uncorrelated and symmetric whatever the machine does to both arms, so all orders are equally likely.
    """
    ends_of = np.linspace(0, len(values), min(len(values), MOST_BLOCKS) + 1).round().astype(int)
    groups = values
    if len(values) > MOST_BLOCKS:
        groups = np.array([np.median(values[first:last]) for first, last in itertools.pairwise(ends_of)])
    n = len(groups)
    ranks = np.argsort(np.argsort(groups)).astype(np.float64)
    ranks -= ranks.mean()
    ends = np.arange(LEAST_SIDE, n - LEAST_SIDE + 1)
    scale = np.sqrt(ends * (n - ends))
    observed = np.abs(np.cumsum(ranks)[ends - 1]) / scale
    sums = ranks[_orders(n)]
    np.cumsum(sums, axis=0, out=sums)
    drawn = (np.abs(sums[ends - 1]) / scale[:, np.newaxis]).max(axis=0)
    p_value = (1 + int((drawn >= observed.max() * (1 - 1e-9)).sum())) / (1 + ORDERS)
    return _large(values, int(ends_of[ends[observed.argmax()]]), "blocks", p_value)


@functools.lru_cache(4)
def _orders(n: int) -> NDArray[np.intp]:
    """The random orders of n units, shape (n, ORDERS): each column is one. Always the same ones."""
    rows = np.random.default_rng(0).permuted(np.tile(np.arange(n), (ORDERS, 1)), axis=1)
    return np.ascontiguousarray(rows.T)


def _large(values: Floats, at: int, unit: str, p_value: float) -> Change | None:
    before, behind = (float(np.median(part)) for part in (values[:at], values[at:]))
    if p_value >= ALPHA or abs(behind - before) < SMALLEST:
        return None
    return Change(at, unit, before, behind, p_value)


def skewness(values: Floats) -> float:
    """Two-sided p-value that values of this skewness come from a normal distribution; 1 for fewer than LEAST_FOR_SKEWNESS.

    D'Agostino's transformation (Biometrika 1970).
    """
    n = len(values)
    away = values - values.mean()
    variance = float((away**2).mean())
    if n < LEAST_FOR_SKEWNESS or variance <= ROUNDING**2:
        return 1.0
    y = float((away**3).mean()) / variance**1.5 * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    kurtosis = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (kurtosis - 1)) - 1
    z = math.asinh(y / math.sqrt(2 / (w - 1))) / math.sqrt(math.log(w) / 2)
    return math.erfc(abs(z) / math.sqrt(2))


def uneven(values: Floats) -> bool:
    """Whether sessions are surely skewed, and one is far from the typical one."""
    return skewness(values) < ALPHA and float(np.abs(values - np.median(values)).max()) >= SMALLEST


def warnings(sessions: Sequence[Floats], centres: Floats, mode: Mode) -> list[Warning_]:
    """The warnings `cost-changed` and `uneven-sessions`."""
    warnings: list[Warning_] = []
    if not sessions:
        return warnings
    if (changed := change(sessions, centres, mode)) is not None:
        before, behind = (f"{math.exp(value):.4g}" for value in (changed.before, changed.behind))
        text = (
            f"the cost changed during the run: throughput's ratio was {before} in the first {changed.after} {changed.unit} and {behind} in the others "
            f"(p = {changed.p_value:.2g}); the printed ratio is a mean of both; "
            "look in logs/ and slices.jsonl for what changed, and measure again with a longer --time"
        )
        warnings.append(Warning_("cost-changed", text))
    elif mode == "full" and uneven(centres):
        far = int(np.abs(centres - np.median(centres)).argmax())
        text = (
            f"the sessions are skewed (p = {skewness(centres):.2g}): a typical one has the ratio {math.exp(float(np.median(centres))):.4g}, one has "
            f"{math.exp(float(centres[far])):.4g}; some starts of the servers differ from the others, and so few sessions say little about how often: "
            "intervals of skewed sessions hold the true cost in 82 to 93 % of simulated runs; try --sessions 24"
        )
        warnings.append(Warning_("uneven-sessions", text))
    return warnings
