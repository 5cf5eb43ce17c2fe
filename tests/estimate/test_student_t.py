"""Student's t against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from ciphercost.estimate import student_t

DEGREES = st.floats(0.5, 1e7) | st.integers(1, 300).map(float)


@given(t=st.floats(-50, 50), nu=DEGREES)
def test_the_tail_is_scipys(t: float, nu: float) -> None:
    assert student_t.upper_tail(t, nu) == pytest.approx(float(special.stdtr(nu, -t)), rel=1e-8, abs=1e-290)


@given(probability=st.floats(0.0005, 0.9995), nu=DEGREES)
def test_the_quantile_is_scipys(probability: float, nu: float) -> None:
    expected = float(special.stdtrit(nu, probability))
    assert student_t.quantile(probability, nu) == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_infinitely_many_degrees_are_the_normal_distribution() -> None:
    assert student_t.quantile(0.975, math.inf) == pytest.approx(float(special.ndtri(0.975)))
    assert student_t.upper_tail(1.3, math.inf) == pytest.approx(float(special.ndtr(-1.3)))


@given(probability=st.floats(0.001, 0.999), nu=DEGREES)
def test_the_quantile_inverts_the_tail(probability: float, nu: float) -> None:
    assert student_t.upper_tail(student_t.quantile(probability, nu), nu) == pytest.approx(1 - probability, rel=1e-8)


def test_the_type_of_an_earlier_argument_is_not_remembered() -> None:
    """A number of numpy's equals a float, so the cache answers for both. A result may only hold floats."""
    assert type(student_t.quantile(np.float64(0.987), np.float64(7.25))) is float
    assert type(student_t.quantile(0.987, 7.25)) is float


@pytest.mark.parametrize("nu", [0.003, 0.01, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("tail", [1e-9, 0.0005, 0.01, 0.025, 0.3])
def test_quantiles_far_out_invert_the_tail_in_both_directions(tail: float, nu: float) -> None:
    """With few degrees of freedom a quantile is so large that the density there is below the smallest number."""
    upper, lower = student_t.quantile(1 - tail, nu), student_t.quantile(tail, nu)
    assert lower == pytest.approx(-upper, rel=1e-6)
    if math.isinf(upper):
        assert nu < 0.05, "the quantile is above the largest number"
    else:
        assert student_t.upper_tail(-lower, nu) == pytest.approx(tail, rel=1e-8)


def test_a_quantile_above_the_square_root_of_the_largest_number_is_found() -> None:
    # For large t the tail is ν^(ν/2) / (ν B(ν/2, ½)) · t^−ν.
    nu, tail = 0.01, 0.01
    log_t = (nu / 2 * math.log(nu) - math.log(nu) - float(special.betaln(nu / 2, 0.5)) - math.log(tail)) / nu
    assert log_t > math.log(1e154)
    assert student_t.quantile(1 - tail, nu) == pytest.approx(math.exp(log_t), rel=1e-9)


def test_probabilities_next_to_0_and_1_have_quantiles() -> None:
    for tail in (1e-300, 1e-20):
        for nu in (2.0, 5.0, 300.0, math.inf):
            assert student_t.upper_tail(-student_t.quantile(tail, nu), nu) == pytest.approx(tail, rel=1e-8)


@pytest.mark.parametrize("nu", [1e5, 1e7, 1e8, 1e9, 1e12, 1e15, 1e300])
@pytest.mark.parametrize("t", [1e-12, 0.01, 0.3, 1.0, 2.0, 6.0, 15.0, 37.0])
def test_the_tail_keeps_its_bound_with_many_degrees_of_freedom(t: float, nu: float) -> None:
    """Fisher's expansion in 1/ν about the normal distribution (Abramowitz and Stegun 26.7.8 to the second order) is exact to 1e-13 here."""
    normal = math.erfc(t / math.sqrt(2)) / 2
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    first = t * (t**2 + 1) / 4
    second = t * (3 * t**6 - 7 * t**4 - 5 * t**2 - 3) / 96
    third = t * (t**10 - 11 * t**8 + 14 * t**6 + 6 * t**4 - 3 * t**2 - 15) / 384
    expected = normal + density * (first / nu + second / nu / nu + third / nu / nu / nu)
    if t**4 / nu < 1e-3:
        assert student_t.upper_tail(t, nu) == pytest.approx(expected, rel=1e-9)
    assert student_t.upper_tail(-t, nu) == pytest.approx(1 - student_t.upper_tail(t, nu), rel=1e-12)
