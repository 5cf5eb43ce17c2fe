"""From slices to a cell's estimate: which slices count, the estimates, and the warnings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

import simulate
from ciphercost.estimate import statistics
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.latency_ratios import WHOLE_SESSIONS
from ciphercost.estimate.verdict import holm
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.errors import UsageError
from ciphercost.model.result import CellEstimate, Estimate
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Mode

Change = Callable[[SliceRecord], SliceRecord]
COST = float(np.log(0.9))


def unchanged(record: SliceRecord) -> SliceRecord:
    return record


def run(
    sessions: int = 8,
    blocks: int = 6,
    *,
    effect: float = COST,
    sd: float = 0.01,
    debt: float = 0.0,
    latency_blocks: int = 0,
    change: Change = unchanged,
    seed: int = 1,
) -> list[SliceRecord]:
    """The record of a simulated cell. `change` is applied to every slice."""
    random = np.random.default_rng(seed)
    records: list[SliceRecord] = []
    for session in range(1, sessions + 1):
        simulated = simulate.experiment(
            random, lambda r, n, s: simulate.white(r, n, s, sd), 1, blocks, effect=effect, debt=debt
        )
        records += simulate.records(simulated.rates[0], simulated.signs[0], session=session)
        if latency_blocks:
            simulated = simulate.experiment(random, simulate.white, 1, latency_blocks)
            slices = simulate.records(
                simulated.rates[0], simulated.signs[0], session=session, first=blocks, phase="latency"
            )
            records += [with_latency(record, random) for record in slices]
    return [change(record) for record in records]


def with_latency(record: SliceRecord, random: np.random.Generator, operations: int = 2600) -> SliceRecord:
    """The slice with `operations` requests around 100 µs, 10 % longer in the encrypted arm."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    scale = 110_000 if record.arm == "encrypted" else 100_000
    for value, count in zip(
        *np.unique(scale * random.lognormal(0, 0.2, operations).round(2), return_counts=True), strict=True
    ):
        histogram.record_value(int(value), int(count))
    return agent(record, operations=operations, rows=operations, histogram=histogram.encode().decode())


def agent(record: SliceRecord, **values: Any) -> SliceRecord:
    assert record.agent is not None
    return msgspec.structs.replace(record, agent=msgspec.structs.replace(record.agent, **values))


def counters(record: SliceRecord, **values: Any) -> SliceRecord:
    assert record.counters is not None
    return msgspec.structs.replace(record, counters=msgspec.structs.replace(record.counters, **values))


def estimator(records: Iterable[SliceRecord], **options: Any) -> CellEstimator:
    cell_estimator = CellEstimator(**options)
    for record in records:
        cell_estimator.add(record)
    return cell_estimator


def finish(records: Iterable[SliceRecord], mode: Mode = "full", margin: float = 0.01) -> CellEstimate:
    return estimator(records).finish(mode, margin)


def codes(estimate: CellEstimate) -> set[str]:
    return {warning.code for warning in estimate.warnings}


# ── throughput ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_run_has_sessions_as_its_unit() -> None:
    estimate = finish(run())
    throughput = estimate.overhead["throughput"]
    assert throughput.ratio == pytest.approx(0.9, abs=0.005)
    assert throughput.low < 0.9 < throughput.high
    assert (throughput.n, throughput.method) == (8, "t over 8 sessions")
    assert throughput.ratio_of_totals == pytest.approx(0.9, abs=0.005)
    assert (estimate.verdict, estimate.sessions, estimate.blocks) == ("differs", 8, 48)
    assert codes(estimate) == set()


def test_the_headline_is_the_mean_of_session_values_not_of_blocks() -> None:
    # One session has ten times as many blocks as the other, and a different cost.
    records = run(1, 40, effect=0.0, sd=1e-9) + [
        msgspec.structs.replace(record, session=2) for record in run(1, 4, effect=-0.2, sd=1e-9)
    ]
    assert np.log(finish(records).overhead["throughput"].ratio) == pytest.approx(-0.1, abs=1e-6)


def test_a_quick_run_has_blocks_as_its_unit_and_holds_for_its_server_pair_only() -> None:
    estimate = finish(run(1, 30), "quick")
    throughput = estimate.overhead["throughput"]
    assert throughput.n == 30
    assert throughput.method.endswith("this server pair only")
    assert throughput.low < 0.9 < throughput.high


