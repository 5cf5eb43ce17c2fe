"""durations: how long the slowest usual operations of a pilot take, from its slices. Pure; numpy only."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ciphercost.estimate.histogram import bounds
from ciphercost.model.histogram import decode
from ciphercost.model.slices import AgentSlice

RARE = 0.05
"""Operations that take less than this share of the time are no kind of the workload but stalls, such as a checkpoint's."""
ALIKE = 2.0
"""Operations all take about as long if the slowest usual ones take at most this many times their mean."""


def slowest_usual(slices: Iterable[tuple[AgentSlice, float]], clients: int) -> float:
    """Seconds such that operations that take longer take a twentieth of all time; 0 if operations all take about as long.

    `slices`: one arm's answers in a closed loop with nothing discarded, and the seconds that each really took, which are
    more than `seconds` if an operation outlasted the slice. `clients`: connections. Raises ValueError for a histogram
    that is none.
    """
    values, spent, done = [], [], 0.0
    for answer, took in slices:
        done += answer.done
        rest = clients * answer.seconds
        if answer.operations:
            histogram = decode(answer.histogram)
            low, high = bounds(histogram.layout, histogram.indices)
            values.append((low + high) / 2e9)
            spent.append(values[-1] * histogram.counts)
            rest -= float(spent[-1].sum())
        # One operation of each connection is cut off by the end: of these there is only the share that lay within.
        share = answer.done - answer.operations
        if share > 0 and rest > 0:
            longest = rest / clients + max(0.0, took - answer.seconds)
            values.append(np.array([min(rest / share, longest)]))
            spent.append(np.array([rest]))
    if not values or done <= 0:
        return 0.0
    durations, weights = np.concatenate(values), np.concatenate(spent)
    order = np.argsort(durations)
    reached = np.cumsum(weights[order])
    if not len(reached) or reached[-1] <= 0:
        return 0.0
    slow = float(durations[order][np.searchsorted(reached, (1 - RARE) * reached[-1])])
    return slow if slow > ALIKE * reached[-1] / done else 0.0
