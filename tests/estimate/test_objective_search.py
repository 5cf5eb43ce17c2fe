"""The search for capacity at an objective: what counts as slow, which rates it tries, and what it finds on a known curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pytest

from ciphercost.estimate import histogram, objective_answers, objective_capacity, objective_search
from ciphercost.estimate.objective_capacity import Capacities
from ciphercost.estimate.objective_curve import ArmSoFar, Tried, crossing, fitted
from ciphercost.estimate.objective_search import Search
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, Layout, encode
from ciphercost.model.slices import AgentSlice, SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.plan.latency_objective import parse

P99 = parse("p99=5ms")
Curve = Callable[[float], float]
"""Share of slow requests at a rate."""


def single_server(capacity: float, seconds: float = P99.seconds) -> Curve:
    """M/M/1: requests are slower than t with probability exp(−(μ − λ)t)."""
    return lambda rate: min(1.0, math.exp(-(capacity - rate) * seconds))


def searched(
    curves: Mapping[Arm, Curve], sessions: int = 1, blocks: int = 30, *, top: float = 10_000.0, lowest: float = 100.0
) -> Capacities:
    """What a search without noise finds."""
    capacities = Capacities(P99)
    for session in range(1, sessions + 1):
        for block in range(blocks):
            step = Search(P99, {arm: capacities.arms[arm] for arm in ARMS}, top, lowest, sessions == 1).next(session)
            if step is None:
                break
            for arm in ARMS:
                rate = step.rates[arm]
                slow = 10_000 * curves[arm](rate)
                capacities.arms[arm].append(Tried(session, block, step.phase, rate, slow, 10_000.0, 0.5, 0.0, 0.0))
    return capacities


def record(operations: int, latency_ns: int, *, rate: float = 1000.0, slow: int = 0, errors: int = 0) -> SliceRecord:
    """A slice of one second: `slow` of its operations took ten times as long."""
    layout = Layout(0, 10)
    low, _ = histogram.bounds(layout, np.arange(40_000))
    cells, counts = [], []
    for value, count in ((latency_ns, operations - slow), (10 * latency_ns, slow)):
        if count:
            cells.append(int(np.searchsorted(low, value, side="right")) - 1)
            counts.append(count)
    text = encode(Histogram(layout, np.array(cells, np.int64), np.array(counts, np.int64))) if operations else ""
    agent = AgentSlice(
        arm="plain", seconds=1.0, operations=operations, errors=errors, rows=0, checksum="", cpu_user_ns=0, cpu_system_ns=0, bytes_sent=0,
        bytes_received=0, segments_sent=0, segments_received=0, connects=0, resumed=0, late=0, threads=1, histogram=text,
    )  # fmt: skip
    return SliceRecord(0, 1, "curve", 3, "ABBA", 1, "plain", 0.0, 1.25, rate, agent)


# ── what counts as slow ───────────────────────────────────────────────────────────────────────────────────────────────


def counted(*records: SliceRecord) -> tuple[float, float]:
    """Requests slower than 5 ms, and all requests."""
    (slow,), requests = objective_answers.slow(records, [0.005])
    return slow, requests


def test_slow_requests_are_those_above_the_latency_and_those_without_an_answer() -> None:
    one = record(1000, 1_000_000, slow=30)
    assert counted(one) == pytest.approx((30, 1000))
    assert counted(one, one) == pytest.approx((60, 2000))
    assert counted(record(1000, 1_000_000, slow=30, errors=5)) == pytest.approx((35, 1005))
    # The slow ones take 10 ms.
    assert objective_answers.slow([one], [0.005, 0.009, 0.02])[0] == pytest.approx([30, 30, 0])
    # Half of the requests of this rate were answered, all of them quickly. Chance explains 4 √1000.
    slow, requests = counted(record(500, 1_000_000))
    assert slow == pytest.approx(500 - 4 * math.sqrt(1000))
    assert requests == pytest.approx(500 + slow)
    assert counted(record(950, 1_000_000))[0] == 0, "a Poisson process has fewer requests by chance"
    assert counted(record(0, 1))[0] == counted(record(0, 1))[1] > 0


def test_the_quantile_is_infinite_where_it_lies_among_requests_without_an_answer() -> None:
    assert objective_answers.latency([record(1000, 1_000_000, slow=30)], 0.99) == pytest.approx(0.01, rel=0.01)
    assert objective_answers.latency([record(1000, 1_000_000, slow=5)], 0.99) == pytest.approx(0.001, rel=0.01)
    assert math.isinf(objective_answers.latency([record(500, 1_000_000)], 0.99))
    assert objective_answers.latency([record(500, 1_000_000)], 0.5) == pytest.approx(0.001, rel=0.01)
    assert math.isinf(objective_answers.latency([record(0, 1)], 0.5))


def test_a_damaged_histogram_is_named_with_its_place() -> None:
    good = record(1000, 1_000_000)
    assert good.agent is not None
    for agent in ({"histogram": "?"}, {"operations": 999}):
        bad = msgspec.structs.replace(good, agent=msgspec.structs.replace(good.agent, **agent))
        with pytest.raises(UsageError, match="session 1, block 3"):
            counted(bad)


# ── one arm's curve ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_curve_is_centred_isotonic_regression() -> None:
    assert fitted([(0, 0.1, 1), (1, 0.3, 1), (2, 0.2, 1), (3, 0.5, 1)]) == [(0, 0.1, 1), (1.5, 0.25, 2), (3, 0.5, 1)]
    (one,) = fitted([(0, 0.4, 1), (1, 0.1, 3)])
    assert one == pytest.approx((0.75, 0.175, 4))
    (one,) = fitted([(1, 0.2, 1), (1, 0.4, 1)])
    assert one == pytest.approx((1, 0.3, 2))


def test_the_curve_crosses_a_level_on_a_straight_line() -> None:
    assert crossing([(0, -1), (1, 1), (2, 3)], 0) == 0.5
    assert crossing([(0, -1), (1, 1)], 2) is None
    assert crossing([(0, 1), (1, 2)], 0) is None


NONE = np.zeros(12, dtype=bool)


def blocks_around(capacity: float, worse: int = 0) -> list[Tried]:
    """Twelve blocks on M/M/1 around its capacity at the objective; a stall made most requests of the first `worse` of them slow."""
    curve = single_server(capacity)
    truth = capacity - math.log(100) / P99.seconds
    rates = truth * np.linspace(0.97, 1.03, 12)
    shares = [0.6 if n < worse else curve(rate) for n, rate in enumerate(rates)]
    return [
        Tried(1, n, "objective", rate, 1e6 * share, 1e6, 0.5, 0.0, 0.0)
        for n, (rate, share) in enumerate(zip(rates, shares, strict=True))
    ]


def test_blocks_show_the_rate_at_which_as_many_requests_are_slow_as_the_objective_allows() -> None:
    arm = ArmSoFar(blocks_around(9_000.0), P99)
    truth = 9_000.0 - math.log(100) / P99.seconds
    assert math.exp(arm.fit.capacity) == pytest.approx(truth, rel=0.005)
    without = NONE.copy()
    without[:3] = True
    assert math.exp(arm.without(without)) == pytest.approx(truth, rel=0.01)


def test_one_block_with_a_stall_hardly_moves_what_is_typical() -> None:
    quiet, stalled = (ArmSoFar(blocks_around(9_000.0, worse), P99).fit.capacity for worse in (0, 1))
    assert quiet - 0.03 < stalled < quiet


# ── the search ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sessions", [1, 8])
@pytest.mark.parametrize(
    ("plain", "encrypted"), [(10_000.0, 9_000.0), (10_000.0, 10_000.0), (10_000.0, 2_500.0), (9_000.0, 9_500.0)]
)
def test_it_finds_both_capacities_whatever_they_are(plain: float, encrypted: float, sessions: int) -> None:
    capacities = searched(
        {"plain": single_server(plain), "encrypted": single_server(encrypted)}, sessions, 30 if sessions == 1 else 16
    )
    result = capacities.finish("full", None, 10_000.0, 100.0)
    for arm, capacity in (("plain", plain), ("encrypted", encrypted)):
        truth = capacity - math.log(100) / P99.seconds
        assert result.arms[arm].kind == "within"
        assert result.arms[arm].rate == pytest.approx(truth, rel=0.01)
    assert result.ratio is not None
    assert result.reason == ""


def test_it_brackets_with_the_same_rate_in_both_arms_and_then_gives_each_its_own() -> None:
    capacities = searched({"plain": single_server(10_000.0), "encrypted": single_server(8_000.0)}, 8, 16)
    plain, encrypted = (capacities.arms[arm] for arm in ARMS)
    assert plain[0].rate == objective_search.START * 10_000
    for one, other in zip(plain, encrypted, strict=True):
        assert (one.rate == other.rate) is (one.phase == "curve")
    for session in range(1, 9):
        phases = [block.phase for block in plain if block.session == session]
        assert phases == sorted(phases, key=lambda phase: phase != "curve")
    assert all(
        sum(block.phase == "curve" for block in plain if block.session == session) <= 2 for session in range(2, 9)
    )
    rates = sorted(block.rate for block in plain if block.phase == "curve")
    assert rates[0] < 0.3 * 9_000 < 9_000 < rates[-1], "the curve goes from little load to too much"
    aimed = [block.rate for block in plain if block.phase == "objective"]
    truth = 10_000.0 - math.log(100) / P99.seconds
    assert all(0.9 < rate / truth < 1.1 for rate in aimed[4:])


def test_a_stall_in_the_first_block_does_not_end_the_search_far_below_the_capacity() -> None:
    """Half of the closed loop's rate seems too high. Nothing above it was tried, so the capacity was taken to be below it."""
    curve = single_server(10_000.0)
    truth = 10_000.0 - math.log(100) / P99.seconds
    for stalled in range(8):
        capacities = Capacities(P99)
        for block in range(30):
            step = Search(P99, {arm: capacities.arms[arm] for arm in ARMS}, 10_000.0, 100.0, True).next(1)
            assert step is not None
            for arm in ARMS:
                share = 0.02 if block == stalled else curve(step.rates[arm])
                capacities.arms[arm].append(
                    Tried(1, block, step.phase, step.rates[arm], 10_000 * share, 10_000.0, 0.5, 0.0, 0.0)
                )
        result = capacities.finish("quick", None, 10_000.0, 100.0)
        assert result.ratio is not None, stalled
        assert result.arms["plain"].rate == pytest.approx(truth, rel=0.03), stalled


