"""What was found in logs: figures that follow from it."""

from __future__ import annotations

import pytest

from ciphercost.model.traffic import Hour, Traffic


@pytest.mark.parametrize(
    ("begin", "end", "hours", "rate"),
    [
        (0.0, 7200.0, [Hour(0, 7200), Hour(3600, 3600)], 2.0),
        (1800.0, 1809.0, [Hour(0, 500)], 50.0),
        (3590.0, 3609.0, [Hour(0, 100), Hour(3600, 200)], 20.0),
        (10.0, 10.0, [Hour(0, 3)], 3.0),
        (10.5, 20.5, [Hour(0, 50)], 5.0),
        (0.0, 0.0, [], 0.0),
    ],
)
def test_the_busiest_hours_rate_is_that_of_the_part_that_was_logged(
    begin: float, end: float, hours: list[Hour], rate: float
) -> None:
    """Times of whole seconds cover the last one too."""
    found = Traffic("web", ["common"], begin=begin, end=end, hours=hours)
    assert found.busiest_rate == pytest.approx(rate)
