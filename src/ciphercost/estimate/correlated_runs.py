"""Whether the changes of a series remain if its runs are correlated: neighbours that are alike look like levels. Pure.

The test in `history` compares with random orders of the runs, which are equally likely only if runs are independent. A machine that is slow for a
week, or a neighbour that comes and goes, makes runs close in time alike. So the levels that were found are compared with those of simulated
series that are correlated as much as the runs around them are, each cut into as many levels as fit it best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate.history import LEAST, SEED, Series, weights_of
from ciphercost.estimate.statistics import Floats

GRID = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Correlations of neighbouring runs that are simulated. More can't be told from levels."""
VISIBLE = 1.3
"""Correlation counts if that of the runs around their levels is this many standard deviations above that of independent runs."""
DRAWN, LEAST_DRAWN, WORK = 400, 100, 4e6
"""Simulated series for each correlation: the most, the fewest, and the most times the square of the number of runs."""
FEW = 20
"""With fewer runs, correlation can hardly be told from a change."""


class Correlated(NamedTuple):
    """What the runs' correlation makes of the changes."""

    rho: float
    """Estimated correlation of neighbouring runs; 0: none is visible."""
    p_value: float
    """How often series of that correlation, without a change, have levels that explain as much; 0 if no correlation is visible."""


def test(of: Series, edges: Sequence[int]) -> Correlated:
    """Test the levels of a series, `edges` from 0 to the number of runs, with one change or more."""
    n, levels = len(of.values), len(edges) - 1
    weights = weights_of(of, edges)
    roots = np.sqrt(weights)
    around = np.empty(n)
    for first, last in itertools.pairwise(edges):
        around[first:last] = of.values[first:last] - np.average(of.values[first:last], weights=weights[first:last])
    whole = of.values - np.average(of.values, weights=weights)
    explained = 1 - float(weights @ around**2) / float(weights @ whole**2)
    correlation = float(_lag((roots * around)[None])[0])
    count = int(min(DRAWN, max(LEAST_DRAWN, WORK / n**2)))
    random = np.random.default_rng(SEED)
    drawn = [_fitted(_series(random, count, n, rho), levels) for rho in GRID]
    means = np.maximum.accumulate([float(lags.mean()) for _, lags in drawn])
    if correlation <= means[0] + VISIBLE * float(drawn[0][1].std()):
        return Correlated(0.0, 0.0)
    rho = float(np.interp(correlation, means, GRID))
    p_values = [float(1 + np.count_nonzero(shares >= explained)) / (1 + count) for shares, _ in drawn]
    return Correlated(rho, float(np.interp(rho, GRID, p_values)))


def worth(runs: int, rho: float) -> float:
    """How many independent runs have a mean as exact as that of these."""
    return max(1.0, runs * (1 - rho) / (1 + rho))


def _series(random: np.random.Generator, count: int, n: int, rho: float) -> Floats:
    """Stationary AR(1) series, shape (count, n)."""
    series = random.normal(size=(count, n))
    series[:, 1:] *= math.sqrt(1 - rho**2)
    for run in range(1, n):
        series[:, run] += rho * series[:, run - 1]
    return series


def _lag(around: Floats) -> Floats:
    """Lag-1 autocorrelation of each row, whose mean is about 0."""
    lags: Floats = (around[:, 1:] * around[:, :-1]).sum(axis=1) / np.maximum((around**2).sum(axis=1), 1e-300)
    return lags


def _fitted(rows: Floats, levels: int) -> tuple[Floats, Floats]:
    """Of each row cut into that many levels so that they explain most: the share explained, and the correlation around them."""
    count, n = rows.shape
    rows = rows - rows.mean(axis=1, keepdims=True)
    zero = np.zeros((count, 1))
    sums = np.concatenate([zero, np.cumsum(rows, axis=1)], axis=1)
    # Least squares: a stretch explains its sum² ÷ its length.
    best = np.where(np.arange(n + 1) >= LEAST, sums**2 / np.maximum(np.arange(n + 1), 1), -np.inf)
    cuts = []
    for level in range(2, levels + 1):
        now, cut = np.full((count, n + 1), -np.inf), np.zeros((count, n + 1), dtype=np.int64)
        for end in range(level * LEAST, n + 1):
            starts = np.arange((level - 1) * LEAST, end - LEAST + 1)
            gain = best[:, starts] + (sums[:, [end]] - sums[:, starts]) ** 2 / (end - starts)
            at = gain.argmax(axis=1)
            now[:, end], cut[:, end] = gain[np.arange(count), at], starts[at]
        best = now
        cuts.append(cut)
    shares: Floats = best[:, n] / (rows**2).sum(axis=1)
    around = rows.copy()
    end_of = np.full(count, n)
    index = np.arange(n)
    for cut in [*reversed(cuts), np.zeros((count, n + 1), dtype=np.int64)]:
        start_of = cut[np.arange(count), end_of]
        mean = (sums[np.arange(count), end_of] - sums[np.arange(count), start_of]) / (end_of - start_of)
        inside = (index >= start_of[:, None]) & (index < end_of[:, None])
        around -= inside * mean[:, None]
        end_of = start_of
    return shares, _lag(around)
