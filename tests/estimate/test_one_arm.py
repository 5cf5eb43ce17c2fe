"""Disturbances that hit one arm more: the interval of full mode holds what a user pays. The figures are those of METHODOLOGY.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simulate
import simulate_one_arm as one_arm
from ciphercost.estimate.cost_ratios import ratio_of_totals
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.headline import Sessions, difference, over_sessions
from ciphercost.model.slices import SliceRecord
from simulate_one_arm import Made

RUNS, SESSIONS = 600, 8
LIMITS = {
    "stalls, 2 %": (0.82, 0.87),
    "bad start, 10 % of sessions, 5 %": (0.6, 0.6),
    "skewed starts, sd 1 %": (0.85, 0.85),
}
"""Least coverage with 6 and with 12 blocks where what happens in a run is too rare: most misses are runs without any of it."""


def simulated_runs(kind: str, sessions: int, blocks: int, runs: int = RUNS) -> Made:
    noise, disturbance = one_arm.ONE_ARM[kind] if kind in one_arm.ONE_ARM else (one_arm.SHARED[kind], None)
    return one_arm.runs(np.random.default_rng([45, blocks]), noise, runs, sessions, blocks, disturbance)


@pytest.mark.parametrize("blocks", [6, 12])
@pytest.mark.parametrize("kind", [*one_arm.SHARED, *one_arm.ONE_ARM])
def test_the_interval_holds_what_a_user_pays_whichever_arm_is_disturbed(kind: str, blocks: int) -> None:
    drawn = simulated_runs(kind, SESSIONS, blocks)
    covered = one_arm.headline(drawn).covers(drawn.truth)
    print(f"\n{kind}, 8 sessions of {blocks} blocks: {covered:.1%}", end="")
    assert covered >= LIMITS.get(kind, (0.925, 0.925))[blocks // 12]


@pytest.mark.parametrize(("kind", "most"), [("garbage, 0.1 of 20 %", 0.85), ("steal, 10 %, 20 %", 0.7)])
@pytest.mark.parametrize("how", ["typical", "tested"])
def test_mutant_neither_the_typical_block_nor_a_test_of_the_difference_would_hold_it(
    kind: str, most: float, how: str
) -> None:
    drawn = simulated_runs(kind, SESSIONS, 12)
    assert one_arm.candidates(drawn)[how].covers(drawn.truth) < most


@pytest.mark.parametrize(
    ("kind", "most"), [("white", 1.0), ("drift", 1.01), ("in phase", 0.95), ("spikes", 2.0), ("two speeds", 1.9)]
)
def test_its_price_in_width(kind: str, most: float) -> None:
    bounds = one_arm.candidates(simulated_runs(kind, SESSIONS, 12))
    assert bounds["now"].width() <= most * bounds["typical"].width()


def records(drawn: Made, row: int) -> list[SliceRecord]:
    return [
        record
        for session in range(drawn.signs.shape[1])
        for record in simulate.records(drawn.rates[row, session], drawn.signs[row, session], session=session + 1)
    ]


def estimator(drawn: Made, row: int) -> CellEstimator:
    cell_estimator = CellEstimator()
    for record in records(drawn, row):
        cell_estimator.add(record)
    return cell_estimator


@pytest.mark.parametrize("kind", ["drift", "stalls, 5 % of slices", "garbage, 0.1 of 20 %"])
def test_simulated_bounds_are_those_of_the_estimator(kind: str) -> None:
    drawn = simulated_runs(kind, 4, 5, 3)
    expected = one_arm.headline(drawn)
    for row in range(3):
        cell = estimator(drawn, row)
        interval = cell.intervals()["throughput"]
        assert interval.centre == pytest.approx(expected.centre[row], abs=1e-9)
        assert interval.bounds() == pytest.approx((expected.low[row], expected.high[row]), abs=1e-3)
        so_far = cell.throughput_interval()
        assert so_far is not None
        assert np.log([so_far.ratio, so_far.low, so_far.high]) == pytest.approx([interval.centre, *interval.bounds()])
        stated = cell.finish().overhead["throughput"]
        assert (stated.ratio, stated.low, stated.high) == (so_far.ratio, so_far.low, so_far.high)
        assert stated.low <= (stated.ratio_of_totals or 0) <= stated.high


def test_parts_are_those_of_the_ratio_of_totals() -> None:
    cell = estimator(simulated_runs("drift", 5, 4, 1), 0)
    capacity, _ = cell.main()
    together = ratio_of_totals(capacity, ("work",), "seconds", "full")
    interval = cell.intervals()["throughput"]
    assert together is not None
    assert interval.middle == pytest.approx(together.centre, abs=1e-12)
    assert interval.half() == pytest.approx(together.half(), rel=1e-9)


def test_what_a_session_does_to_two_cells_cancels_in_their_difference() -> None:
    random = np.random.default_rng(3)
    seconds, levels = np.full(8, 10.0), np.exp(random.normal(0, 0.3, 8))
    shared = random.normal(0, 0.05, 8)

    def cell(cost: float) -> Sessions:
        log_ratios = shared + cost + random.normal(0, 0.001, 8)
        return Sessions(log_ratios, (1000 * levels, seconds), (1000 * levels * np.exp(log_ratios), seconds))

    first, second = cell(-0.1), cell(-0.15)
    interval = difference(first, second)
    assert interval.centre == pytest.approx(-0.05, abs=0.002)
    assert interval.middle == pytest.approx(-0.05, abs=0.005)
    assert interval.half() < 0.2 * over_sessions(second).half()


def test_the_command_of_the_table_prints_every_kind() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "one_arm.py"
    done = subprocess.run([sys.executable, script, "20"], capture_output=True, text=True, timeout=300, check=True)
    for kind in one_arm.SHARED | one_arm.ONE_ARM:
        assert done.stdout.count(f"| {kind} |") == 2
