"""When operations are due that come as they came in a log."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ciphercost.load.due_times import due_us
from ciphercost.model.traffic import Arrived

ARRIVED = some.builds(
    Arrived,
    some.sampled_from([10, 200, 1000]),
    some.lists(some.integers(0, 30), min_size=1, max_size=50).filter(any).map(tuple),
)


@given(ARRIVED, some.floats(1.0, 500.0), some.floats(0.05, 3.0), some.integers(0, 2**63))
def test_they_ascend_within_the_slice_and_depend_on_the_seed_alone(
    arrived: Arrived, rate: float, seconds: float, seed: int
) -> None:
    found = due_us(arrived, rate, seconds, seed)
    assert all(one <= other for one, other in pairwise(found))
    assert all(0 <= us < seconds * 1e6 for us in found)
    assert found == due_us(arrived, rate, seconds, seed)


def test_their_rate_is_that_which_was_asked_for() -> None:
    arrived = Arrived(1000, (0, 40, 5, 0, 15, 30))
    assert arrived.rate == 15
    for rate in (15.0, 30.0, 600.0):
        counts = [len(due_us(arrived, rate, 2.0, seed)) for seed in range(400)]
        assert sum(counts) / len(counts) == pytest.approx(2.0 * rate, rel=0.1)


def test_bursts_come_as_they_came() -> None:
    """Nine empty seconds, then one with 100 operations."""
    arrived = Arrived(1000, (*[0] * 9, 100))
    for seed in range(50):
        due = due_us(arrived, arrived.rate, 30.0, seed)
        assert 200 <= len(due) <= 400
        begins = [one for one, other in zip(due, [-10_000_000, *due], strict=False) if one - other > 5e6]
        assert len(begins) in (3, 4)
        assert all(other - one == pytest.approx(10e6, abs=0.3e6) for one, other in pairwise(begins[1:]))


def test_a_slice_of_an_almost_empty_log_has_an_operation_to_count() -> None:
    arrived = Arrived(1000, (*[0] * 99, 5))
    assert all(due_us(arrived, arrived.rate, 2.0, seed, 0.2)[-1] >= 0.4e6 for seed in range(20))
