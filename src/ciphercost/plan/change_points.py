"""Change points: where a series changes its level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 2
"""Smallest number of points between two changes."""


def change_points(signal: NDArray[np.float64], penalty: float) -> list[int]:
    """Indices at which the mean of `signal`, shape (n, dimensions), changes, in order; empty if it never changes.

    Minimises exactly the sum of squared deviations from each segment's mean, plus `penalty` for each change: optimal
    partitioning (Jackson et al. 2005), of which PELT (Killick, Fearnhead and Eckley 2012) is the pruned form. Its time grows
    with n², which is negligible below a thousand points. The package ruptures does the same but needs all of scipy, so only
    the tests use it, to compare.
    """
    n = len(signal)
    sums = np.vstack([np.zeros(signal.shape[1]), np.cumsum(signal, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((signal**2).sum(axis=1))])
    least_cost = np.full(n + 1, np.inf)
    least_cost[0] = -penalty
    last_change = np.zeros(n + 1, int)
    for end in range(LEAST, n + 1):
        starts = np.arange(end - LEAST + 1)
        deviations = squares[end] - squares[starts] - ((sums[end] - sums[starts]) ** 2).sum(axis=1) / (end - starts)
        totals = least_cost[starts] + deviations + penalty
        last_change[end] = int(np.argmin(totals))
        least_cost[end] = totals[last_change[end]]
    changes: list[int] = []
    end = n
    while end > 0 and (end := int(last_change[end])) > 0:
        changes.append(end)
    return changes[::-1]
