"""Correlated runs look like levels: how often changes of such histories remain, and those of independent ones."""

from __future__ import annotations

import numpy as np
import pytest

from ciphercost.estimate import correlated_runs
from ciphercost.estimate.history import Series

SD = 0.01


def series(random: np.random.Generator, count: int, rho: float = 0.0) -> Series:
    values = correlated_runs._series(random, 1, count, rho)[0]
    return Series(SD * values, np.full(count, SD), np.full(count, 7.0))


def step(of: Series, at: int, size: float, until: int | None = None) -> Series:
    values = of.values.copy()
    values[at:until] += size * SD
    return of._replace(values=values)


def best_split(of: Series) -> int:
    """Where two levels explain most."""
    n = len(of.values)
    gains = [abs(of.values[:at].mean() - of.values[at:].mean()) ** 2 * at * (n - at) for at in range(2, n - 1)]
    return 2 + int(np.argmax(gains))


@pytest.mark.parametrize("count", [20, 40])
def test_most_levels_of_correlated_histories_are_seen_through(count: int) -> None:
    random = np.random.default_rng(54)
    for rho, most in ((0.6, 0.4), (0.9, 0.4)):
        kept = []
        for _ in range(40):
            runs = series(random, count, rho)
            kept.append(correlated_runs.test(runs, [0, best_split(runs), count]).p_value < 0.05)
        assert np.mean(kept) <= most, (rho, np.mean(kept))


@pytest.mark.parametrize("count", [20, 40])
def test_clear_steps_of_independent_runs_remain(count: int) -> None:
    random = np.random.default_rng(55)
    third = count // 3
    results = []
    for _ in range(15):
        runs = series(random, count)
        results += [
            correlated_runs.test(step(runs, count // 2, 7), [0, count // 2, count]),
            correlated_runs.test(step(step(runs, third, 7), 2 * third, 7), [0, third, 2 * third, count]),
            correlated_runs.test(step(runs, third, 7, until=2 * third), [0, third, 2 * third, count]),
        ]
    assert np.mean([result.p_value < 0.05 for result in results]) >= 0.95


def test_the_correlation_is_estimated_and_what_it_makes_of_the_runs() -> None:
    random = np.random.default_rng(56)
    estimates = {}
    for rho in (0.0, 0.9):
        histories = [series(random, 60, rho) for _ in range(15)]
        estimates[rho] = np.median(
            [correlated_runs.test(history, [0, best_split(history), 60]).rho for history in histories]
        )
    assert estimates[0.0] == 0
    assert estimates[0.9] >= 0.6
    assert correlated_runs.worth(20, 0.0) == 20
    assert correlated_runs.worth(20, 0.6) == pytest.approx(5)


def test_cuts_are_those_that_explain_most() -> None:
    rows = np.random.default_rng(57).normal(size=(5, 9))
    shares, _ = correlated_runs._fitted(rows, 3)
    for row, share in zip(rows, shares, strict=True):
        away = row - row.mean()
        best = max(
            1
            - sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(away, [a, b])) / float((away**2).sum())
            for a in range(2, 6)
            for b in range(a + 2, 8)
        )
        assert share == pytest.approx(best)
