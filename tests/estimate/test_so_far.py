"""What a cell tells while it is measured: the same as the estimate of its record, in a few bytes per block."""

from __future__ import annotations

import tracemalloc

import msgspec
import numpy as np
import pytest

from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.so_far import OnlineEstimator, watching
from ciphercost.model.slices import SliceRecord
from test_estimator import run


def failed(record: SliceRecord) -> SliceRecord:
    return msgspec.structs.replace(record, error="agent-died", agent=None)


def spoilt() -> list[SliceRecord]:
    """Three sessions with latency blocks; one slice of the second failed, and one of the third was preempted."""
    records = run(3, 12, latency_blocks=2)
    records[70] = failed(records[70])
    records[-9] = msgspec.structs.replace(records[-9], marks=("preempted",))
    return records


def test_it_says_at_any_time_what_the_estimator_of_the_record_says() -> None:
    so_far, whole = watching((), sequential=True), CellEstimator(sequential=True)
    for record in spoilt():
        so_far.add(record)
        whole.add(record)
        assert (so_far.blocks, so_far.counts) == (whole.blocks, whole.counts)
    assert whole.finish().overhead["throughput"].ratio == so_far.throughput_interval("full").ratio  # type: ignore[union-attr]
    described = whole.finish().arms
    for arm in ("plain", "encrypted"):
        assert so_far.capacity_of(arm) == pytest.approx(described[arm]["throughput"])


def test_a_repeated_session_counts_once() -> None:
    records = spoilt()
    so_far, without = OnlineEstimator(), OnlineEstimator()
    for record in records:
        so_far.add(record)
        if record.session != 2:
            without.add(record)
    so_far.void(2)
    assert so_far.blocks == without.blocks
    assert so_far.throughput_interval("full") == without.throughput_interval("full")
    assert so_far.plain_capacity() == pytest.approx(without.plain_capacity())
    assert so_far.carryover().value == pytest.approx(without.carryover().value)


def test_it_stops_once_the_interval_is_as_narrow_as_asked() -> None:
    so_far = OnlineEstimator(sequential=True)
    for record in run(16, 6):
        so_far.add(record)
    interval = so_far.throughput_interval("full")
    assert interval is not None
    half = float(np.log(interval.high / interval.low)) / 2
    assert so_far.precise(half + 1e-9)
    assert not so_far.precise(half - 1e-9)


def kept_of(so_far: OnlineEstimator, records: list[SliceRecord]) -> int:
    """Bytes that are kept of these records."""
    tracemalloc.start()
    try:
        for record in records:
            so_far.add(record)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_ten_thousand_slices_take_less_than_150_kilobytes() -> None:
    """A soak of hours must not make the controller grow: the figures of a slice stay in its record, on disk."""
    records = run(10, 250)
    so_far = OnlineEstimator()
    so_far.add(records[0])
    assert kept_of(so_far, records[1:]) < 150_000
    assert so_far.blocks == 2500


def test_expected_blocks_take_memory_once() -> None:
    records = run(1, 2500)
    so_far = OnlineEstimator()
    so_far.expect(1, 2500)
    for record in records[:10]:
        so_far.add(record)
    assert kept_of(so_far, records[10:]) < 2_000
    assert so_far.blocks == 2500


def test_a_session_that_was_only_expected_is_none() -> None:
    so_far, without = OnlineEstimator(), OnlineEstimator()
    so_far.expect(1, 12)
    so_far.expect(2, 12)
    for record in run(1, 12):
        so_far.add(record)
        without.add(record)
    assert so_far.throughput_interval("full") == without.throughput_interval("full")
