"""Where a series of runs changes its level: how often a change is found that is none, and how often one that is."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from ciphercost.estimate import history, statistics, student_t
from ciphercost.estimate.history import Levels, Series
from ciphercost.estimate.statistics import Error, Interval

SD = 0.01
NU = 7
HALF = SD * student_t.quantile(0.975, NU)
"""Half-width of a run's 95 % interval: eight sessions."""
ORDERS = 999
MARGIN = 1e-6
"""So small that no change counts as none because of its size."""


def runs(
    random: np.random.Generator, count: int = 20, *, scatter: float = 0.0, unequal: bool = False, heavy: bool = False
) -> Series:
    """Runs of one level. `scatter`: sd between runs, in standard errors of a run, which no run's interval shows."""
    true = SD * (np.exp(random.normal(0, 0.7, count)) if unequal else np.ones(count))
    noise = random.standard_t(3, count) if heavy else random.normal(size=count)
    values = noise * true + random.normal(size=count) * scatter * SD
    return Series(values, true * np.sqrt(random.chisquare(NU, count) / NU), np.full(count, float(NU)))


def step(of: Series, at: int, size: float, until: int | None = None) -> Series:
    values = of.values.copy()
    values[at:until] += size
    return of._replace(values=values)


def change_points(of: Series) -> list[int]:
    whole = history.one_level(of, ORDERS)
    at = history.changes(of, whole) if whole.p_value < statistics.ALPHA else []
    return history.certain(of, at, MARGIN).edges[1:-1]


NOISE: dict[str, dict[str, Any]] = {
    "as the intervals say": {},
    "more than the intervals say": {"scatter": 2.0},
    "intervals of different widths": {"unequal": True},
    "wild runs": {"heavy": True},
    "8 runs": {"count": 8},
    "40 runs": {"count": 40},
}
BAR = {400: 0.083, 4000: 0.0603}
"""5 % plus chance: the 99.8 % quantile of a binomial, by number of histories."""


@pytest.mark.parametrize("histories", [400, 4000])
@pytest.mark.parametrize("noise", NOISE)
def test_at_most_five_per_cent_of_histories_without_a_change_show_one(noise: str, histories: int) -> None:
    random = np.random.default_rng(19)
    claims = sum(bool(change_points(runs(random, **NOISE[noise]))) for _ in range(histories))
    assert claims / histories <= BAR[histories], claims


@pytest.mark.parametrize(("at", "count"), [(10, 20), (4, 20), (18, 20), (2, 20), (4, 8)])
def test_a_step_of_three_half_widths_is_found_where_it_is(at: int, count: int) -> None:
    random = np.random.default_rng(3)
    exact = sum(change_points(step(runs(random, count), at, 3 * HALF)) == [at] for _ in range(50))
    assert exact >= 45


def test_a_change_that_was_undone_is_found() -> None:
    random = np.random.default_rng(4)
    both = sum(change_points(step(runs(random), 8, 3 * HALF, until=13)) == [8, 13] for _ in range(50))
    assert both >= 45


def test_several_changes_are_found() -> None:
    random = np.random.default_rng(5)
    stepped = step(step(runs(random, 30), 10, 3 * HALF), 20, 3 * HALF)
    assert change_points(stepped) == [10, 20]


def test_a_single_odd_run_is_no_change() -> None:
    for at in range(20):
        random = np.random.default_rng(at)
        assert change_points(step(runs(random), at, 20 * HALF, until=at + 1)) == []


def test_a_run_with_a_wide_interval_counts_less() -> None:
    """Four wild runs at the end look like a step, unless their own intervals show that they say little."""
    random = np.random.default_rng(7)
    stepped = step(runs(random), 16, 2 * HALF)
    assert change_points(stepped) == [16]
    wide = stepped.errors.copy()
    wide[16:] *= 30
    assert change_points(stepped._replace(errors=wide)) == []


def test_a_change_within_the_margin_is_none() -> None:
    stepped = step(runs(np.random.default_rng(12), 40), 20, HALF)
    assert history.certain(stepped, [20], MARGIN).edges == [0, 20, 40]
    assert history.certain(stepped, [20], 2 * HALF).edges == [0, 40]


def test_the_smallest_step_is_found_in_at_least_four_of_five_histories() -> None:
    random = np.random.default_rng(8)
    every = [runs(random) for _ in range(100)]
    steps = [history.one_level(series, ORDERS).smallest_step for series in every]
    power = np.mean([bool(change_points(step(series, 10, size))) for series, size in zip(every, steps, strict=True)])
    assert power >= 0.8


def test_the_place_of_a_change_lies_in_its_interval() -> None:
    random = np.random.default_rng(9)
    inside, claims = 0, 0
    for _ in range(100):
        stepped = step(runs(random), 12, 1.2 * HALF)
        if len(at := change_points(stepped)) == 1:
            claims += 1
            earliest, latest = Levels(stepped, at).place(0)
            assert earliest <= at[0] <= latest
            inside += earliest <= 12 <= latest
    assert claims > 75
    assert inside / claims >= 0.93


@pytest.mark.parametrize(
    "noise", ["as the intervals say", "more than the intervals say", "intervals of different widths"]
)
def test_the_interval_of_a_level_covers_it(noise: str) -> None:
    random = np.random.default_rng(10)
    covered = 0
    for _ in range(400):
        (mean,) = Levels(runs(random, **NOISE[noise]), []).means()
        low, high = mean.bounds()
        covered += low <= 0 <= high
    assert covered / 400 >= 0.92


def test_least_runs_is_the_number_with_which_the_clearest_step_is_found() -> None:
    assert history.least_runs(1) == 8
    clear = Series(np.array([0.0] * 4 + [1.0] * 4), np.full(8, 1e-3), np.full(8, 7.0))
    assert history.one_level(clear).p_value < statistics.ALPHA
    fewer = Series(*(column[:-1] for column in clear))
    assert history.one_level(fewer).p_value > statistics.ALPHA
    for one, more in itertools.pairwise((1, 3, 10, 30, 100)):
        assert history.least_runs(one) < history.least_runs(more)


def test_the_same_runs_give_the_same_answer_in_any_unit() -> None:
    stepped = step(runs(np.random.default_rng(11)), 9, HALF)
    first = history.one_level(stepped)
    assert history.one_level(stepped) == first
    scaled = Series(-1000 * stepped.values + 7, 1000 * stepped.errors, stepped.nus)
    assert history.one_level(scaled).p_value == pytest.approx(first.p_value)
    assert history.one_level(scaled).arc == first.arc


def test_equal_values_without_errors_are_one_level() -> None:
    """Bytes of a fixed request are the same in every run."""
    same = Series(np.full(10, 0.5), np.zeros(10), np.full(10, 7.0))
    assert history.one_level(same).p_value == 1.0
    assert change_points(step(same, 5, 0.1)) == [5]
    (mean,) = Levels(same, []).means()
    assert mean.bounds() == pytest.approx((0.5, 0.5))


def test_of_several_standard_errors_the_most_cautious_counts() -> None:
    interval = Interval(0.1, (Error(1.0, 100, "a"), Error(0.9, 2, "b")), 8, mean=0.2)
    series = history.series([interval])
    assert (series.values[0], series.errors[0], series.nus[0]) == (0.2, 0.9, 2)
    assert math.isclose(interval.half(), 0.9 * student_t.quantile(0.975, 2))
