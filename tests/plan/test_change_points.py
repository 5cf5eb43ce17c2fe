"""Change points, compared with the package ruptures and with planted changes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import ruptures
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.plan.change_points import LEAST, change_points


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(4, 40),
    steps=st.lists(st.floats(-4, 4), min_size=0, max_size=3),
    penalty=st.floats(2, 30),
    dimensions=st.integers(1, 2),
)
def test_no_partition_costs_less(seed: int, n: int, steps: list[float], penalty: float, dimensions: int) -> None:
    random = np.random.default_rng(seed)
    signal = random.standard_normal((n, dimensions))
    for step in steps:
        signal[int(random.integers(n)) :] += step
    changes = change_points(signal, penalty)
    # ruptures' PELT prunes slightly too much if segments have a minimum length, so its cost may be higher.
    pelt = ruptures.Pelt("l2", min_size=LEAST, jump=1).fit(signal).predict(pen=penalty)[:-1]
    assert cost(signal, changes, penalty) <= cost(signal, pelt, penalty) + 1e-9
    if changes:
        best = ruptures.Dynp("l2", min_size=LEAST, jump=1).fit(signal).predict(n_bkps=len(changes))[:-1]
        assert cost(signal, changes, penalty) == pytest.approx(cost(signal, best, penalty))


def cost(signal: np.ndarray, changes: list[int], penalty: float) -> float:
    """The cost that all methods minimise."""
    segments = list(itertools.pairwise([0, *changes, len(signal)]))
    assert all(last - first >= LEAST for first, last in segments)
    parts = [signal[first:last] for first, last in segments]
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts) + penalty * len(changes)


def test_planted_changes_are_found_where_they_are() -> None:
    level = np.repeat([0.0, 5.0, -5.0, 0.0], [20, 10, 15, 30])
    signal = (level + 0.1 * np.random.default_rng(1).standard_normal(len(level)))[:, None]
    assert change_points(signal, 5.0) == [20, 30, 45]


def test_a_steady_series_has_none() -> None:
    assert change_points(np.full((40, 2), 3.0), 5.0) == []