def test_a_full_run_of_one_session_falls_back_with_a_warning() -> None:
    estimate = finish(run(1, 30))
    assert estimate.overhead["throughput"].method.endswith("this server pair only")
    assert "one-session" in codes(estimate)
    assert "few-sessions" in codes(finish(run(3)))


@pytest.mark.parametrize("mode", ["full", "quick"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), effect=st.floats(-0.5, 0.5))
def test_swapping_the_arms_inverts_every_ratio(mode: Mode, seed: int, effect: float) -> None:
    def swap(record: SliceRecord) -> SliceRecord:
        other = "plain" if record.arm == "encrypted" else "encrypted"
        order = "BAAB" if record.order == "ABBA" else "ABBA"
        return agent(msgspec.structs.replace(record, arm=other, order=order), arm=other)

    records = run(3, 5, effect=effect, seed=seed)
    one, two = finish(records, mode), finish([swap(record) for record in records], mode)
    assert one.verdict == two.verdict
    assert set(one.overhead) == set(two.overhead)
    for name, straight in one.overhead.items():
        turned = two.overhead[name]
        assert straight.low <= straight.ratio <= straight.high
        assert [1 / turned.ratio, 1 / turned.high, 1 / turned.low] == pytest.approx(
            [straight.ratio, straight.low, straight.high]
        )
        assert turned.p_value == pytest.approx(straight.p_value)


def test_the_live_interval_is_the_final_one() -> None:
    cell_estimator = estimator(run())
    live, end = cell_estimator.throughput_interval("full"), cell_estimator.finish("full").overhead["throughput"]
    assert live is not None
    assert (live.ratio, live.low, live.high) == (end.ratio, end.low, end.high)
    assert estimator(run(1, 1)).throughput_interval("quick") is None
    assert CellEstimator().throughput_interval("full") is None


def test_precision_stops_a_run_only_with_enough_blocks_and_sessions() -> None:
    assert not estimator(run(1, 19)).precise(0.5, "quick")
    assert estimator(run(1, 20)).precise(0.5, "quick")
    assert not estimator(run(15, 4)).precise(0.5, "full")
    assert estimator(run(16, 3)).precise(0.5, "full")
    assert not estimator(run(16, 3)).precise(1e-6, "full")


def test_a_run_that_may_stop_on_precision_gains_no_degrees_of_freedom_after_eight_sessions() -> None:
    records = run(16)
    free, paid = (estimator(records, sequential=on).finish("full").overhead["throughput"] for on in (False, True))
    assert paid.ratio == free.ratio
    assert paid.high / paid.low > free.high / free.low
    assert "stopped on precision" in paid.method


# ── verdict ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("effect", "sd", "verdict"),
    [(COST, 0.01, "differs"), (0.0, 0.002, "equivalent"), (0.003, 0.001, "equivalent"), (-0.01, 0.2, "unresolved")],
)
def test_the_verdict_has_three_values(effect: float, sd: float, verdict: Verdict) -> None:
    estimate = finish(run(effect=effect, sd=sd))
    assert estimate.verdict == verdict
    assert estimate.smallest_effect is not None
    assert (estimate.sessions_needed is not None) == (verdict == "unresolved")


def test_the_verdict_depends_on_the_margin() -> None:
    records = run(effect=-0.03, sd=0.005)
    assert finish(records, margin=0.01).verdict == "differs"
    assert finish(records, margin=0.05).verdict == "equivalent"


def test_an_unresolved_cell_needs_more_sessions_than_it_had() -> None:
    estimate = finish(run(effect=0.005, sd=0.05, seed=2))
    assert estimate.verdict == "unresolved"
    assert estimate.sessions_needed is not None
    assert estimate.sessions_needed > 8


def cell(p_value: float, verdict: Verdict) -> CellEstimate:
    return CellEstimate(verdict, 8, 48, {"throughput": Estimate(0.99, 0.98, 1.0, p_value=p_value)}, {}, [])


