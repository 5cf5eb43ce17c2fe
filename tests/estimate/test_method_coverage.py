"""The interval keeps its coverage: coverage, type I error, stopping. The limits are those of METHODOLOGY.md."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import by_row
import simulate
from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.statistics import Floats
from ciphercost.plan.schedule import LEAST_BLOCKS_QUICK, LEAST_SESSIONS, LEAST_SESSIONS_PRECISE

Record = Callable[[str, object], None]
RUNS = 2000
EFFECT = float(np.log(0.9))


def show(record_property: Record, name: str, value: float, bar: str) -> None:
    record_property(name, round(value, 4))
    print(f"\n{name}: {value:.4f} (bar {bar})", end="")


def coverage(intervals: list[statistics.Interval], truth: float) -> float:
    bounds = np.array([interval.bounds() for interval in intervals])
    return float(np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])))


def test_intervals_of_many_rows_are_those_of_each_row() -> None:
    values = simulate.experiment(np.random.default_rng(19), simulate.drift, 40, 30, effect=0.002).values
    intervals = [statistics.block_interval(row) for row in values]
    low, high = by_row.block_bounds(values)
    assert np.allclose([interval.bounds() for interval in intervals], np.array([low, high]).T)
    excluded = (low > 0) | (high < 0)
    assert [interval.p_value() < 0.05 for interval in intervals] == excluded.tolist()
    assert 0 < excluded.sum() < len(values)


def coverage_rows(values: Floats, truth: float) -> float:
    low, high = by_row.block_bounds(values)
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("blocks", [20, 50, 200])
@pytest.mark.parametrize("scenario", simulate.SCENARIOS)
def test_the_quick_interval_covers_the_truth_in_every_kind_of_noise(
    scenario: str, blocks: int, record_property: Record
) -> None:
    random = np.random.default_rng([1, blocks])
    values = simulate.experiment(random, simulate.SCENARIOS[scenario], RUNS, blocks, effect=EFFECT).values
    covered = coverage_rows(values, EFFECT)
    show(record_property, f"coverage, {scenario}, n = {blocks}", covered, "≥ 0.935")
    assert covered >= 0.935


FEW = (12, 16, 20, 24, 30, 50)
"""Blocks of a quick run: usually 20."""


@pytest.mark.parametrize("blocks", FEW)
@pytest.mark.parametrize("scenario", simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT)
def test_few_blocks_cover_in_noise_in_phase_with_them_and_in_further_kinds(
    scenario: str, blocks: int, record_property: Record
) -> None:
    noise = (simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT)[scenario]
    values = simulate.experiment(np.random.default_rng([15, blocks]), noise, RUNS, blocks, effect=EFFECT).values
    covered = coverage_rows(values, EFFECT)
    show(record_property, f"coverage, {scenario}, n = {blocks}", covered, "≥ 0.935")
    assert covered >= 0.935


@pytest.mark.parametrize(("blocks", "least"), [(20, 0.88), (25, 0.89), (50, 0.91)])
def test_noise_of_one_arm_with_a_memory_of_three_slices_is_nearly_covered(
    blocks: int, least: float, record_property: Record
) -> None:
    noise = partial(simulate.white, sd=0.005)
    random = np.random.default_rng([16, blocks])
    values = simulate.experiment(random, noise, 2 * RUNS, blocks, effect=EFFECT, arm_noise=simulate.own_memory).values
    covered = coverage_rows(values, EFFECT)
    show(record_property, f"coverage, one arm's memory of 3 slices, n = {blocks}", covered, f"≥ {least}: a limit")
    assert covered >= least


@pytest.mark.parametrize("scenario", simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT)
def test_the_full_interval_covers_in_noise_in_phase_and_in_further_kinds(
    scenario: str, record_property: Record
) -> None:
    noise = (simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT)[scenario]
    values = simulate.sessions(np.random.default_rng(17), noise, 2 * RUNS, LEAST_SESSIONS, 6, effect=EFFECT)
    covered = full_coverage(values)
    show(record_property, f"coverage, {scenario}, 8 sessions of 6 blocks", covered, "≥ 0.935")
    assert covered >= 0.935


def test_skewed_effects_of_sessions_are_a_limit_of_full_mode(record_property: Record) -> None:
    random = np.random.default_rng(18)
    values = simulate.sessions(
        random, simulate.white, 4000, LEAST_SESSIONS, 6, effect=EFFECT, server_sd=0, skewed_sd=0.01
    )
    covered = full_coverage(values)
    show(record_property, "coverage, log-normal session effects of one arm, 8 sessions", covered, "none: a limit")
    assert 0.88 < covered < 0.935


def full_coverage(values: Floats) -> float:
    """Share of full runs (runs, sessions, blocks) whose interval contains EFFECT."""
    runs, sessions, blocks = values.shape
    centres = by_row.hodges_lehmann(values.reshape(-1, blocks)).reshape(runs, sessions)
    return coverage([statistics.session_interval(row) for row in centres], EFFECT)


def session_values(random: np.random.Generator, count: int, blocks: int, runs: int = RUNS) -> Floats:
    values = simulate.sessions(random, simulate.white, runs, count, blocks, effect=EFFECT)
    return by_row.hodges_lehmann(values.reshape(-1, blocks)).reshape(runs, count)


@pytest.mark.parametrize("blocks", [3, 7, 25])
def test_the_full_interval_covers_the_truth_although_each_server_has_an_effect_of_its_own(
    blocks: int, record_property: Record
) -> None:
    values = session_values(np.random.default_rng([2, blocks]), LEAST_SESSIONS, blocks)
    covered = coverage([statistics.session_interval(row) for row in values], EFFECT)
    show(record_property, f"coverage, servers' own noise, 8 sessions of {blocks} blocks", covered, "≥ 0.935")
    assert covered >= 0.935


def test_one_session_does_not_cover_the_next_so_quick_is_labelled_this_server_pair_only(
    record_property: Record,
) -> None:
    values = simulate.sessions(np.random.default_rng(3), simulate.white, RUNS, 1, 50, effect=EFFECT)[:, 0]
    covered = coverage([statistics.block_interval(row) for row in values], EFFECT)
    show(record_property, "coverage of one session's interval, servers' own noise", covered, "it must fail: < 0.8")
    assert covered < 0.8


def test_mutant_blocks_of_all_sessions_pooled_as_n_cover_too_little(record_property: Record) -> None:
    values = simulate.sessions(np.random.default_rng(4), simulate.white, RUNS, 8, 25, effect=EFFECT).reshape(RUNS, -1)
    intervals = [statistics.Interval(statistics.hodges_lehmann(row), (statistics.t_error(row),), 200) for row in values]
    covered = coverage(intervals, EFFECT)
    show(record_property, "mutant, blocks of all sessions pooled: coverage", covered, "it must fail: < 0.935")
    assert covered < 0.8


def test_mutant_a_fixed_order_fails_in_noise_in_phase_with_it(record_property: Record) -> None:
    covered = {}
    for coin in (True, False):
        random = np.random.default_rng(5)
        values = simulate.experiment(random, simulate.periodic, RUNS, 50, effect=EFFECT, coin=coin).values
        covered[coin] = coverage_rows(values, EFFECT)
    show(record_property, "mutant, always ABBA, periodic noise: coverage", covered[False], "it must fail: < 0.935")
    assert covered[True] >= 0.935
    assert covered[False] < 0.8


@pytest.mark.parametrize("memory", [1, 5, 20])
def test_slow_noise_of_one_arm_only_is_a_limit_of_quick_mode(memory: int, record_property: Record) -> None:
    random = np.random.default_rng(12)
    steps = simulate.BLOCK_STEPS
    arm_noise = simulate.ornstein_uhlenbeck(random, RUNS, 50 * steps, sd=0.01, memory=memory * steps)[
        :, steps // 2 :: steps
    ]
    values = simulate.experiment(random, simulate.white, RUNS, 50, effect=EFFECT).values + arm_noise
    covered = coverage_rows(values, EFFECT)
    show(record_property, f"coverage, one arm's own noise, memory {memory} blocks", covered, "none: a limit")
    assert covered < 0.96


@pytest.mark.parametrize("n", [5, 8])
def test_mutant_a_percentile_bootstrap_of_few_values_covers_too_little(n: int, record_property: Record) -> None:
    random = np.random.default_rng(13)
    values, drawn = random.normal(size=(RUNS, n)), random.integers(0, n, (1000, n))
    means = np.array([np.quantile(row[drawn].mean(axis=1), [0.025, 0.975]) for row in values])
    covered = float(np.mean((means[:, 0] <= 0) & (means[:, 1] >= 0)))
    show(record_property, f"mutant, percentile bootstrap of {n}: coverage", covered, "it must fail: < 0.935")
    assert covered < 0.9


def test_the_command_that_prints_the_tables_of_the_method_prints_them_all() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
    done = subprocess.run(
        [sys.executable, script, "--runs", "20"], capture_output=True, text=True, timeout=300, check=True
    )
    lines = done.stdout.splitlines()
    assert sum(line.startswith("### ") for line in lines) == 8
    for scenario in simulate.SCENARIOS | simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT:
        assert sum(line.startswith(f"| {scenario} |") for line in lines) >= 2
    assert "nan" not in done.stdout


# ── A/A ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_plain_against_plain_differs_in_at_most_one_run_of_twenty(record_property: Record) -> None:
    random = np.random.default_rng(6)
    for scenario, noise in simulate.SCENARIOS.items():
        values = simulate.experiment(random, noise, RUNS, 40).values
        claims = 1 - coverage_rows(values, 0.0)  # p < 0.05 exactly if the interval excludes 0
        show(record_property, f"A/A, {scenario}: claims a difference", claims, "≤ 0.05, and 0.01 for chance")
        assert claims <= 0.06


def test_of_twelve_null_cells_holm_lets_one_through_in_at_most_one_run_of_twenty(record_property: Record) -> None:
    values = simulate.experiment(np.random.default_rng(7), simulate.white, 1000 * 12, 40).values
    p_values = np.array([statistics.block_interval(row).p_value() for row in values]).reshape(1000, 12)
    raw = float(np.mean((p_values < 0.05).any(axis=1)))
    corrected = float(np.mean([min(statistics.holm(list(row))) < 0.05 for row in p_values]))
    show(record_property, "12 null cells, uncorrected: a false claim", raw, "none: for comparison")
    show(record_property, "12 null cells, Holm: a false claim", corrected, "≤ 0.05, and 0.01 for chance")
    assert raw > 0.3
    assert corrected <= 0.06


# ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def half_widths(values: Floats, looks: Floats, mode: str) -> Floats:
    """Half-width of the 95 % interval at each look, (rows, looks)."""
    widths = []
    for n in looks.astype(int):
        seen = values[:, :n]
        if mode == "quick":
            widths.append(by_row.block_halves(seen))
        else:
            nu = min(n, LEAST_SESSIONS) - 1
            widths.append(student_t.quantile(0.975, nu) * seen.std(axis=1, ddof=1) / np.sqrt(n))
    return np.array(widths).T


def test_the_matrix_of_half_widths_is_that_of_the_intervals() -> None:
    values = simulate.experiment(np.random.default_rng(8), simulate.drift, 3, 60).values
    looks = np.array([20.0, 47.0, 60.0])
    quick, full = half_widths(values, looks, "quick"), half_widths(values, looks, "full")
    for row, ours, sessions in zip(values, quick, full, strict=True):
        assert np.allclose([statistics.block_interval(row[: int(n)]).half() for n in looks], ours)
        halves = [statistics.session_interval(row[: int(n)], most_nu=LEAST_SESSIONS - 1).half() for n in looks]
        assert np.allclose(halves, sessions)


def stopped_coverage(values: Floats, first: int, target: float, mode: str) -> tuple[float, float]:
    """Coverage of 0 at the first look with half-width ≤ target, and the mean number of values at that look."""
    looks = np.arange(first, values.shape[1] + 1, dtype=float)
    halves = half_widths(values, looks, mode)
    stop = np.where((halves <= target).any(axis=1), (halves <= target).argmax(axis=1), len(looks) - 1)
    covered = []
    for row, at in zip(values, stop, strict=True):
        seen = row[: int(looks[at])]
        interval = (
            statistics.block_interval(seen)
            if mode == "quick"
            else statistics.session_interval(seen, most_nu=LEAST_SESSIONS - 1)
        )
        low, high = interval.bounds()
        covered.append(low <= 0 <= high)
    return float(np.mean(covered)), float(looks[stop].mean())


@pytest.mark.parametrize("scenario", simulate.SCENARIOS)
def test_a_quick_run_that_stops_on_precision_still_covers(scenario: str, record_property: Record) -> None:
    values = simulate.experiment(np.random.default_rng(9), simulate.SCENARIOS[scenario], 4000, 90).values
    for wanted in (25, 40):
        target = 2 * float(values.std()) / np.sqrt(wanted)
        covered, blocks = stopped_coverage(values, LEAST_BLOCKS_QUICK, target, "quick")
        name = f"stopped on precision, quick, {scenario}, after {blocks:.0f} blocks on average: coverage"
        show(record_property, name, covered, "≥ 0.94")
        assert covered >= 0.94


def test_a_full_run_that_stops_on_precision_still_covers(record_property: Record) -> None:
    values = session_values(np.random.default_rng(10), 40, 6, 8000) - EFFECT
    for wanted in (8, 12, 20):
        target = 2 * float(values.std()) / np.sqrt(wanted)
        covered, sessions = stopped_coverage(values, LEAST_SESSIONS_PRECISE, target, "full")
        name = f"stopped on precision, full, after {sessions:.0f} sessions on average: coverage"
        show(record_property, name, covered, "≥ 0.94")
        assert covered >= 0.94


SKEWED: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Floats], float, float]] = {
    "log-normal, σ = 1, skewness 6": (lambda random, shape: -random.lognormal(0.0, 1.0, shape) / 2.16, 0.86, 0.83),
    "exponential, skewness 2": (lambda random, shape: -random.exponential(1.0, shape), 0.92, 0.905),
    "one start in ten is five standard deviations slower": (
        lambda random, shape: -5.0 * (random.random(shape) < 0.1) + random.normal(size=shape), 0.9, 0.895,
    ),
}  # fmt: skip
"""By kind: draws, least coverage now, and most if eight sessions were enough."""


@pytest.mark.parametrize("kind", SKEWED)
def test_skewed_sessions_are_a_limit_of_stopping_on_precision(kind: str, record_property: Record) -> None:
    drawn, least, before = SKEWED[kind]
    values = drawn(np.random.default_rng(51), (4000, 80))
    values -= drawn(np.random.default_rng(52), (1000, 1000)).mean()
    for wanted in (8, 20):
        target = 2 * float(values.std()) / np.sqrt(wanted)
        stopped = [
            stopped_coverage(values, first, target, "full") for first in (LEAST_SESSIONS, LEAST_SESSIONS_PRECISE)
        ]
        name = f"stopped on precision, {kind}, after {stopped[0][1]:.0f} → {stopped[1][1]:.0f} sessions: coverage"
        show(record_property, name, stopped[1][0], f"≥ {least}; {stopped[0][0]:.4f} with 8 sessions at least: a limit")
        assert stopped[0][0] < before
        assert stopped[1][0] >= least


def test_mutant_sessions_that_claim_all_their_degrees_of_freedom_cover_too_little(record_property: Record) -> None:
    values = np.random.default_rng(14).normal(size=(8000, 60))
    looks = np.arange(LEAST_SESSIONS, 61, dtype=float)
    capped = half_widths(values, looks, "full")
    nus = looks - 1
    halves = capped * [student_t.quantile(0.975, nu) / student_t.quantile(0.975, LEAST_SESSIONS - 1) for nu in nus]
    stop = (halves <= 2 / np.sqrt(20)).argmax(axis=1)
    rows = np.arange(len(values))
    means = np.cumsum(values, axis=1)[rows, stop + LEAST_SESSIONS - 1] / looks[stop]
    covered = float(np.mean(np.abs(means) <= halves[rows, stop]))
    show(record_property, "mutant, stopped on precision with S − 1 degrees of freedom", covered, "it must fail: < 0.94")
    assert covered < 0.94


def test_mutant_stopping_on_significance_finds_false_differences(record_property: Record) -> None:
    values = simulate.experiment(np.random.default_rng(11), simulate.white, RUNS, 200).values
    looks = np.arange(10, 201)
    means = np.cumsum(values, axis=1)[:, 9:] / looks
    squares = np.cumsum(values**2, axis=1)[:, 9:] / looks - means**2
    standard = np.sqrt(squares / (looks - 1))
    critical = np.array([student_t.quantile(0.975, int(n) - 1) for n in looks])
    claims = float(np.mean((np.abs(means) > critical * standard).any(axis=1)))
    show(record_property, "mutant, stopping on significance: false claims", claims, "it must fail: > 0.06")
    assert claims > 0.2
