"""The words on how much machines differ."""

from __future__ import annotations

import math

import pytest

from ciphercost.model.machines import Between
from ciphercost.report.words import machines_text


@pytest.mark.parametrize(
    ("ratios", "p_value", "words"),
    [
        (
            (1.032, 1.011, 1.213),
            0.0004,
            "the machines differ (p < 0.001); standard deviation between machines 3 % (95 % CI 1–21 %)",
        ),
        (
            (1.0, 1.0, 1.024),
            0.43,
            "no difference between machines shows (p = 0.43); standard deviation between machines 0.0 % (95 % CI 0.0–2.4 %)",
        ),
        (
            (1.3, 1.137, 5.3),
            0.012,
            "the machines differ (p = 0.012); standard deviation between machines 1.30 times (95 % CI 1.14–5.30 times)",
        ),
    ],
)
def test_a_standard_deviation_is_written_like_any_figure(
    ratios: tuple[float, float, float], p_value: float, words: str
) -> None:
    sd, low, high = map(math.log, ratios)
    assert machines_text.differ(Between(sd, low, high, p_value)) == words


def test_an_interval_without_end_is_printed() -> None:
    assert "485,165,195 times" in machines_text.differ(Between(1.0, 0.0, 800.0, 0.5))
