"""The slowest usual operation of a pilot, from slices that are shorter than it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import durations
from ciphercost.model.slices import AgentSlice

Slice = tuple[AgentSlice, float]


def answer(latencies: list[float], seconds: float, cut: float = 0.0) -> AgentSlice:
    """A slice in which operations of these lengths ended, and `cut` of others lay within it."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for latency in latencies:
        histogram.record_value(round(latency * 1e9))
    names = "errors rows cpu_user_ns cpu_system_ns bytes_sent bytes_received segments_sent segments_received connects resumed late"
    none: dict[str, Any] = dict.fromkeys(names.split(), 0)
    return AgentSlice(
        arm="plain",
        seconds=seconds,
        operations=len(latencies),
        checksum="",
        threads=1,
        histogram=histogram.encode().decode(),
        work=len(latencies) + cut,
        **none,
    )


def pilot(kinds: dict[float, float], slices: int = 100, length: float = 0.05, seed: int = 1) -> list[Slice]:
    """One connection draws operations by weight (`kinds`: seconds to weight). A slice waits for its last one."""
    random = np.random.default_rng(seed)
    weights = np.array(list(kinds.values()))
    drawn = iter(random.choice(list(kinds), 1_000_000, p=weights / weights.sum()))
    pilot_slices = []
    for _ in range(slices):
        ended: list[float] = []
        while sum(ended) + (last := float(next(drawn))) <= length:
            ended.append(last)
        inside = length - sum(ended)
        pilot_slices.append((answer(ended, length, inside / last), sum(ended) + last))
    return pilot_slices


def test_a_kind_that_never_ends_in_a_slice_is_found_by_its_share_in_it() -> None:
    assert durations.slowest_usual(pilot({0.005: 0.9, 0.4: 0.1}), 1) == pytest.approx(0.4, rel=0.01)


def test_a_kind_that_ends_in_slices_is_found_in_their_histograms() -> None:
    assert durations.slowest_usual(pilot({0.0005: 0.9, 0.01: 0.1}), 1) == pytest.approx(0.01, rel=0.01)


def test_operations_that_all_take_as_long_have_no_slowest() -> None:
    assert durations.slowest_usual(pilot({0.003: 1.0}), 1) == 0
    assert durations.slowest_usual(pilot({2.0: 1.0}, slices=8), 1) == 0


def test_a_stall_is_no_kind_of_operation() -> None:
    slices = pilot({0.0005: 1.0})
    slices[7] = (answer([], 0.05, 0.25), 0.2)
    assert durations.slowest_usual(slices, 1) == 0


def test_idle_moments_between_quick_operations_are_no_slow_operation() -> None:
    """A client that loses a third of its time between operations of 50 µs, whose last one lay within by a thousandth."""
    slices = [(answer([5e-5] * 660, 0.05, 0.001), 0.05)] * 50
    assert durations.slowest_usual(slices, 1) < 0.02


def test_without_slices_or_operations_there_is_none() -> None:
    assert durations.slowest_usual([], 1) == 0
    assert durations.slowest_usual([(answer([], 0.05), 0.05)], 1) == 0


@given(st.floats(0.0002, 0.02), st.floats(2.0, 200.0), st.floats(0.05, 0.95), st.integers(0, 100))
def test_it_is_one_of_the_kinds_or_none(quick: float, times: float, weight: float, seed: int) -> None:
    slowest = durations.slowest_usual(pilot({quick: 1 - weight, times * quick: weight}, 20, seed=seed), 1)
    assert slowest == 0 or min(abs(slowest / quick - 1), abs(slowest / (times * quick) - 1)) < 0.01