def test_among_several_cells_a_weak_difference_becomes_unresolved() -> None:
    corrected = holm([cell(0.001, "differs"), cell(0.03, "differs"), cell(0.9, "equivalent"), cell(0.04, "differs")])
    assert [estimate.verdict for estimate in corrected] == ["differs", "unresolved", "equivalent", "unresolved"]
    assert corrected[0].overhead["throughput"].p_value == pytest.approx(0.004)
    able = msgspec.structs.replace(cell(0.03, "differs"), smallest_effect=0.058)
    weak, strong = holm([able, able, msgspec.structs.replace(able, overhead=cell(1e-4, "differs").overhead)])[1:]
    assert (weak.verdict, weak.smallest_effect) == ("unresolved", None), "the uncorrected effect must not be stated"
    assert (strong.verdict, strong.smallest_effect) == ("differs", 0.058)
    assert holm([]) == []
    alone = cell(0.04, "differs")
    assert holm([alone]) == [alone]


def test_cells_without_an_interval_do_not_count_in_holm() -> None:
    empty = CellEstimate("unresolved", 1, 1, {}, {}, [])
    assert holm([empty, cell(0.04, "differs")])[1].verdict == "differs"


# ── what counts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_complete_blocks_of_good_slices_count() -> None:
    def break_one(record: SliceRecord) -> SliceRecord:
        here = (record.session, record.block)
        if here == (1, 2) and record.position == 3:
            return msgspec.structs.replace(record, agent=None, counters=None, error="connection lost")
        if here == (1, 4) and record.position == 0:
            return msgspec.structs.replace(record, agent=None, error="a lead-in that failed spoils its block")
        if here == (2, 1) and record.position == 2:
            return agent(record, operations=0)
        return record

    estimate = finish(run(change=break_one))
    assert estimate.blocks == 45
    (warning,) = (warning for warning in estimate.warnings if warning.code == "failed-slices")
    # Slices that failed and all slices, of the encrypted and of the plain arm; blocks that are left out.
    assert numbers(warning.text)[:5] == [3, 123, 0, 117, 3]


def test_a_killed_run_loses_only_its_last_block() -> None:
    records = run(2, 5)
    assert finish(records[:-1]).blocks == 9
    assert finish(records[:-1]).overhead["throughput"].ratio == pytest.approx(0.9, abs=0.02)


def test_blocks_that_do_not_mirror_their_order_do_not_count() -> None:
    def scramble(record: SliceRecord) -> SliceRecord:
        return msgspec.structs.replace(record, arm="plain") if record.block == 0 else record

    assert finish(run(2, 5, change=scramble)).blocks == 8


def test_pilot_warmup_and_lead_ins_never_reach_the_estimate() -> None:
    def spoil(record: SliceRecord) -> SliceRecord:
        return agent(record, operations=1) if record.position == 0 else record

    extra = [msgspec.structs.replace(record, phase="warmup") for record in run(1, 3, effect=2.0)]
    assert finish(extra + run(change=spoil)).overhead == finish(run()).overhead


def test_void_sessions_leave_no_trace() -> None:
    bad = [msgspec.structs.replace(record, session=99) for record in run(1, 6, effect=1.0, latency_blocks=2)]
    good = run(latency_blocks=2)
    expected = finish(good)
    assert estimator(bad + good, void_sessions=[99]).finish("full") == expected
    late = estimator(good + bad)
    late.void(99)
    assert late.finish("full") == expected


def test_without_a_complete_block_there_is_no_estimate() -> None:
    assert CellEstimator().blocks == 0
    with pytest.raises(UsageError, match="--time"):
        finish(run(1, 1)[:4])


def test_with_one_block_there_is_no_interval_and_no_verdict() -> None:
    estimate = finish(run(1, 1), "quick")
    assert estimate.overhead == {}
    assert estimate.verdict == "unresolved"
    assert estimate.arms["plain"]["throughput"] == pytest.approx(10_000, rel=0.05)


def test_the_plain_arms_capacity_is_known_after_the_warm_up() -> None:
    records = run(1, 3, effect=-1.0, sd=0.001)
    warmup = [msgspec.structs.replace(record, phase="warmup") for record in records]
    assert CellEstimator().plain_capacity() == 0
    assert estimator(warmup).plain_capacity() == pytest.approx(10_000, rel=0.01)
    assert estimator(records).plain_capacity() == pytest.approx(10_000, rel=0.01)


