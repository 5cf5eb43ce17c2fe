"""The schedule: order, seeds, cores, time, slice length, warm-up."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulate
from ciphercost.estimate import tally
from ciphercost.estimate.statistics import Floats
from ciphercost.model.spec import ARMS, CellSpec, Regime, Spec
from ciphercost.plan import schedule, settled

Record = Callable[[str, object], None]
CELL = CellSpec("postgresql", "tls")


def orders(seed: int, cell: int, session: int, count: int = 50) -> list[str]:
    return [block.order for block in itertools.islice(schedule.blocks(seed, cell, session), count)]


# ── order ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 2**63), st.integers(0, 100), st.integers(0, 100))
def test_the_order_comes_from_the_seed_alone(seed: int, cell: int, session: int) -> None:
    assert orders(seed, cell, session) == orders(seed, cell, session)
    assert orders(seed, cell, session) != orders(seed + 1, cell, session)
    assert orders(seed, cell, session) != orders(seed, cell + 1, session)
    assert orders(seed, cell, session) != orders(seed, cell, session + 1)


def test_the_coin_is_fair_and_independent() -> None:
    heads = np.array([order == "ABBA" for order in orders(1, 0, 0, 20_000)], float)
    assert heads.mean() == pytest.approx(0.5, abs=0.015)
    assert np.corrcoef(heads[1:], heads[:-1])[0, 1] == pytest.approx(0.0, abs=0.025)


def test_blocks_are_numbered_and_each_has_a_lead_in_and_mirrors_its_order() -> None:
    for number, block in enumerate(itertools.islice(schedule.blocks(7, 0, 1), 20)):
        lead_in, *quad = block.arms
        assert block.number == number
        assert lead_in == quad[0]
        assert quad == quad[::-1]
        assert sorted(quad) == ["encrypted", "encrypted", "plain", "plain"]


@given(st.integers(0, 2**63), st.integers(0, 100), st.integers(1, 100))
def test_the_first_arm_is_drawn_for_two_sessions_and_reversed_in_the_second(seed: int, cell: int, pair: int) -> None:
    first, second = (schedule.arms(seed, cell, session) for session in (2 * pair - 1, 2 * pair))
    assert first == second[::-1] == schedule.arms(seed, cell, 2 * pair - 1)
    assert set(first) == set(ARMS)


def test_in_quick_runs_either_arm_comes_first_equally_often() -> None:
    firsts = [schedule.arms(seed, 0, 1)[0] == "plain" for seed in range(2_000)]
    assert np.mean(firsts) == pytest.approx(0.5, abs=0.04)
    later = [schedule.arms(3, 0, session)[0] == "plain" for session in range(1, 4_000, 2)]
    assert np.mean(later) == pytest.approx(0.5, abs=0.04)
    cells = [schedule.arms(3, cell, 1)[0] == "plain" for cell in range(2_000)]
    assert np.mean(cells) == pytest.approx(0.5, abs=0.04)
    blocks = [next(schedule.blocks(seed, 0, 1)).order == "ABBA" for seed in range(2_000)]
    assert np.corrcoef(firsts, blocks)[0, 1] == pytest.approx(0.0, abs=0.06), "a draw of its own"


@given(st.lists(st.tuples(*[st.integers(0, 2000)] * 5), min_size=2, max_size=30, unique=True))
def test_every_slice_has_its_own_seed_that_a_json_reader_keeps_exactly(places: list[tuple[int, ...]]) -> None:
    seeds = [schedule.slice_seed(*place) for place in places]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert seeds == [schedule.slice_seed(*place) for place in places]


# ── cores ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 255), min_size=2, max_size=64, unique=True), st.integers(0, 2**63), st.integers(1, 9))
def test_halves_are_disjoint_equal_and_swap_between_two_sessions(available: list[int], seed: int, pair: int) -> None:
    server, agent = schedule.cores(seed, 2 * pair - 1, available, "capacity")
    assert not set(server) & set(agent)
    assert len(server) == len(agent) == len(available) // 2
    assert schedule.cores(seed, 2 * pair, available, "capacity") == (agent, server)


@pytest.mark.parametrize("regime", ["capacity", "one-core"])
def test_in_quick_runs_the_server_has_either_half_equally_often(regime: Regime) -> None:
    low = [schedule.cores(seed, 1, [0, 1, 2, 3], regime)[0][0] == 0 for seed in range(2_000)]
    assert np.mean(low) == pytest.approx(0.5, abs=0.04)
    firsts = [schedule.arms(seed, 0, 1)[0] == "plain" for seed in range(2_000)]
    assert np.corrcoef(firsts, low)[0, 1] == pytest.approx(0.0, abs=0.06), "a draw of its own"


@given(st.lists(st.integers(0, 255), min_size=1, max_size=64, unique=True), st.integers(0, 9), st.integers(0, 9))
def test_one_core_means_the_same_single_core(available: list[int], seed: int, session: int) -> None:
    server, agent = schedule.cores(seed, session, available, "one-core")
    assert server == agent
    assert len(server) == 1
    assert server[0] in available


def test_with_one_core_both_are_on_it() -> None:
    regimes: tuple[Regime, ...] = ("capacity", "latency", "one-core")
    assert {schedule.cores(1, 3, [5], regime) for regime in regimes} == {((5,), (5,))}
    with pytest.raises(ValueError, match="no CPU"):
        schedule.cores(1, 0, [], "capacity")


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(5, 3600), st.integers(1, 40), st.booleans(), st.sampled_from(["capacity", "one-core", "latency"]))
def test_a_budget_spends_the_time_asked_for(time: float, sessions: int, latency: bool, regime: Regime) -> None:
    spec = Spec([CELL], time=time, sessions=sessions, latency=latency)
    budget = schedule.budget(spec, CellSpec("postgresql", "tls", regime=regime))
    assert budget.total_s == pytest.approx(time)
    assert budget.sessions == sessions
    assert min(budget.pilot_s, budget.warmup_s, budget.capacity_s, budget.latency_s) >= 0
    assert budget.warmup_limit_s > budget.warmup_s
    if latency and regime != "latency":
        assert budget.latency_s * sessions == pytest.approx(0.25 * time)


def test_at_rest_a_cell_gets_longer_and_more_of_it_goes_to_latency() -> None:
    rest = CellSpec("sqlite", "sqlcipher")
    assert schedule.seconds([CELL]) == schedule.SECONDS
    assert schedule.seconds([CELL, rest]) == schedule.SECONDS_AT_REST
    budget = schedule.budget(Spec([rest], time=schedule.SECONDS_AT_REST), rest)
    assert budget.total_s == pytest.approx(schedule.SECONDS_AT_REST)
    assert budget.capacity_s > 10


@given(st.floats(350, 5000))
def test_at_rest_the_usual_time_is_enough_for_p99_from_350_operations_a_second_on(capacity: float) -> None:
    rest = CellSpec("sqlite", "sqlcipher")
    budget = schedule.budget(Spec([rest], time=schedule.SECONDS_AT_REST), rest)
    length = schedule.latency_slice_length(budget.latency_s, 0.6 * capacity, 0.3)
    blocks = int(budget.latency_s / (schedule.SLICES_A_BLOCK * length) + 1e-9)
    assert blocks >= schedule.MIN_BLOCKS
    requests = blocks * 2 * (1 - schedule.DISCARD) * length * 0.6 * capacity
    assert requests * 0.01 >= tally.ENOUGH_OF_A_SESSION


def test_quick_is_one_session() -> None:
    budget = schedule.budget(Spec([CELL], mode="quick", time=60), CELL)
    assert budget.sessions == 1
    assert budget.min_blocks >= schedule.LEAST_BLOCKS_QUICK


def test_without_latency_its_time_goes_to_capacity() -> None:
    with_it, without = (schedule.budget(Spec([CELL], latency=latency), CELL) for latency in (True, False))
    assert without.latency_s == 0
    assert without.capacity_s == pytest.approx(with_it.capacity_s + with_it.latency_s)


def test_a_latency_cell_with_a_rate_needs_no_capacity_phase() -> None:
    budget = schedule.budget(Spec([CELL]), CellSpec("postgresql", "tls", regime="latency", rate=500))
    assert budget.capacity_s == 0
    assert schedule.budget(Spec([CELL]), CellSpec("postgresql", "tls", regime="latency")).capacity_s > 0


def test_the_estimate_before_the_start_counts_load_and_setup_of_every_session() -> None:
    assert schedule.time_estimate(Spec([CELL, CELL], time=90, sessions=8), setup_s=2) == pytest.approx(2 * (90 + 16))


def test_latency_slices_are_long_enough_for_the_99th_percentile_where_time_allows() -> None:
    length = schedule.latency_slice_length(60.0, 10_000, 0.1)
    assert 2 * 0.8 * length * 10_000 >= 5000
    assert length < 60 / (4 * schedule.SLICES_A_BLOCK)
    assert schedule.latency_slice_length(2.7, 10_000, 0.1) == pytest.approx(2.7 / (4 * schedule.SLICES_A_BLOCK))
    assert schedule.latency_slice_length(60.0, 10_000, 2.0) == 2.0


# ── slice length ──────────────────────────────────────────────────────────────────────────────────────────────────────


def pilot(noise: Floats, rate: float = 20_000) -> Floats:
    pairs: Floats = np.log(rate) + noise.reshape(-1, 2)
    return pairs


def test_drifting_noise_leads_to_short_slices() -> None:
    noise = simulate.ornstein_uhlenbeck(np.random.default_rng(1), 1, 400, sd=0.05, memory=20)[0]
    assert schedule.choose_slice_length(pilot(noise), 0.05) <= 0.15


def test_alternating_noise_leads_to_slices_that_average_it() -> None:
    # A stall every 0.4 s: shorter slices contain it or not, longer slices contain their share of it.
    noise = np.random.default_rng(2).normal(0, 0.002, 800)
    noise[::8] -= 0.3
    assert schedule.choose_slice_length(pilot(noise), 0.05) >= 0.4


def test_slow_operations_get_slices_that_hold_enough_of_them() -> None:
    noise = np.random.default_rng(3).normal(0, 0.01, 800)
    assert schedule.choose_slice_length(pilot(noise, rate=500), 0.05) * 0.8 * 500 >= schedule.LEAST_OPERATIONS


def test_slices_leave_room_for_the_blocks_of_a_session() -> None:
    noise = np.random.default_rng(4).normal(0, 0.01, 800)
    length = schedule.choose_slice_length(pilot(noise, rate=20), 0.05, session_seconds=18.0, min_blocks=4)
    assert length == pytest.approx(1.0)


def test_very_slow_operations_get_slices_in_which_each_connection_finishes_one() -> None:
    length = schedule.choose_slice_length(pilot(np.zeros(16), rate=0.5), 0.05, session_seconds=5.0, clients=2)
    assert length * 0.8 * 0.5 == pytest.approx(2)
    assert schedule.choose_slice_length(pilot(np.zeros(16), rate=1e-6), 0.05, session_seconds=5.0) == schedule.LONGEST


def test_slices_hold_several_of_the_slowest_kind_of_operation() -> None:
    noise = np.random.default_rng(6).normal(0, 0.01, 800)

    def length(slowest: float, session: float) -> float:
        return schedule.choose_slice_length(pilot(noise), 0.05, session_seconds=session, slowest=slowest)

    assert length(0.4, 60) == pytest.approx(5 * 0.4)
    assert length(0.4, 18 * 1.5) == pytest.approx(1.5), "as long as a session has room"
    assert length(0.4, 5) == pytest.approx(2.5 * 0.4), "but never too short for it"
    assert length(40, 5) == schedule.LONGEST
    assert length(0.001, 60) == length(0.0, 60), "quick ones change nothing"


def test_without_a_pilot_a_slice_is_half_a_second() -> None:
    assert schedule.choose_slice_length(np.empty((0, 2)), 0.05) == 0.5
    assert schedule.choose_slice_length(pilot(np.zeros(8)), 0.05) == 0.5
    assert schedule.choose_slice_length(np.full((20, 2), np.nan), 0.05) == 0.5


@given(st.integers(0, 1000), st.integers(1, 200), st.floats(1.0, 1e6), st.floats(0.5, 100.0))
def test_a_slice_length_is_always_within_its_bounds(seed: int, pairs: int, rate: float, session: float) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1, 2 * pairs)
    length = schedule.choose_slice_length(pilot(noise, rate), 0.05, session_seconds=session)
    assert 0.1 <= length <= max(5.0, 1 / (0.8 * rate) * 2)


# ── warm-up ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def stationary(seed: int, autocorrelation: float, n: int, runs: int = 200) -> tuple[Floats, Floats]:
    """Log rates of both arms, (runs, n): AR(1) noise of 2 %, half of its variance shared."""
    random = np.random.default_rng(seed)
    memory = -1 / np.log(autocorrelation) if autocorrelation else 1e-3
    common, plain, encrypted = (simulate.ornstein_uhlenbeck(random, runs, n, 0.02, memory) for _ in range(3))
    return (common + plain) / np.sqrt(2), (common + encrypted) / np.sqrt(2)


@pytest.mark.parametrize(("autocorrelation", "n"), [(0.0, 40), (0.3, 60), (0.5, 60), (0.5, 160)])
def test_steady_noise_is_rarely_taken_for_a_warm_up(autocorrelation: float, n: int, record_property: Record) -> None:
    plain, encrypted = stationary(30, autocorrelation, n)
    alarms = float(np.mean([not settled.steady(p, e) for p, e in zip(plain, encrypted, strict=True)]))
    record_property("false alarms", alarms)
    print(f"\nwarm-up, AR(1) {autocorrelation}, {n} slices an arm: false alarms {alarms:.3f} (bar ≤ 0.05)", end="")
    assert alarms <= 0.05


@pytest.mark.parametrize("constant", [0.5, 1.0])
def test_an_unfinished_warm_up_is_detected(constant: float, record_property: Record) -> None:
    n = 60
    plain, encrypted = stationary(31, 0.0, n)
    warm = -0.7 * np.exp(-np.arange(n) / n / constant)  # From half of the final throughput.
    seen = float(np.mean([not settled.steady(p + warm, e + warm) for p, e in zip(plain, encrypted, strict=True)]))
    moved = warm[-1] - warm[int(0.75 * n)]
    record_property("seen", seen)
    print(f"\nwarm-up that moves {moved:.1%} in its last quarter: seen {seen:.3f} (bar ≥ 0.95)", end="")
    assert seen >= 0.95


def test_a_warm_up_of_only_one_arm_is_detected() -> None:
    plain, encrypted = stationary(32, 0.0, 60, runs=40)
    warm = -0.7 * np.exp(-np.arange(60) / 60)
    assert np.mean([not settled.steady(p, e + warm) for p, e in zip(plain, encrypted, strict=True)]) >= 0.95


def test_a_warm_up_that_is_over_is_over() -> None:
    plain, encrypted = stationary(33, 0.0, 120, runs=60)
    warm = -0.7 * np.exp(-np.arange(120) / 8)
    assert np.mean([settled.steady(p + warm, e + warm) for p, e in zip(plain, encrypted, strict=True)]) >= 0.95


def test_too_few_slices_are_never_steady_and_constant_ones_are() -> None:
    few, enough = np.zeros(settled.WARMUP_POINTS - 1), np.zeros(settled.WARMUP_POINTS)
    assert not settled.steady(few, enough)
    assert settled.steady(enough, enough)
