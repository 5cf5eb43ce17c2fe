"""A slow kind of operation among quick ones: what slices of the chosen length measure, against what is true."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ciphercost.estimate.tally import COLUMN, FIELDS, QUANTILES, Arms
from ciphercost.estimate.warnings import rows_differ
from ciphercost.plan import schedule

QUICK, SLOW, SLOWER = 0.05, 1.0, 1.3
"""Seconds of the quick kind, and of the slow one in each arm."""
ROWS = {QUICK: 1, SLOW: 100, SLOWER: 100}


def measured(random: np.random.Generator, slow: float, weight: float, length: float) -> tuple[float, int, int]:
    """Work, operations and rows in the counted part of one slice of one connection."""
    begin, end = schedule.DISCARD * length, length
    now, work, operations, rows = 0.0, 0.0, 0, 0
    while now < end:
        took = slow if random.random() < weight else QUICK
        work += max(0.0, min(now + took, end) - max(now, begin)) / took
        now += took
        if begin <= now < end:
            operations, rows = operations + 1, rows + ROWS[took]
    return work, operations, rows


def arm(random: np.random.Generator, slow: float, weight: float, length: float, slices: int) -> NDArray[np.float64]:
    return np.array([measured(random, slow, weight, length) for _ in range(slices)])


def bias(weight: float, times: float, slices: int = 3000) -> float:
    """Measured ÷ true ratio of throughput, encrypted ÷ plain, minus one, if slices last `times` the slowest kind."""
    random = np.random.default_rng(1)
    plain, encrypted = (arm(random, slow, weight, times * SLOWER, slices)[:, 0].mean() for slow in (SLOW, SLOWER))
    mean = [(1 - weight) * QUICK + weight * slow for slow in (SLOW, SLOWER)]
    return float(encrypted / plain / (mean[0] / mean[1]) - 1)


@pytest.mark.parametrize("weight", [0.5, 0.1, 0.02])
def test_slices_of_the_chosen_length_are_long_enough_for_the_ratio(weight: float) -> None:
    assert abs(bias(weight, schedule.SLOWEST_FIT)) < 0.04
    assert abs(bias(weight, schedule.SLOWEST_LEAST)) < 0.04


def test_slices_as_long_as_the_slowest_kind_are_not() -> None:
    """Otherwise the test above could not fail."""
    assert abs(bias(0.5, 1.0)) > 0.25


@pytest.mark.parametrize("times", [schedule.SLOWEST_LEAST, schedule.SLOWEST_FIT])
@pytest.mark.parametrize("weight", [0.5, 0.1])
def test_the_same_work_is_rarely_called_different(weight: float, times: float) -> None:
    random = np.random.default_rng(2)
    runs = 60
    alarms = sum(rows_differ(as_arms(both(random, weight, times))) for _ in range(runs))
    assert alarms <= 0.03 * runs


def test_twenty_rows_more_in_each_operation_are_called_different() -> None:
    counts = both(np.random.default_rng(3), 0.1, schedule.SLOWEST_FIT)
    counts["encrypted"][:, :, 2] += 20 * counts["encrypted"][:, :, 1]
    assert rows_differ(as_arms(counts))


def both(random: np.random.Generator, weight: float, times: float, blocks: int = 10) -> dict[str, NDArray[np.float64]]:
    """Both arms of one run, each of shape (blocks, 2 slices, 3), in slices of `times` the slowest kind."""
    return {
        name: arm(random, slow, weight, times * SLOWER, 2 * blocks).reshape(blocks, 2, 3)
        for name, slow in (("plain", SLOW), ("encrypted", SLOWER))
    }


def as_arms(counts: dict[str, NDArray[np.float64]]) -> Arms:
    """One run's blocks, each arm of shape (blocks, 2 slices, 3): work, operations, rows."""
    slices = {}
    for name, values in counts.items():
        slices[name] = np.zeros((*values.shape[:2], len(FIELDS)))
        for place, field in enumerate(("work", "operations", "rows")):
            slices[name][..., COLUMN[field]] = values[..., place]
    none = np.empty((0, len(QUANTILES)))
    sessions = np.ones(len(counts["plain"]), np.int64)
    return Arms(sessions, slices["plain"], slices["encrypted"], none, none, none, none)
