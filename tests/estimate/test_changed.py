"""A cost that changes during a run, and sessions that are skewed: how often a warning says so, and how often it says so for nothing."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import stats

import by_row
import simulate
import simulate_one_arm as one_arm
from ciphercost.estimate import steadiness
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.statistics import Floats
from ciphercost.model.spec import Mode
from simulate_one_arm import Made

RUNS = 200
DESIGNS = {"quick, 20 blocks": (1, 20), "quick, 50 blocks": (1, 50), "8 sessions of 6": (8, 6)}


def values(runs: Made) -> Floats:
    """Block values, shape (runs, sessions, blocks)."""
    y = runs.rates
    block_values: Floats = runs.signs * (y[..., 1] + y[..., 2] - y[..., 0] - y[..., 3]) / 2
    return block_values


def changes(of: Floats) -> list[steadiness.Change | None]:
    mode: Mode = "full" if of.shape[1] > 1 else "quick"
    centres = by_row.hodges_lehmann(of.reshape(-1, of.shape[2])).reshape(of.shape[:2])
    return [steadiness.change(list(run), run_centres, mode) for run, run_centres in zip(of, centres, strict=True)]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", one_arm.SHARED)
def test_a_cost_that_stays_the_same_is_rarely_said_to_change(kind: str, design: str) -> None:
    runs = one_arm.runs(np.random.default_rng(46), one_arm.SHARED[kind], RUNS, *DESIGNS[design])
    alarms = np.mean([change is not None for change in changes(values(runs))])
    print(f"\n{kind}, {design}: {alarms:.1%}", end="")
    assert alarms <= 0.035


@pytest.mark.parametrize(("size", "least"), [(0.2, 1.0), (0.05, 0.9)])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", ["white", "drift"])
def test_a_cost_that_changes_is_found_where_it_changes(
    kind: str, design: str, share: float, size: float, least: float
) -> None:
    runs = one_arm.runs(np.random.default_rng(47), one_arm.SHARED[kind], 60, *DESIGNS[design])
    of = values(runs)
    sessions, blocks = of.shape[1:]
    at = round(share * sessions * blocks)
    of.reshape(len(of), -1)[:, at:] += math.log1p(-size)
    by_run = changes(of)
    known = [change for change in by_run if change is not None]
    assert len(known) / len(by_run) >= least
    unit = blocks if sessions > 1 else 1
    assert np.mean([abs(change.after * unit - at) <= max(unit, 2) for change in known]) >= 0.95
    assert np.mean([change.behind - change.before for change in known]) == pytest.approx(
        math.log1p(-size), abs=0.3 * size
    )


def test_the_skewness_test_is_scipys() -> None:
    random = np.random.default_rng(48)
    for n in (8, 12, 40):
        drawn = random.lognormal(0, 0.5, n)
        assert steadiness.skewness(drawn) == pytest.approx(float(stats.skewtest(drawn).pvalue), rel=1e-9)
    assert steadiness.skewness(np.arange(7.0) ** 3) == 1
    assert steadiness.skewness(np.ones(8)) == 1


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("white", 0.0, 0.03), ("skewed starts, sd 1 %", 0.05, 1.0), ("bad start, 10 % of sessions, 5 %", 0.35, 1.0)],
)
def test_skewed_sessions_are_reported_where_the_run_shows_them(kind: str, least: float, most: float) -> None:
    noise, disturbance = one_arm.ONE_ARM.get(kind, (simulate.white, None))
    runs = one_arm.runs(np.random.default_rng(49), noise, 1000, 8, 6, disturbance)
    reported = float(np.mean([steadiness.uneven(row) for row in one_arm.typical(runs)]))
    print(f"\n{kind}: {reported:.1%}", end="")
    assert least <= reported <= most


def estimated(runs: Made) -> CellEstimator:
    estimator = CellEstimator()
    for session in range(runs.signs.shape[1]):
        for record in simulate.records(runs.rates[0, session], runs.signs[0, session], session=session + 1):
            estimator.add(record)
    return estimator


@pytest.mark.parametrize(("sessions", "blocks", "mode"), [(1, 20, "quick"), (8, 4, "full")])
def test_the_run_says_that_its_cost_changed(sessions: int, blocks: int, mode: Mode) -> None:
    runs = one_arm.runs(np.random.default_rng(50), simulate.drift, 1, sessions, blocks)
    assert not {"cost-changed", "uneven-sessions"} & {warning.code for warning in estimated(runs).finish(mode).warnings}
    rates = runs.rates.copy()
    flat, encrypted = rates.reshape(-1, 4), runs.encrypted.reshape(-1, 4)
    half = len(flat) // 2
    flat[half:] += math.log(0.8) * encrypted[half:]
    (warning,) = (
        warning
        for warning in estimated(runs._replace(rates=rates)).finish(mode).warnings
        if warning.code == "cost-changed"
    )
    assert f"in the first {half if sessions == 1 else 4} {'blocks' if sessions == 1 else 'sessions'}" in warning.text
    numbers = [float(number) for number in re.findall(r"(?:ratio was|and) (0\.\d+)", warning.text)]
    assert numbers == pytest.approx([0.9, 0.72], abs=0.01)