def test_no_rate_that_keeps_it_is_a_reason_and_not_a_number() -> None:
    def never(rate: float) -> float:
        return 0.5

    result = searched({"plain": never, "encrypted": never}, 8).finish("full", None, 10_000.0, 100.0)
    assert {arm.kind for arm in result.arms.values()} == {"below"}
    assert (result.ratio, result.at_most, result.at_least) == (None, None, None)
    assert result.arms["plain"].high == 100
    assert result.reason.startswith("no rate keeps it: at 100 operations/s,")


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_one_arm_that_keeps_no_rate_gives_a_bound_and_no_number(mode: Mode) -> None:
    curves: dict[Arm, Curve] = {"plain": single_server(10_000.0), "encrypted": lambda rate: 0.5}
    result = searched(curves, 8 if mode == "full" else 1).finish(mode, None, 10_000.0, 100.0)
    assert result.ratio is None
    assert result.arms["encrypted"].kind == "below"
    assert result.at_most is not None
    assert result.at_most == pytest.approx(100 / 9_079, rel=0.1)
    assert result.at_least is None
    assert "encrypted arm keeps it at no rate" in result.reason


def test_rates_that_are_all_kept_are_a_reason_and_not_a_number() -> None:
    result = searched({"plain": lambda rate: 0.0, "encrypted": lambda rate: 0.0}).finish("quick", None, 10_000.0, 100.0)
    assert {arm.kind for arm in result.arms.values()} == {"above"}
    assert result.ratio is None
    assert result.reason.startswith("every rate keeps it, up to")


def test_operations_too_slow_for_the_quantile_are_a_reason_before_any_block() -> None:
    capacities = searched(
        {"plain": single_server(10_000.0), "encrypted": single_server(10_000.0)}, top=100.0, lowest=1_000.0
    )
    assert capacities.arms == {"plain": [], "encrypted": []}
    result = capacities.finish("quick", None, 100.0, 1_000.0)
    assert result.reason.startswith("p99 needs at least 1,000 operations/s")
    assert "the plain arm does 100;" in result.reason


def test_a_repeated_session_does_not_count() -> None:
    capacities = searched({"plain": single_server(10_000.0), "encrypted": single_server(9_000.0)}, 3, 16)
    capacities.drop(2)
    assert {block.session for block in capacities.arms["plain"]} == {1, 3}
    assert capacities.interval("full") is not None
    assert objective_capacity.METRIC == "rate_at_objective"