# ── beside throughput ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_costs_per_operation_are_ratios_of_totals() -> None:
    records = run()
    estimate = finish(records)
    totals = {arm: [0.0, 0.0] for arm in ARMS}
    for record in records:
        if record.position and record.agent and record.counters:
            totals[record.arm][0] += record.counters.server_cpu_ns
            totals[record.arm][1] += record.agent.operations
    plain, encrypted = (totals[arm][0] / totals[arm][1] for arm in ARMS)
    server = estimate.overhead["server_cpu_per_op"]
    assert server.ratio == pytest.approx(encrypted / plain)
    assert server.low < 1 / 0.9 < server.high
    assert estimate.overhead["client_cpu_per_op"].ratio == pytest.approx(server.ratio)
    wire = estimate.overhead["wire_bytes_per_op"]
    assert (wire.ratio, wire.low, wire.high, wire.p_value) == pytest.approx((1.3, 1.3, 1.3, 0.0))
    assert estimate.overhead["segments_per_op"].p_value == 1.0
    assert estimate.overhead["memory"].ratio == pytest.approx(1.0)


def test_what_was_not_measured_has_no_ratio() -> None:
    estimate = finish(run(change=lambda record: msgspec.structs.replace(record, counters=None)))
    assert not {"server_cpu_per_op", "disk_bytes_per_op", "memory"} & set(estimate.overhead)
    assert "client_cpu_per_op" in estimate.overhead
    assert "server_cpu_us_per_op" not in estimate.arms["plain"]
    assert "host" not in estimate.arms["plain"]


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_a_ratio_of_totals_covers_the_truth(mode: Mode) -> None:
    covered = []
    for seed in range(150):
        server = finish(run(8 if mode == "full" else 1, 3 if mode == "full" else 24, seed=seed), mode)
        estimate = server.overhead["server_cpu_per_op"]
        covered.append(estimate.low <= 1 / 0.9 <= estimate.high)
    assert np.mean(covered) >= 0.9


def test_arms_carry_totals_figures_per_operation_and_host_counters() -> None:
    def busy(record: SliceRecord) -> SliceRecord:
        return counters(
            record, host_user=0.2 if record.position in (1, 3) else 0.4, network_bytes=800_000, disk_queue=1.5
        )

    plain = finish(run(change=busy)).arms["plain"]
    assert plain["slices"] == 96
    assert plain["operations"] == pytest.approx(96 * 4000, rel=0.01)
    assert plain["throughput"] == pytest.approx(10_000, rel=0.01)
    assert plain["server_cpu_us_per_op"] == pytest.approx(20, rel=0.01)
    assert plain["server_user_us_per_op"] + plain["server_system_us_per_op"] == pytest.approx(
        plain["server_cpu_us_per_op"]
    )
    assert plain["client_cpu_us_per_op"] == pytest.approx(20, rel=0.01)
    assert (plain["wire_bytes_per_op"], plain["segments_per_op"], plain["rows_per_op"]) == (100, 2, 1)
    assert plain["memory_bytes"] == 100_000_000
    assert plain["host"]["user"] == pytest.approx({"mean": 30.0, "variance": 100 * 96 / 95, "cv": (96 / 95) ** 0.5 / 3})
    assert plain["host"]["network_bytes_per_s"]["mean"] == pytest.approx(2_000_000)
    assert plain["host"]["disk_queue"] == {"mean": 1.5, "variance": 0.0, "cv": 0.0}


# ── latency ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_latency_quantiles_are_compared_where_requests_suffice() -> None:
    estimate = finish(run(4, 3, latency_blocks=2))
    for name in ("latency_p50", "latency_p90", "latency_p99"):
        assert estimate.overhead[name].ratio == pytest.approx(1.1, rel=0.03)
        assert estimate.overhead[name].ratio_of_totals == pytest.approx(1.1, rel=0.03)
        assert estimate.overhead[name].n == 4
    assert "latency_p99.9" not in estimate.overhead
    assert estimate.overhead["throughput"].ratio == pytest.approx(0.9, abs=0.02)
    assert estimate.arms["plain"]["latency_ms"]["p50"] == pytest.approx(0.1, rel=0.02)
    assert estimate.arms["encrypted"]["latency_requests"] == 4 * 2 * 2 * 2600


