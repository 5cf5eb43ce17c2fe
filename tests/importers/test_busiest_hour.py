"""The counts of the busiest hour of a log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from ciphercost.importers.busiest_hour import HELD, MOST, BusiestHour
from ciphercost.model.traffic import HOUR

AT = 1_699_999_200
"""Begins an hour."""


def test_whole_seconds_are_counted_each() -> None:
    found = BusiestHour(fractions=False)
    for second, count in ((10, 3), (12, 1), (13, 4)):
        found.add(AT + second, count)
    counts = found.counts(AT, 8, AT + 10, AT + 13)
    assert counts is not None
    assert (counts.interval_ms, counts.counts, counts.rate) == (1000, (3, 0, 1, 4), 2.0)


def test_fractions_are_counted_as_finely_as_a_file_may_hold() -> None:
    short, whole = BusiestHour(fractions=True), BusiestHour(fractions=True)
    for at in (0.004, 0.012, 0.013, 0.05):
        short.add(AT + at, 1)
        whole.add(AT + at, 1)
    counts = short.counts(AT, 4, AT + 0.004, AT + 0.05)
    assert counts is not None
    assert (counts.interval_ms, counts.counts) == (10, (1, 2, 0, 0, 0, 1))
    whole.add(AT + HOUR - 0.01, 2)
    counts = whole.counts(AT, 6, AT, AT + HOUR - 0.001)
    assert counts is not None
    assert (counts.interval_ms, len(counts.counts), sum(counts.counts)) == (200, 18_000, 6)


def test_a_database_log_of_whole_seconds_has_intervals_of_a_second() -> None:
    found = BusiestHour(fractions=True)
    for second in range(5):
        found.add(AT + second, second)
    counts = found.counts(AT, 10, AT, AT + 4)
    assert counts is not None
    assert (counts.interval_ms, counts.counts) == (1000, (0, 1, 2, 3, 4))


def test_an_hour_of_which_counts_are_missing_is_unknown() -> None:
    found = BusiestHour(fractions=False)
    for hour in range(HELD + 1):
        found.add(AT + hour * HOUR, hour + 1)
    assert found.counts(AT, 1, AT, AT + 9 * HOUR) is None
    assert found.counts(AT + HELD * HOUR, HELD + 1, AT, AT + 9 * HOUR) is not None
    assert found.counts(AT + HELD * HOUR, 99, AT, AT + 9 * HOUR) is None


@given(some.lists(some.integers(0, 10 * HOUR * 100 - 1), min_size=1, max_size=40), some.booleans())
def test_no_operation_of_the_busiest_hour_is_lost(moments: list[int], fractions: bool) -> None:
    times = sorted(AT + moment / 100 if fractions else AT + moment // 100 for moment in moments)
    found, hours = BusiestHour(fractions=fractions), dict[int, int]()
    for at in times:
        found.add(at, 1)
        start = int(at) // HOUR * HOUR
        hours[start] = hours.get(start, 0) + 1
    busiest = max(hours, key=lambda start: hours[start])
    counts = found.counts(busiest, hours[busiest], times[0], times[-1])
    if counts is not None:  # several hours with as many may have gone
        assert sum(counts.counts) == hours[busiest]
        assert len(counts.counts) <= MOST
    assert counts is not None or list(hours.values()).count(hours[busiest]) > HELD
