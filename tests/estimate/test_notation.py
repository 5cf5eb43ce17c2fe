"""Every estimate's text has the direction, digits and bounds of its numbers, in one notation."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import notation
from ciphercost.model.result import Estimate

RATIOS = st.one_of(
    st.floats(1e-6, 1e6),
    st.floats(0.9, 1.1),
    st.floats(0.9999, 1.0001),
    st.floats(1.9, 2.1),
    st.sampled_from([1.0, 2.0, 1.995, 1.99499, 0.9999999, 1e-9, 123_456.0]),
)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    """low <= ratio <= high, from no width to a factor of a million; sometimes with equal bounds."""
    low, ratio, high = sorted(draw(st.lists(RATIOS, min_size=3, max_size=3)))
    narrow = draw(st.sampled_from([None, 0.0, 1e-12, 1e-6, 1e-4, 0.003]))
    return Estimate(ratio, low, high) if narrow is None else Estimate(ratio, ratio * (1 - narrow), ratio * (1 + narrow))


def side(text: str) -> int:
    """The ratio that `12.3 % fewer`, `2.02 times` or `no change` stands for."""
    if text == notation.NO_CHANGE:
        return 0
    if match := re.fullmatch(r"(?:under )?([\d.,]+) times", text):
        value = float(match[1].replace(",", ""))
        return (value > 1) - (value < 1)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) % (more|fewer)", text)
    assert match, text
    assert float(match[1]) > 0, f"{text}: no change has a direction"
    return 1 if match[2] == "more" else -1


@given(estimates())
def test_the_direction_is_that_of_the_ratio(estimate: Estimate) -> None:
    direction = side(notation.worded(estimate, "more", "fewer"))
    assert direction in (0, (estimate.ratio > 1) - (estimate.ratio < 1))


@given(estimates())
def test_nothing_has_a_sign_an_exponent_or_a_percentage_of_a_hundred_more(estimate: Estimate) -> None:
    for text in (notation.worded(estimate, "more", "fewer"), notation.interval(estimate, "more", "fewer")):
        assert not re.search(r"[-+−]|\de|nan|inf", text), text
        assert not re.search(r"(^| )0\.00 times", text), text
    for number in re.findall(r"([\d.,]+) % more", notation.worded(estimate, "more", "fewer")):
        assert float(number.replace(",", "")) < 100, number


@given(estimates())
def test_an_interval_never_prints_the_same_bound_twice(estimate: Estimate) -> None:
    text = notation.interval(estimate, "more", "fewer")
    ends = re.split(r" to |–", text)
    assert len(ends) == len(set(ends)), text
    bare = [re.sub(r" %.*", "", end) for end in ends]
    if "–" in text:
        assert len(bare) == len(set(bare)) == 2, text


@given(estimates())
def test_both_ends_and_the_estimate_share_one_notation(estimate: Estimate) -> None:
    text = f"{notation.worded(estimate, 'more', 'fewer')} {notation.interval(estimate, 'more', 'fewer')}"
    assert not ("times" in text and "%" in text), text
    if estimate.ratio >= 2 or estimate.high >= 10:
        assert "%" not in text
    elif estimate.ratio < 1.99 and estimate.high < 9.9:
        assert "times" not in text


@given(estimates())
def test_the_ends_lie_on_the_sides_that_the_interval_names(estimate: Estimate) -> None:
    text = notation.interval(estimate, "more", "fewer")
    if " to " in text:
        low, high = map(side, text.split(" to "))
        assert low <= high
        assert low in (0, -1) if estimate.low < 1 else low in (0, 1)
        assert high in (0, 1) if estimate.high > 1 else high in (0, -1)
    elif "–" in text and "%" in text:
        first, last = (float(end.strip(" %")) for end in text.split("–"))
        assert first < last, "the bounds ascend"
        assert estimate.low > 1 or estimate.high < 1, f"{text} does not show that the interval includes no change"


@given(estimates())
def test_the_text_is_as_near_to_the_number_as_its_digits(estimate: Estimate) -> None:
    text = notation.worded(estimate, "more", "fewer")
    if match := re.fullmatch(r"(\d+(?:\.\d+)?) % (?:more|fewer)", text):
        half = 0.5 * 10.0 ** -len(match[1].partition(".")[2])
        assert math.isclose(float(match[1]), abs(estimate.ratio - 1) * 100, abs_tol=half * 1.001)
    elif text.endswith(" times") and not text.startswith("under"):
        assert math.isclose(float(text.removesuffix(" times").replace(",", "")), estimate.ratio, rel_tol=0.0051)


@pytest.mark.parametrize(
    ("estimate", "words", "bounds"),
    [
        (Estimate(0.714, 0.705, 0.723), "28.6 % fewer", "27.7–29.5 %"),
        (Estimate(1.373, 1.362, 1.385), "37.3 % more", "36.2–38.5 %"),
        (Estimate(0.72, 0.36, 1.08), "28 % fewer", "64 % fewer to 8 % more"),
        (Estimate(1.0, 0.99999, 1.00001), "no change", "exact"),
        (Estimate(1.0, 1.0, 1.0), "no change", "exact"),
        (Estimate(1.002, 0.99999, 1.004), "0.20 % more", "no change to 0.40 % more"),
        (Estimate(1.5798, 1.57976, 1.57982), "57.98 % more", "exact"),
        (Estimate(1.00273, 1.00273, 1.00273), "0.27 % more", "exact"),
        (Estimate(2.017, 1.96, 2.075), "2.02 times", "1.96–2.08 times"),
        (Estimate(1.9, 1.8, 2.1), "90 % more", "80–110 %"),
        (Estimate(1.13, 0.86, 2.78), "13 % more", "14 % fewer to 178 % more"),
        (Estimate(4.7617, 4.7612, 4.7622), "4.76 times", "exact"),
        (Estimate(116.4, 26.6, 509.2), "116 times", "26.6–509 times"),
        (Estimate(12_345.6, 9_999.4, 20_000), "12,346 times", "9,999–20,000 times"),
        (Estimate(0.0004, 0.00035, 0.00045), "99.96 % fewer", "99.95–99.97 %"),
    ],
)
def test_figures_are_written_as(estimate: Estimate, words: str, bounds: str) -> None:
    assert notation.worded(estimate, "more", "fewer") == words
    assert notation.interval(estimate, "more", "fewer") == bounds