def test_a_quantile_with_too_few_requests_is_not_printed_and_the_warning_gives_the_number_needed() -> None:
    random = np.random.default_rng(1)

    def few(record: SliceRecord) -> SliceRecord:
        return with_latency(record, random, 270) if record.phase == "latency" else record

    estimate = finish(run(2, 3, latency_blocks=1, change=few))
    assert "latency_p90" in estimate.overhead
    assert "latency_p99" not in estimate.overhead
    assert "p99" not in estimate.arms["plain"]["latency_ms"]
    (warning,) = (warning for warning in estimate.warnings if warning.code == "no-latency-quantile")
    assert "p99" in warning.text
    assert {5000, 1000} <= set(numbers(warning.text)), "requests per block, and per session"
    (warning,) = (warning for warning in finish(run(1, 25, latency_blocks=20, change=few), "quick").warnings)
    assert warning.code == "no-latency-quantile"
    assert 5000 in numbers(warning.text)
    assert 1000 not in numbers(warning.text), "one session has no interval over sessions"


# ── quantiles of whole sessions ───────────────────────────────────────────────────────────────────────────────────────


def with_requests(operations: int, sessions: int = 8, blocks: int = 4, seed: int = 1) -> list[SliceRecord]:
    """An open loop of sessions with this many requests per slice, around 100 µs, 10 % longer in the encrypted arm."""
    random = np.random.default_rng(seed)
    records: list[SliceRecord] = []
    for session in range(1, sessions + 1):
        simulated = simulate.experiment(random, simulate.white, 1, blocks)
        slices = simulate.records(simulated.rates[0], simulated.signs[0], session=session, phase="latency")
        records += [with_latency(record, random, operations) for record in slices]
    return records


def test_p99_uses_whole_sessions_if_blocks_have_too_few_requests() -> None:
    p99 = finish(with_requests(300)).overhead["latency_p99"]
    assert p99.method == f"t over 8 sessions; {WHOLE_SESSIONS}"
    assert p99.n == 8
    assert p99.low < 1.1 < p99.high
    assert p99.ratio == pytest.approx(1.1, rel=0.05)
    assert p99.ratio_of_totals == pytest.approx(1.1, rel=0.05)
    described = finish(with_requests(300)).arms
    assert described["encrypted"]["latency_ms"]["p99"] > described["plain"]["latency_ms"]["p99"]


def test_blocks_with_enough_requests_keep_their_own_quantiles() -> None:
    assert "together" not in finish(with_requests(2600, 2)).overhead["latency_p99"].method
    assert "together" not in finish(with_requests(300)).overhead["latency_p50"].method


def test_one_session_has_no_quantile_of_sessions() -> None:
    assert "latency_p99" not in finish(with_requests(300, 1)).overhead
    assert "latency_p99" not in finish(with_requests(300, 8), "quick").overhead


@pytest.mark.parametrize(("operations", "sessions", "there"), [(125, 8, True), (124, 8, False), (125, 4, False)])
def test_ten_requests_of_each_session_and_fifty_of_all_must_lie_beyond_a_quantile(
    operations: int, sessions: int, there: bool
) -> None:
    # Four blocks with two slices per arm: 8 times the operations of a slice.
    assert ("latency_p99" in finish(with_requests(operations, sessions)).overhead) is there


@settings(max_examples=15)
@given(st.integers(0, 1000), st.permutations(range(1, 9)))
def test_a_quantile_of_sessions_does_not_depend_on_which_session_was_which(seed: int, numbers: list[int]) -> None:
    records = with_requests(130, 8, seed=seed)
    renamed = [msgspec.structs.replace(record, session=numbers[record.session - 1]) for record in records]
    one, other = (finish(slices).overhead["latency_p99"] for slices in (records, renamed))
    assert other.ratio == pytest.approx(one.ratio)
    assert [other.low, other.high] == pytest.approx([one.low, one.high])


