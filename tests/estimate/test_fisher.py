"""Fisher's exact test against scipy's, and against tables that can be counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy import array
from scipy import stats

from ciphercost.estimate import fisher


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((0, 10, 0, 10), 1.0),
        ((1, 1, 0, 1), 1.0),
        ((3, 3, 0, 3), 0.1),  # 2 of C(6, 3) = 20 ways
        ((5, 5, 0, 5), 2 / 252),
        ((3, 4, 1, 4), 34 / 70),  # the lady who tasted tea
        ((0, 0, 3, 7), 1.0),
    ],
)
def test_small_tables_have_the_probabilities_that_are_counted_by_hand(table: tuple[int, ...], p: float) -> None:
    assert fisher.p_value(*table) == pytest.approx(p, abs=1e-12)


@given(some.integers(1, 400), some.integers(1, 400), some.floats(0, 1), some.floats(0, 1))
def test_it_is_that_of_scipy(n: int, m: int, share: float, other: float) -> None:
    a, b = round(share * n), round(other * m)
    expected = float(stats.fisher_exact(array([[a, n - a], [b, m - b]])).pvalue)
    assert fisher.p_value(a, n, b, m) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_many_slices_do_not_overflow() -> None:
    expected = float(stats.fisher_exact(array([[210, 99_790], [100, 99_900]])).pvalue)
    assert fisher.p_value(210, 100_000, 100, 100_000) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("table", [(2, 1, 0, 1), (-1, 4, 0, 4), (0, 4, 5, 4)])
def test_more_events_than_units_are_refused(table: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at most the units"):
        fisher.p_value(*table)
