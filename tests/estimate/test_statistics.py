"""The hand-written statistics agree with independent implementations and have the required symmetries."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

import by_row
from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.statistics import Floats

numbers = st.floats(-1.0, 1.0).map(lambda x: round(x, 6))
series = st.lists(numbers, min_size=2, max_size=40).map(np.array)
p_values = st.lists(st.floats(0.0, 1.0), max_size=20)


def walsh(values: Floats) -> Floats:
    i, j = np.triu_indices(len(values))
    averages: Floats = (values[i] + values[j]) / 2
    return averages


def noise(n: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=n)


# ── location ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [1, 2, 5, 300, 301, 302, 900])
@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_hodges_lehmann_is_the_median_of_all_walsh_averages(n: int, decimals: int) -> None:
    values = np.round(noise(n), decimals)
    assert statistics.hodges_lehmann(values) == pytest.approx(float(np.median(walsh(values))), abs=1e-12)


def test_hodges_lehmann_of_rows_is_that_of_each_row() -> None:
    values = noise(70).reshape(7, 10)
    assert by_row.hodges_lehmann(values).tolist() == [statistics.hodges_lehmann(row) for row in values]


def test_hodges_lehmann_of_twenty_thousand_values_needs_no_two_hundred_million_averages() -> None:
    values = noise(20_000)
    assert abs(statistics.hodges_lehmann(values) - values.mean()) < 0.005


@given(series, numbers)
def test_hodges_lehmann_moves_with_a_shift_and_turns_with_a_sign(values: Floats, shift: float) -> None:
    centre = statistics.hodges_lehmann(values)
    assert statistics.hodges_lehmann(values + shift) == pytest.approx(centre + shift, abs=1e-9)
    assert statistics.hodges_lehmann(-values) == pytest.approx(-centre, abs=1e-9)


@pytest.mark.parametrize("n", [6, 10, 25, 50, 60])
def test_the_signed_rank_interval_holds_every_centre_that_the_wilcoxon_test_does_not_reject(n: int) -> None:
    values = noise(n, seed=n)
    low, high = statistics.hodges_lehmann_interval(values)
    width = high - low
    for centre, accepted in ((low + 0.02 * width, True), (low - 0.15 * width, False), (high + 0.15 * width, False)):
        if n <= 50:
            p = stats.wilcoxon(values - centre, method="exact", correction=False).pvalue
        else:
            p = stats.wilcoxon(values - centre, method="approx", correction=False).pvalue
        assert (p > 0.05) == accepted


def test_the_signed_rank_interval_keeps_its_coverage() -> None:
    values = noise(4000 * 20).reshape(4000, 20)
    bounds = [statistics.hodges_lehmann_interval(row) for row in values]
    assert np.mean([low <= 0 <= high for low, high in bounds]) == pytest.approx(0.95, abs=0.015)


@given(series)
def test_an_interval_contains_its_estimate(values: Floats) -> None:
    low, high = statistics.hodges_lehmann_interval(values)
    assert low <= statistics.hodges_lehmann(values) + 1e-12
    assert statistics.hodges_lehmann(values) <= high + 1e-12
    for interval in (statistics.block_interval(values), statistics.session_interval(values)):
        low, high = interval.bounds()
        assert low <= interval.centre <= high


def test_an_empty_array_has_no_centre() -> None:
    for function in (statistics.hodges_lehmann, statistics.hodges_lehmann_interval):
        with pytest.raises(ValueError, match="at least one"):
            function(np.empty(0))


# ── intervals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_session_interval_is_the_textbook_t_interval() -> None:
    values = noise(8) + 0.5
    interval = statistics.session_interval(values)
    textbook = stats.ttest_1samp(values, 0.0)
    assert interval.bounds() == pytest.approx(tuple(textbook.confidence_interval(0.95)))
    assert interval.p_value() == pytest.approx(textbook.pvalue)


def test_a_run_that_stops_on_precision_keeps_the_degrees_of_freedom_of_its_least_sessions() -> None:
    values = noise(20)
    paid, free = statistics.session_interval(values, most_nu=7), statistics.session_interval(values)
    assert paid.half() / free.half() == pytest.approx(stats.t.ppf(0.975, 7) / stats.t.ppf(0.975, 19))
    assert "stopped on precision" in paid.method()
    assert statistics.session_interval(values[:6], most_nu=7) == statistics.session_interval(values[:6])


def test_the_cosine_variance_is_the_mean_square_of_its_projections() -> None:
    values, nu = noise(37).cumsum(), 13
    n = len(values)
    steps = np.arange(1, n + 1) - 0.5
    projections = [math.sqrt(2 / n) * float(values @ np.cos(math.pi * j * steps / n)) for j in range(1, nu + 1)]
    expected = math.sqrt(sum(projection**2 for projection in projections) / nu / n)
    assert statistics.cosine_error(values, nu).standard == pytest.approx(expected)


def test_with_all_cosines_the_long_run_variance_is_the_ordinary_variance() -> None:
    values = noise(30)
    error = statistics.cosine_error(values, 29)
    assert error.standard == pytest.approx(statistics.t_error(values).standard)
    assert error.nu == 29


def test_the_cosine_interval_covers_where_t_does_not() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=(1000, 200))
    for step in range(1, 200):
        values[:, step] += 0.6 * values[:, step - 1]
    means = values.mean(axis=1)
    naive = [
        abs(m) <= student_t.quantile(0.975, 199) * statistics.t_error(v).standard
        for m, v in zip(means, values, strict=True)
    ]
    errors = [statistics.cosine_error(v) for v in values]
    robust = [abs(m) <= student_t.quantile(0.975, e.nu) * e.standard for m, e in zip(means, errors, strict=True)]
    assert np.mean(naive) < 0.75
    assert np.mean(robust) > 0.92


@given(st.integers(2, 5000))
def test_cosines_are_fewer_than_values_and_grow_with_them(n: int) -> None:
    assert 1 <= statistics.cosine_count(n) <= n - 1
    assert statistics.cosine_count(n) <= statistics.cosine_count(n + 1)


@given(series, numbers)
def test_intervals_move_with_a_shift(values: Floats, shift: float) -> None:
    one, two = statistics.block_interval(values), statistics.block_interval(values + shift)
    assert two.half() == pytest.approx(one.half(), rel=1e-6, abs=1e-7)


def test_the_more_cautious_of_two_errors_counts() -> None:
    errors = (statistics.Error(1.0, 100, "narrow"), statistics.Error(2.0, 5, "wide"))
    interval = statistics.Interval(3.0, errors, 10)
    assert interval.half() == pytest.approx(2 * stats.t.ppf(0.975, 5))
    assert interval.p_value() == pytest.approx(2 * stats.t.sf(1.5, 5))
    assert interval.method() == "wide"


@given(st.lists(numbers, min_size=12, max_size=40).map(np.array).filter(lambda v: np.std(v) > 1e-3))
def test_bounds_of_rows_are_those_of_each_row(values: Floats) -> None:
    rows = np.array([values, values[::-1], np.sort(values)])
    for level in (0.90, 0.95):
        low, high = by_row.block_bounds(rows, level)
        bounds = [statistics.block_interval(row).bounds(level) for row in rows]
        assert np.allclose(np.array(bounds).T, [low, high])
        assert np.allclose([statistics.block_interval(row).half(level) for row in rows],
                           by_row.block_halves(rows, level))  # fmt: skip


def test_where_blocks_take_two_values_the_interval_is_that_of_their_mean_and_holds_the_centre() -> None:
    """Twelve blocks, nine of them with the same value: Hodges–Lehmann gives that value, but the truth is half way between both."""
    values = np.repeat([0.05, -0.05], [9, 3]) + 1e-4 * noise(12)
    interval = statistics.block_interval(values)
    low, high = interval.bounds()
    assert interval.centre == pytest.approx(0.05, abs=1e-3)
    assert interval.mean == pytest.approx(values.mean())
    assert low < 0 < high
    assert interval.p_value() > 0.05


@given(series, st.floats(-0.2, 0.2), st.floats(0.01, 1.0))
def test_tests_agree_with_bounds_where_mean_and_centre_differ(values: Floats, null: float, margin: float) -> None:
    interval = statistics.block_interval(values)
    if max(error.standard for error in interval.errors) < 1e-6:
        return
    low, high = interval.bounds()
    p = interval.p_value(null)
    if abs(p - 0.05) > 1e-9 and min(abs(null - low), abs(null - high)) > 1e-12:
        assert (p < 0.05) == (not low <= null <= high)
    low, high = interval.bounds(0.90)
    p = interval.tost(margin)
    if abs(p - 0.05) > 1e-9 and min(abs(margin - high), abs(margin + low)) > 1e-12:
        assert (p < 0.05) == (-margin < low and high < margin)


def test_a_null_between_mean_and_centre_is_never_rejected() -> None:
    interval = statistics.Interval(1.0, (statistics.Error(0.001, 10, "narrow"),), 11, mean=0.0)
    assert interval.bounds() == pytest.approx((-0.001 * stats.t.ppf(0.975, 10), 1.0))
    assert interval.p_value(0.5) == 1.0
    assert interval.p_value(1.1) < 0.001
    assert interval.tost(0.9) >= 0.5
    assert interval.tost(1.1) < 0.05


def test_the_error_of_correlated_blocks_is_that_of_an_autoregression() -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=400)
    for step in range(1, 400):
        values[step] += 0.5 * values[step - 1]
    error = statistics.autoregressive_error(values)
    assert error is not None
    away = values - values.mean()
    rho = float(away[1:] @ away[:-1] / (away @ away))
    rho += (1 + 3 * rho) / 400
    assert error.standard == pytest.approx(statistics.t_error(values).standard * math.sqrt((1 + rho) / (1 - rho)))
    assert rho == pytest.approx(0.5, abs=0.1)
    assert error.nu == 399
    assert f"ρ = {rho:.2f}" in error.method


def test_blocks_that_alternate_or_do_not_vary_show_no_correlation() -> None:
    assert statistics.autoregressive_error(np.tile([1.0, -1.0], 20)) is None
    assert statistics.autoregressive_error(np.full(30, 0.1)) is None
    assert statistics.autoregressive_error(np.array([1.0, 2.0])) is None


def test_correlation_seldom_shows_in_white_noise_and_nearly_always_in_a_memory_of_three_slices() -> None:
    import simulate

    random = np.random.default_rng(4)
    white = simulate.experiment(random, simulate.white, 1000, 25).values
    with_memory = simulate.experiment(random, simulate.white, 1000, 25, arm_noise=simulate.own_memory).values
    three = simulate.own_memory(random, 1000, 50).reshape(1000, 25, 2).mean(axis=2)
    shows = [
        np.mean([statistics.autoregressive_error(row) is not None for row in rows])
        for rows in (white, with_memory, three)
    ]
    assert shows[0] < 0.18
    assert shows[1] > 0.35
    assert shows[2] > 0.9


def test_counts_that_never_vary_leave_nothing_to_chance() -> None:
    constant = statistics.session_interval(np.full(8, 0.3))
    assert constant.bounds() == pytest.approx((0.3, 0.3))
    assert constant.p_value() == 0.0
    assert statistics.session_interval(np.zeros(8)).p_value() == 1.0
    assert constant.tost(0.2) == 1.0
    assert constant.tost(0.4) == 0.0


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least two"):
        statistics.session_interval(np.zeros(1))
    with pytest.raises(ValueError, match="at least two"):
        statistics.cosine_error(np.zeros(1))


# ── tests ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(series.filter(lambda v: np.std(v) > 1e-3), st.floats(0.01, 1.0))
def test_equivalence_is_that_of_statsmodels_and_of_the_ninety_per_cent_interval(values: Floats, margin: float) -> None:
    interval = statistics.session_interval(values)
    p = interval.tost(margin)
    assert p == pytest.approx(DescrStatsW(values).ttost_mean(-margin, margin)[0], abs=1e-9)
    low, high = interval.bounds(0.90)
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (-margin < low and high < margin)


@given(p_values.filter(bool))
def test_holm_is_that_of_statsmodels(raw: list[float]) -> None:
    with mock.patch("gc.collect"):  # multipletests calls it each time, which takes 0.1 s beside so many modules
        expected = list(multipletests(raw, method="holm")[1])
    assert statistics.holm(raw) == pytest.approx(expected)


@given(p_values)
def test_holm_never_lowers_a_p_value_and_keeps_their_order(raw: list[float]) -> None:
    adjusted = statistics.holm(raw)
    assert all(0 <= before <= after <= 1 for before, after in zip(raw, adjusted, strict=True))
    ranked = [after for _, after in sorted(zip(raw, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@given(st.integers(2, 60), st.integers(0, 5))
def test_the_smallest_effect_is_found_in_four_of_five_runs(n: int, seed: int) -> None:
    interval = statistics.session_interval(noise(n, seed))
    error = interval.errors[0]
    away = interval.smallest_effect() / error.standard
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, away)
    assert power == pytest.approx(0.8, abs=0.05) or n < 4


def test_the_sessions_that_would_resolve_a_cell() -> None:
    assert statistics.sessions_needed(0.02, 0.01, 0.01) == 5
    assert statistics.sessions_needed(0.0, 0.01, 0.01) == 11
    assert statistics.sessions_needed(0.01, 0.5, 0.01) is None
    # Exactly at the margin it can't be shown to be equivalent, but can be shown to differ from 0.
    assert statistics.sessions_needed(math.log(1.01), 0.01, math.log(1.01)) == 10


@given(st.floats(-0.1, 0.1), st.floats(0, 0.2), st.floats(0, 0.1), st.integers(2, 40))
def test_the_fewest_sessions_that_resolve_are_found(effect: float, sd: float, margin: float, most: int) -> None:
    needed = statistics.sessions_needed(effect, sd, margin, most)
    resolving = [n for n in range(2, most + 1) if statistics.sessions_needed(effect, sd, margin, n) == n]
    assert resolving == ([] if needed is None else [needed])
    assert statistics.sessions_needed(effect, sd, margin, needed or most) == needed


def test_a_cell_that_no_number_of_sessions_resolves_costs_few_quantiles() -> None:
    student_t.quantile.cache_clear()
    assert statistics.sessions_needed(1e-6, 0.5, 0.01) is None
    assert student_t.quantile.cache_info().misses < 100


def quad(sign: float, drift: float, debt: float) -> list[float]:
    """Log rates of one block on a linear drift with carry-over after each encrypted slice."""
    after_encrypted = [0, 0, 1, 1] if sign > 0 else [1, 1, 0, 0]
    return [drift * t - debt * d for t, d in enumerate(after_encrypted)]


def test_lambda_is_the_carry_over_of_an_encrypted_slice() -> None:
    signs = np.array([1.0, -1, -1, 1, 1, -1])
    rates = np.array([quad(s, 0.0, 0.02) for s in signs])
    carry_over = statistics.carryover(rates, signs)
    assert carry_over.value == pytest.approx(-0.02)
    assert carry_over.significant


def test_drift_is_no_carry_over() -> None:
    signs = np.array([1.0, -1, -1, 1, 1, -1])
    carry_over = statistics.carryover(np.array([quad(s, 0.05, 0.0) for s in signs]), signs)
    assert carry_over.value == pytest.approx(0.0)
    assert not carry_over.significant


def test_two_blocks_can_not_show_carry_over() -> None:
    assert not statistics.carryover(np.ones((2, 4)), np.ones(2)).significant