@pytest.mark.parametrize("kind", ["log-normal", "Pareto", "stalls"])
def test_intervals_of_session_quantiles_keep_their_coverage(kind: str) -> None:
    # Ten requests beyond p99 in each of eight sessions, the fewest allowed; the encrypted arm is 10 % slower with a different tail.
    random = np.random.default_rng(5)

    def draw(n: int, encrypted: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
        if kind == "log-normal":
            latencies = random.lognormal(0, 0.6, (8, n))
        elif kind == "Pareto":
            latencies = (1 - random.random((8, n))) ** (-1 / 1.5)
        else:
            latencies = np.where(
                random.random((8, n)) < 0.02, 5 + 10 * random.random((8, n)), random.lognormal(0, 0.4, (8, n))
            )
        tail = np.where(random.random((8, n)) < 0.02, 2.0, 1.0) if encrypted else 1.0
        return latencies * tail * (1.1 if encrypted else 1.0)

    def p99(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        log_p99: np.ndarray[Any, np.dtype[np.float64]] = np.log(np.quantile(values, 0.99, axis=1))
        return log_p99

    true = float(np.mean(p99(draw(400_000, True)) - p99(draw(400_000, False))))
    runs = 600
    held = 0
    for _ in range(runs):
        low, high = statistics.session_interval(p99(draw(1000, True)) - p99(draw(1000, False))).bounds()
        held += low <= true <= high
    assert held / runs > 0.925, "95 % less three standard errors of the simulation"


# ── the open loop's rate ──────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=10)
@given(st.floats(-2.0, 0.2))
def test_the_open_loop_stays_below_the_capacity_of_both_arms(effect: float) -> None:
    cell_estimator = estimator(run(2, 4, effect=effect, sd=1e-6))
    plain = cell_estimator.plain_capacity()
    assert cell_estimator.open_loop_rate() == pytest.approx(plain * min(0.6, 0.75 * np.exp(effect)), rel=1e-3)
    assert estimator([]).open_loop_rate(1000) == pytest.approx(600)


def test_the_open_loop_leaves_connections_for_clients_that_do_not_think() -> None:
    empty = estimator([])
    assert empty.open_loop_rate(1000, clients=40, think_s=4.0) == pytest.approx(8)
    assert empty.open_loop_rate(1000, clients=4000, think_s=0.5) == pytest.approx(600)
    assert empty.open_loop_rate(1000, clients=4, think_s=0.0) == pytest.approx(600)


# ── bytes and CPU at rest ─────────────────────────────────────────────────────────────────────────────────────────────


def test_disk_bytes_and_machine_cpu_have_their_own_intervals() -> None:
    def rest(record: SliceRecord) -> SliceRecord:
        assert record.agent is not None
        work, more = record.agent.done, 2 if record.arm == "encrypted" else 1
        return counters(
            record,
            server_cpu_ns=round(1000 * work),
            foreign_cpu=more * work * 1000 / 4e8,
            window_ns=400_000_000,
            server_write_bytes=round(3 * more * work),
            server_read_bytes=round(work),
        )

    estimate = finish(run(4, 5, change=rest))
    assert estimate.overhead["disk_written_per_op"].ratio == pytest.approx(2, rel=1e-3)
    assert estimate.overhead["disk_read_per_op"].ratio == pytest.approx(1, rel=1e-3)
    assert estimate.overhead["disk_bytes_per_op"].ratio == pytest.approx(7 / 4, rel=1e-3)
    assert estimate.overhead["server_cpu_per_op"].ratio == pytest.approx(1, rel=1e-3)
    assert estimate.overhead["machine_cpu_per_op"].ratio == pytest.approx(3 / 2, rel=1e-3)
    assert estimate.arms["encrypted"]["machine_cpu_us_per_op"] == pytest.approx(3, rel=1e-3)


def test_the_machine_cpu_of_an_embedded_database_is_the_agents() -> None:
    def embedded(record: SliceRecord) -> SliceRecord:
        assert record.agent is not None
        work, more = record.agent.done, 2 if record.arm == "encrypted" else 1
        agent_slice = msgspec.structs.replace(record.agent, cpu_user_ns=round(3000 * more * work), cpu_system_ns=0)
        seen = counters(record, server_cpu_ns=0, foreign_cpu=work * 1000 / 4e8, window_ns=400_000_000)
        return msgspec.structs.replace(seen, agent=agent_slice)

    estimate = finish(run(4, 5, change=embedded))
    assert estimate.overhead["machine_cpu_per_op"].ratio == pytest.approx(7 / 4, rel=0.02)
    assert estimate.arms["plain"]["machine_cpu_us_per_op"] == pytest.approx(4, rel=0.02)


def test_the_verdict_of_a_latency_only_cell_is_about_its_median() -> None:
    records = [record for record in run(4, 1, latency_blocks=3) if record.phase == "latency"]
    estimate = finish(records)
    assert "throughput" not in estimate.overhead
    assert estimate.verdict == "differs"
    assert estimate.blocks == 12
    assert estimator(records).blocks == 12
    alone = estimate.overhead["latency_p50"].p_value
    assert alone
    assert holm([estimate, estimate])[0].overhead["latency_p50"].p_value == pytest.approx(2 * alone)


def test_histograms_of_the_closed_loop_are_decoded_for_waits_alone() -> None:
    assert not any(name.startswith("latency") for name in finish(run()).overhead)
    with pytest.raises(UsageError, match=r"session 1, block 0: .*HdrHistogram"):
        finish(run(change=lambda record: agent(record, histogram="not one")))


def test_a_damaged_histogram_is_reported_with_its_place() -> None:
    def damage(record: SliceRecord) -> SliceRecord:
        return agent(record, histogram="HISTF") if record.phase == "latency" else record

    with pytest.raises(UsageError, match="session 1, block 3"):
        finish(run(2, 3, latency_blocks=1, change=damage))


# ── warnings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mark(name: str) -> Change:
    return lambda record: msgspec.structs.replace(record, marks=[name]) if record.position == 2 else record


@pytest.mark.parametrize("name", ["client-bound", "steal", "foreign-cpu"])
def test_marked_slices_are_counted(name: str) -> None:
    estimate = finish(run(change=mark(name)))
    (warning,) = estimate.warnings
    assert warning.code == name
    assert "48 of 192 slices" in warning.text


def test_failed_operations_are_counted() -> None:
    estimate = finish(run(change=lambda record: agent(record, errors=1)))
    assert numbers(warning_of(estimate, "errors"))[0] == 240
    assert "first_error" in warning_of(estimate, "errors")
    assert all(estimate.arms[arm]["error_kinds"] == {} for arm in ARMS), "an agent that does not report them"


def numbers(text: str) -> list[int]:
    """Whole numbers of a text, in order."""
    return [int(number.replace(",", "")) for number in re.findall(r"(?<![\w.])\d[\d,]*(?![\w.])", text)]


def warning_of(estimate: CellEstimate, code: str) -> str:
    return next(warning.text for warning in estimate.warnings if warning.code == code)


def test_failed_operations_are_counted_by_kind() -> None:
    def change(record: SliceRecord) -> SliceRecord:
        if record.arm == "plain":
            return agent(record, errors=3, error_kinds="status-404=2 closed-early=1")
        return agent(record, errors=1, error_kinds="status-404=1")

    records = list(run(change=change))
    estimate = finish(records)
    # Only of counted slices, like `errors`; the warning includes lead-ins.
    assert {arm: estimate.arms[arm]["error_kinds"] for arm in ARMS} == {
        "plain": {"status-404": 192, "closed-early": 96},
        "encrypted": {"status-404": 96},
    }
    assert all(sum(estimate.arms[arm]["error_kinds"].values()) == estimate.arms[arm]["errors"] for arm in ARMS)
    kinds = re.search(r"\((\d+) × HTTP status 404, (\d+) × connection closed early\)", warning_of(estimate, "errors"))
    assert kinds is not None
    errors = sum(record.agent.errors for record in records if record.agent is not None)
    assert sum(map(int, kinds.groups())) == errors
    cell_estimator = estimator(records)
    for session in range(2, 9):
        cell_estimator.void(session)
    assert cell_estimator.finish("full").arms["encrypted"]["error_kinds"] == {"status-404": 12}


@pytest.mark.parametrize("text", ["status-404", "=3", "a=b", "a=1,b=2"])
def test_damaged_error_kinds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="error_kinds"):
        finish(run(change=lambda record: agent(record, errors=1, error_kinds=text)))


def test_carry_over_is_reported() -> None:
    estimate = finish(run(debt=0.02))
    assert estimate.carryover["lambda"] == pytest.approx(-0.02, abs=0.005)
    assert "carry-over" in codes(estimate)
    cell_estimator = estimator(run(1, 12, debt=0.02))
    assert cell_estimator.carryover(1).significant
    assert not estimator(run(1, 12)).carryover(1).significant


def test_arms_that_return_different_rows_are_reported() -> None:
    def one_more(record: SliceRecord) -> SliceRecord:
        more = record.arm == "encrypted" and record.agent is not None
        return agent(record, rows=record.agent.rows + 1) if more and record.agent else record

    different = finish(run(change=one_more))
    assert "rows-differ" in codes(different)
    assert "--time" not in next(warning.text for warning in different.warnings if warning.code == "rows-differ")
    # Of the operations of one arm, only the short ones end within a slice.
    cut = {"plain": {"operations": 80, "rows": 9600}, "encrypted": {"operations": 1, "rows": 0}}
    long = finish(run(change=lambda record: agent(record, **cut[record.arm])))
    assert 1 in numbers(warning_of(long, "rows-differ"))
    # If operations are slow, none ends in some blocks.
    slow = run(change=lambda record: agent(record, rows=16, operations=record.block % 2, work=0.7))
    assert "rows-differ" not in codes(finish(slow))
    random = np.random.default_rng(5)
    drawn = run(change=lambda record: agent(record, rows=4000 + int(random.integers(-50, 50)), operations=4000))
    assert "rows-differ" not in codes(finish(drawn))


def test_stalls_of_one_arm_that_the_robust_estimate_hides_are_reported() -> None:
    def stall(record: SliceRecord) -> SliceRecord:
        stalled = record.arm == "encrypted" and record.block == 2 and record.position in (2, 3)
        return agent(record, seconds=4.0) if stalled else record

    estimate = finish(run(8, 12, effect=0.0, sd=0.002, change=stall))
    assert estimate.overhead["throughput"].ratio == pytest.approx(1.0, abs=0.01)
    assert "totals-disagree" in codes(estimate)
    assert "totals-disagree" not in codes(finish(run(8, 12, effect=0.0, sd=0.002)))


def test_few_blocks_and_late_requests_are_reported() -> None:
    assert "few-blocks" in codes(finish(run(1, 10), "quick"))
    assert "few-blocks" not in codes(finish(run(1, 30), "quick"))
    late = run(2, 3, latency_blocks=2, change=lambda record: agent(record, late=500))
    assert "late" in codes(finish(late))


def test_every_warning_suggests_what_to_try() -> None:
    records = run(1, 3, debt=0.5, latency_blocks=1, change=mark("client-bound"))
    warnings = finish(records).warnings
    assert {"client-bound", "one-session", "few-blocks", "carry-over"} <= {warning.code for warning in warnings}
    for warning in warnings:
        assert "--" in warning.text or "slices.jsonl" in warning.text


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

MEASURE = """
import pathlib, sys, time
import msgspec
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.model.slices import SliceRecord
decoder, estimator = msgspec.json.Decoder(SliceRecord), CellEstimator()
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        estimator.add(decoder.decode(line))
estimate = estimator.finish(sys.argv[2], 0.01)
# Not ru_maxrss: that remembers the size of the process that started this one.
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(estimate.blocks, time.process_time(), int(status["VmHWM"].split()[0]) / 1024)
"""


def lines() -> Iterator[bytes]:
    """100,000 slices in eight sessions, a quarter of them in the open loop, each with a histogram of 4000 requests."""
    random = np.random.default_rng(1)
    encode = msgspec.json.Encoder().encode
    sample = [with_latency(record, random, 4000) for record in run(1, 4)]
    texts = {arm: [r.agent.histogram for r in sample if r.arm == arm and r.agent] for arm in ARMS}
    for session in range(1, 9):
        simulated = simulate.experiment(random, simulate.white, 1, 2500, effect=COST)
        for record in simulate.records(simulated.rates[0], simulated.signs[0], session=session):
            text = texts[record.arm][record.block % 8]
            phase = "latency" if record.block >= 1875 else "capacity"
            yield encode(msgspec.structs.replace(agent(record, operations=4000, histogram=text), phase=phase))


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_a_hundred_thousand_slices_take_two_hundred_megabytes(
    mode: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    """Their time is a row of `benchmarks/controller.py`: it depends on the machine."""
    path = tmp_path_factory.getbasetemp() / "slices.jsonl"
    if not path.exists():
        path.write_bytes(b"\n".join(lines()))
    command = [sys.executable, "-c", MEASURE, str(path), mode]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path.cwd())
    blocks, seconds, megabytes = map(float, answer.stdout.split())
    record_property("seconds", seconds)
    record_property("megabytes", megabytes)
    print(f"\n100,000 slices, {mode}: {seconds:.1f} s of CPU, {megabytes:.0f} MB (bar: 200 MB)", end="")
    assert blocks == 15_000
    assert megabytes <= 200
