"""The interval over machines keeps its coverage, and the test of a difference its level. METHODOLOGY.md has the figures.

`pytest tests/estimate/test_machines_coverage.py -s` prints them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

import by_row
import simulate
import simulate_machines
from ciphercost.estimate import f_distribution, machines, statistics, student_t
from ciphercost.estimate.statistics import Floats
from ciphercost.report.words import machines_text

Record = Callable[[str, object], None]
RUNS = 2000
EFFECT = math.log(0.9)
NOISES = {name: simulate.SCENARIOS[name] for name in ("white", "drift", "correlated", "spikes", "periodic")}


def show(record_property: Record, name: str, value: float, bar: str) -> None:
    record_property(name, round(value, 4))
    print(f"\n{name}: {value:.4f} (bar {bar})", end="")


def covered(values: Floats, truth: float) -> float:
    low, high = by_row.machine_bounds(values)
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("count", [3, 8, 30])
@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_over_machines_covers_the_mean_machine(noise: str, count: int, record_property: Record) -> None:
    """Session effects, drift and other noise, whose scale differs from machine to machine by a factor of 3 either way."""
    random = np.random.default_rng([31, count])
    values, _ = simulate_machines.estimates(simulate_machines.runs(random, NOISES[noise], RUNS, count, effect=EFFECT))
    coverage = covered(values, EFFECT)
    show(record_property, f"coverage, {noise}, {count} machines", coverage, "≥ 0.935")
    assert coverage >= 0.935


@pytest.mark.parametrize("count", [3, 8, 30])
@pytest.mark.parametrize("effects", ["none", "heavy tails", "skewed"])
def test_it_covers_if_machines_differ_in_other_ways(effects: str, count: int, record_property: Record) -> None:
    random = np.random.default_rng([32, count])
    draw_effects = simulate_machines.EFFECTS[effects]
    values, _ = simulate_machines.estimates(
        simulate_machines.runs(random, simulate.drift, RUNS, count, effects=draw_effects, effect=EFFECT)
    )
    coverage = covered(values, EFFECT)
    # Skewed machines are a limit, as skewed sessions are.
    least = 0.91 if effects == "skewed" else 0.935
    show(record_property, f"coverage, machines differ: {effects}, {count} machines", coverage, f"≥ {least}")
    assert coverage >= least


@pytest.mark.parametrize(("count", "least"), [(3, 0.70), (8, 0.90)])
def test_two_cpu_models_that_differ_much_are_a_limit(count: int, least: float, record_property: Record) -> None:
    """If all of a few machines happen to have one model, no interval over them can cover the other. Reports group by model."""
    random = np.random.default_rng([33, count])
    sessions = simulate_machines.runs(random, simulate.white, RUNS, count, effects=simulate_machines.two_models)
    coverage = covered(simulate_machines.estimates(sessions)[0], 0.0)
    show(
        record_property, f"coverage, two CPU models 10 points apart, {count} machines", coverage, f"≥ {least}; a limit"
    )
    assert coverage >= least


def test_a_machine_more_is_worth_more_than_a_session_more(record_property: Record) -> None:
    """Widths of the interval, in points of cost, if machines differ by 2 %."""
    for count, sessions in ((3, 8), (3, 80), (8, 8), (30, 8)):
        random = np.random.default_rng([34, count, sessions])
        values, _ = simulate_machines.estimates(
            simulate_machines.runs(random, simulate.white, 500, count, sessions=sessions)
        )
        low, high = by_row.machine_bounds(values)
        show(
            record_property,
            f"half-width, {count} machines, {sessions} sessions",
            float(np.mean(high - low)) / 2,
            "printed",
        )
    assert student_t.quantile(0.975, 2) / math.sqrt(3) > 2 * student_t.quantile(0.975, 7) / math.sqrt(8)


@pytest.mark.parametrize("count", [3, 8])
def test_machines_that_are_alike_are_seldom_said_to_differ(count: int, record_property: Record) -> None:
    random = np.random.default_rng([35, count])
    sessions = simulate_machines.runs(random, simulate.drift, RUNS, count, effects=simulate_machines.none)
    claims = float(np.mean(p_values(sessions) < 0.05))
    show(record_property, f"machines that are alike differ, {count} machines", claims, "≤ 0.08")
    assert claims <= 0.08


def test_machines_that_differ_by_four_times_their_error_are_found(record_property: Record) -> None:
    random = np.random.default_rng(36)
    sessions = simulate_machines.runs(random, simulate.drift, RUNS, 3)
    detected = float(np.mean(p_values(sessions) < 0.05))
    show(record_property, "machines that differ by 2 % are found, 3 machines", detected, "≥ 0.8")
    assert detected >= 0.8


def p_values(sessions: Floats) -> Floats:
    """`machines.between(…).p_value` of each row."""
    values, errors = simulate_machines.estimates(sessions)
    variances, count = errors**2, sessions.shape[2]
    nus = variances.sum(axis=1) ** 2 / (variances**2 / (count - 1)).sum(axis=1)
    ratios = values.var(axis=1, ddof=1) / variances.mean(axis=1)
    pairs = zip(ratios, nus, strict=True)
    return np.array([f_distribution.upper_tail(float(ratio), values.shape[1] - 1, float(nu)) for ratio, nu in pairs])


@pytest.mark.parametrize("count", [3, 8])
def test_the_interval_of_the_standard_deviation_between_machines_covers_it(count: int, record_property: Record) -> None:
    random = np.random.default_rng([37, count])
    values, errors = simulate_machines.estimates(simulate_machines.runs(random, simulate.drift, 500, count))
    hit = 0
    for run_values, standards in zip(values, errors, strict=True):
        intervals = [
            statistics.Interval(value, (statistics.Error(standard, 7, "t"),), 8)
            for value, standard in zip(run_values, standards, strict=True)
        ]
        between = machines.between(intervals)
        hit += between.low <= simulate_machines.BETWEEN <= between.high
    show(record_property, f"coverage of the standard deviation, {count} machines", hit / 500, "≥ 0.92")
    assert hit >= 0.92 * 500


@pytest.mark.parametrize("count", sorted(machines_text.TWO_KINDS))
def test_few_machines_of_two_kinds_are_covered_as_often_as_the_report_says(count: int) -> None:
    shares = []
    for share in (0.3, 0.5):
        values = simulate_machines.two_valued(np.random.default_rng(53), 20_000, count, share)
        low, high = by_row.machine_bounds(values)
        shares.append(100 * float(np.mean((low <= 0) & (high >= 0))))
    least, most = (float(number) for number in re.findall(r"[0-9]+", machines_text.TWO_KINDS[count]))
    assert sorted(shares) == pytest.approx([least, most], abs=1.5)
