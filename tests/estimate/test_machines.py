"""The cost over machines: its interval, the variance between machines, and what each interval covers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats

import by_row
import simulate
import simulate_machines
from ciphercost.estimate import f_distribution, machines, statistics
from ciphercost.estimate.machines import OnMachine
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.to_estimate import to_estimate


@pytest.mark.parametrize("nu2", [2.0, 7.5, 21.0, 300.0])
@pytest.mark.parametrize("nu1", [1, 2, 7, 29])
def test_the_f_distribution_is_that_of_scipy(nu1: int, nu2: float) -> None:
    for f in (1e-3, 0.2, 0.9, 1.0, 1.7, 4.0, 60.0):
        assert f_distribution.upper_tail(f, nu1, nu2) == pytest.approx(scipy.stats.f.sf(f, nu1, nu2), rel=1e-8)
    for q in (0.025, 0.5, 0.975):
        assert f_distribution.quantile(q, nu1, nu2) == pytest.approx(scipy.stats.f.ppf(q, nu1, nu2), rel=1e-8)
    assert f_distribution.upper_tail(0.0, nu1, nu2) == 1
    assert f_distribution.upper_tail(math.inf, nu1, nu2) == 0


def runs_of(values: np.ndarray) -> list[Interval]:
    """Each machine's interval, of session values (machines, sessions)."""
    return [statistics.session_interval(row) for row in values]


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_between_machines_is_the_reml_estimate_of_a_mixed_model(seed: int) -> None:
    from statsmodels.regression.mixed_linear_model import MixedLM  # it takes long to import

    random = np.random.default_rng(seed)
    k, n = 5 + seed, 8
    values = random.normal(0, 0.02 * (seed != 3), (k, 1)) + random.normal(0.1, 0.01, (k, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where the variance is at its bound, 0
        model = MixedLM(values.ravel(), np.ones(k * n), groups=np.repeat(np.arange(k), n))
        fitted = model.fit(reml=True, method="powell", ftol=1e-12)
    ours = machines.between(runs_of(values))
    assert ours.sd == pytest.approx(math.sqrt(float(np.squeeze(fitted.cov_re))), rel=2e-3, abs=1e-4)
    together = machines.together(runs_of(values))
    assert together.centre == pytest.approx(float(fitted.fe_params[0]), rel=1e-6)
    # In a balanced model the standard error of the mean is that of the mixed model wherever the variance is not at its bound.
    if ours.sd > 0.001:
        assert together.errors[0].standard == pytest.approx(float(fitted.bse_fe[0]), rel=2e-3)


def test_the_lower_bound_of_the_variance_is_above_zero_exactly_where_the_test_is_significant() -> None:
    random = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        values = random.normal(0, 0.005, (4, 1)) + random.normal(0, 0.01, (4, 8))
        between = machines.between(runs_of(values))
        assert (between.low > 0) == (between.p_value < 0.025)
        assert between.low <= between.sd <= between.high
        seen.add(between.low > 0)
    assert seen == {True, False}


def test_without_noise_machines_differ_or_are_equal_for_certain() -> None:
    exact = [Interval(value, (statistics.Error(0.0, 7, "t"),), 8) for value in (0.1, 0.1, 0.1)]
    assert machines.between(exact).p_value == 1
    assert machines.between(exact).sd == 0
    unlike = [*exact, Interval(0.3, (statistics.Error(0.0, 7, "t"),), 8)]
    assert machines.between(unlike).p_value == 0
    assert machines.between(unlike).sd == pytest.approx(0.1)


def on(machine: str, log_ratio: float, *, cpu: str = "Xeon", host: str = "", sd: float = 0.01) -> OnMachine:
    values = log_ratio + sd * np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    interval = statistics.session_interval(values)
    return OnMachine(
        machine, host, cpu, {"throughput": interval}, {"throughput": to_estimate(interval, "full", "operations/s")}
    )


def test_one_machine_is_said_to_cover_itself_alone() -> None:
    only = on("node-1", -0.2)
    over = machines.over_machines([only], "full")["throughput"]
    assert over.overall == only.overhead["throughput"]
    assert over.between is None
    assert over.covers == "one machine (node-1), and no other"
    assert [cpu_type.covers for cpu_type in over.types] == ["one machine (node-1), and no other"]


def test_the_overall_cost_is_the_unweighted_mean_with_t_over_machines() -> None:
    cells = [on("node-1", -0.1, sd=0.001), on("node-2", -0.2), on("node-3", -0.4, sd=0.05)]
    over = machines.over_machines(cells, "full")["throughput"]
    values = np.array([-0.1, -0.2, -0.4])
    low, high = scipy.stats.t.interval(0.95, 2, values.mean(), scipy.stats.sem(values))
    assert math.log(over.overall.ratio) == pytest.approx(values.mean())
    assert [math.log(over.overall.low), math.log(over.overall.high)] == pytest.approx([low, high])
    assert (over.overall.n, over.overall.unit, over.overall.method) == (3, "machine", "t over 3 machines")
    assert over.covers.startswith("3 machines, and others")


def test_a_model_with_two_machines_has_t_over_these_and_one_with_one_machine_its_own_interval() -> None:
    cells = [on("node-1", -0.1, cpu="Epyc"), on("node-2", -0.2), on("node-3", -0.22)]
    first, second = machines.over_machines(cells, "full")["throughput"].types
    assert (first.cpu, first.machines, first.estimate.n) == ("Xeon", ["node-2", "node-3"], 2)
    assert first.estimate.method == "t over 2 machines"
    assert (second.cpu, second.covers) == ("Epyc", "one machine (node-1), and no other")
    assert second.estimate == cells[0].overhead["throughput"]


def test_nodes_of_one_host_are_not_said_to_be_machines() -> None:
    cells = [on("node-1", -0.1, host="a"), on("node-2", -0.2, host="a"), on("node-3", -0.2, host="b")]
    assert machines.covers(cells[:2]).startswith("2 nodes of one host,")
    assert machines.covers(cells).startswith("3 machines on 2 hosts, and others")
    assert machines.hosts(cells) == 2


def test_quick_runs_say_that_each_machine_was_started_once() -> None:
    over = machines.over_machines([on("node-1", -0.1), on("node-2", -0.2)], "quick")["throughput"]
    assert over.overall.method == "t over 2 machines; one start each"


def test_verdicts_are_corrected_for_the_number_of_cells() -> None:
    clear = [on(f"node-{number}", -0.2 + 0.001 * number) for number in range(4)]
    slight = [on(f"node-{number}", value) for number, value in enumerate((-0.01, -0.03, -0.025, -0.05))]
    one = machines.verdicts([slight], ["throughput"], "full", 0.01)
    assert one == ["differs"]
    several = machines.verdicts([slight, clear, *[slight] * 6, []], ["throughput"] * 9, "full", 0.01)
    assert several == ["unresolved", "differs", *["unresolved"] * 6, None]


def test_bounds_of_many_rows_are_those_of_each_row() -> None:
    sessions = simulate_machines.runs(np.random.default_rng(1), simulate.white, 20, 4)
    values, errors = simulate_machines.estimates(sessions)
    low, high = by_row.machine_bounds(values)
    for row in range(20):
        intervals = runs_of(sessions[row])
        assert list(machines.together(intervals).bounds()) == pytest.approx([low[row], high[row]])
        assert [machines.widest(interval).standard for interval in intervals] == pytest.approx(errors[row].tolist())
