"""sar: the same arithmetic as sar's, on readings with shares computed by hand, and on this machine."""

from __future__ import annotations

import os
import time

import pytest

from ciphercost.measure import sar

#         user nice system idle iowait irq softirq steal guest guest_nice
BEFORE = "cpu  1000 10 500 8000 100 5 15 20 300 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
AFTER = "cpu  1300 20 620 8440 180 10 40 45 400 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_shares_match_those_computed_by_hand() -> None:
    # Deltas 300 10 120 440 80 5 25 25: 1005 ticks. Interrupts count as %system; guest time is already part of user.
    shares = sar.percentages(sar.ticks(BEFORE), sar.ticks(AFTER))
    by_hand = (300 / 1005, 10 / 1005, 150 / 1005, 80 / 1005, 25 / 1005, 440 / 1005)
    assert shares == pytest.approx([100 * share for share in by_hand])
    assert sum(shares) == pytest.approx(100)


def test_a_counter_that_went_backwards_counts_nothing() -> None:
    shares = sar.percentages((100, 0, 0, 1000, 50, 0, 0, 0), (150, 0, 0, 990, 40, 0, 0, 0))
    assert shares == (100.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_without_time_all_shares_are_zero() -> None:
    level = sar.ticks(BEFORE)
    assert sar.percentages(level, level) == (0.0,) * 6


def test_memory_is_the_kernels_available_value_and_the_rest() -> None:
    text = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:   12000 kB\nBuffers: 7 kB\n"
    assert sar.memory(text) == (12000 * 1024, 4000 * 1024)
    available, used = sar.memory()
    assert available > 0
    assert used > 0


def test_one_cpus_line_is_found_among_the_others() -> None:
    text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 2 2 2 2 2 2 2 2 2 2\nintr 5\n"
    assert sar.ticks(text, 1) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert sar.ticks(text, 11) == (2,) * 8
    assert sar.ticks(text) == (9,) * 8
    one = min(os.sched_getaffinity(0))
    assert sum(sar.ticks(cpu=one)) <= sum(sar.ticks()) + 1


def test_free_memory_is_unused_memory() -> None:
    assert sar.memory_free("MemTotal: 16000 kB\nMemFree:   1000 kB\nMemAvailable: 12000 kB\n") == 1000 * 1024
    assert sar.memory_free() > 0


def test_rows_follow_each_other_and_cover_the_whole_time() -> None:
    began = time.monotonic()
    with sar.Sar(os.getpid(), interval=0.2) as host:
        while time.monotonic() - began < 0.7 or len(host.rows) < 3:
            pass
    whole = time.monotonic() - began
    assert sum(row.seconds for row in host.rows) == pytest.approx(host.rows[-1].at_s, abs=0.01)
    assert 0.6 < host.rows[-1].at_s <= whole
    assert [row.at_s for row in host.rows] == sorted(row.at_s for row in host.rows)
    for row in host.rows:
        parts = (row.user, row.nice, row.system, row.iowait, row.steal, row.idle)
        assert sum(parts) == pytest.approx(100, abs=0.01)
        assert row.server_memory_bytes > 1_000_000
    assert max(100 - row.idle - row.iowait for row in host.rows) > 100 / (os.cpu_count() or 1) / 3, (
        "this process was busy"
    )
