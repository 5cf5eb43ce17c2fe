"""Chi-square against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ciphercost.estimate import chi_square

DEGREES = st.floats(0.5, 1e5) | st.integers(1, 300).map(float)


@given(x=st.floats(0, 2000), nu=DEGREES)
def test_the_tail_is_scipys(x: float, nu: float) -> None:
    assert chi_square.lower_tail(x, nu) == pytest.approx(float(stats.chi2.cdf(x, nu)), rel=1e-8, abs=1e-200)


@given(probability=st.floats(0.001, 0.999), nu=DEGREES)
def test_the_quantile_is_scipys(probability: float, nu: float) -> None:
    assert chi_square.quantile(probability, nu) == pytest.approx(float(stats.chi2.ppf(probability, nu)), rel=1e-8)


def test_a_value_far_beyond_all_others_needs_no_long_series() -> None:
    assert chi_square.lower_tail(1e300, 3) == 1.0
    assert chi_square.lower_tail(-1.0, 3) == 0.0
