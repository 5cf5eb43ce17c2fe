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
