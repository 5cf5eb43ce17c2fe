"""Stalls of one arm: the ratio of totals prevents equivalence and passing, warnings are calibrated, and levels agree with ratios."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from functools import cache
from html import unescape

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

import simulate
from ciphercost.estimate import levels, notation, statistics, storage, totals
from ciphercost.estimate.cost_ratios import ratio_of_totals, throughput_differs
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.latency_ratios import Pooled
from ciphercost.estimate.levels import LEVELS
from ciphercost.estimate.tally import COLUMN
from ciphercost.model.result import Cell, CellEstimate, Estimate
from ciphercost.model.slices import SliceRecord, StorageSlice
from ciphercost.model.spec import ARMS, Mode
from ciphercost.model.study import StudyRun
from ciphercost.report import advice, comparison, cost_gate, formats
from ciphercost.report.comparison_types import Run
from ciphercost.report.words import figure_text, verdict_text
from ciphercost.studies.column_functions import measured
from ciphercost.studies.jdbc_tls import measured as jdbc
from ciphercost.studies.jdbc_tls.setups import Setup
from results import cell, result
from simulate import Blocks, Noise

# ── runs in which the encrypted arm stalls ────────────────────────────────────────────────────────────────────────────


def recorded(blocks: Blocks, row: int, sessions: int) -> CellEstimator:
    """One simulated run through the estimator."""
    estimator = CellEstimator()
    rates, signs = np.split(blocks.rates[row], sessions), np.split(blocks.signs[row], sessions)
    for session, (quads, orders) in enumerate(zip(rates, signs, strict=True), start=1):
        for record in simulate.records(quads, orders, session=session):
            estimator.add(record)
    return estimator


def stalling_runs(sessions: int, blocks: int, share: float, runs: int) -> list[CellEstimate]:
    random = np.random.default_rng([40, sessions])
    simulated = simulate.stalling(random, simulate.experiment(random, simulate.white, runs, sessions * blocks), share)
    mode: Mode = "full" if sessions > 1 else "quick"
    return [recorded(simulated, row, sessions).finish(mode) for row in range(runs)]


def stated(estimate: CellEstimate) -> Estimate:
    return estimate.overhead["throughput"]


def shares(estimates: list[CellEstimate]) -> tuple[float, float, float]:
    """Shares of runs that are equivalent, pass a gate of 1 %, and warn of stalls in one arm."""
    return (
        float(np.mean([estimate.verdict == "equivalent" for estimate in estimates])),
        float(np.mean([cost_gate.passed("throughput", stated(estimate), 0.01) == "pass" for estimate in estimates])),
        float(
            np.mean(
                [bool({"stalls", "totals-disagree"} & {w.code for w in estimate.warnings}) for estimate in estimates]
            )
        ),
    )


def test_a_full_run_with_stalls_in_one_arm_is_neither_equivalent_nor_within_the_budget() -> None:
    estimates = stalling_runs(8, 12, 0.02, 60)
    # The typical block of nearly all has a cost of less than 1 %.
    assert np.mean([stated(estimate).ratio > 0.99 for estimate in estimates]) > 0.9
    equivalent, passes, warns = shares(estimates)
    # In 2 % of runs none of 192 slices stalls, so there is nothing to detect.
    assert equivalent <= 0.07
    assert passes <= 0.07
    assert warns >= 0.93


def test_a_quick_run_reports_every_stall_of_one_arm_and_is_then_never_equivalent() -> None:
    estimates = stalling_runs(1, 20, 0.02, 100)
    seen = [
        estimate
        for estimate in estimates
        if estimate.arms["encrypted"]["operations"] < 0.985 * estimate.arms["plain"]["operations"]
    ]
    assert len(seen) > 40
    assert shares(seen) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_equal_arms_without_stalls_are_still_equivalent(mode: Mode) -> None:
    estimates = stalling_runs(8, 12, 0.0, 40) if mode == "full" else stalling_runs(1, 25, 0.0, 100)
    equivalent, _, warns = shares(estimates)
    assert equivalent >= 0.99
    assert warns == 0


def test_a_verdict_left_open_by_the_totals_is_explained() -> None:
    estimate = next(estimate for estimate in stalling_runs(8, 12, 0.02, 5) if estimate.totals_open)
    assert estimate.verdict == "unresolved"
    assert (estimate.smallest_effect or 0) > 0.01, "the smallest effect in the totals, not in the typical block"
    undecided = cell(
        overhead=estimate.overhead, arms=estimate.arms, verdict=estimate.verdict, totals_open=True, warnings=[]
    )
    assert verdict_text.TOTALS_OPEN in verdict_text.verdict(undecided)
    assert verdict_text.TOTALS_OPEN in verdict_text.answer(result(undecided))


# ── the gate, advice, two runs ────────────────────────────────────────────────────────────────────────────────────────


def hiding(low: float, high: float) -> Cell:
    """No cost in the typical block, but this cost in all slices together."""
    middle = (low + high) / 2
    estimate = Estimate(1.0, 0.998, 1.002, ratio_of_totals=middle, totals_low=low, totals_high=high, p_value=0.9)
    return cell(overhead={"throughput": estimate}, status="ok")


@pytest.mark.parametrize(
    ("low", "high", "outcome", "status"),
    [(0.998, 1.003, "pass", 0), (0.97, 0.999, "unresolved", 4), (0.95, 0.98, "fail", 3)],
)
def test_gate_and_advice_take_the_worse_of_both_ratios(low: float, high: float, outcome: str, status: int) -> None:
    one_run = result(hiding(low, high))
    gated = comparison.compare([Run("a", one_run, [{}])], limit=0.01, strict=True)
    (gate,) = gated.gates
    assert (gate.outcome, gated.exit_status) == (outcome, status)
    assert ("all slices together" in gate.reason) == (outcome != "pass")
    advised = advice.advise(one_run, limit=0.01)
    (candidate,) = advised.answers[0].candidates
    assert (candidate.outcome, advised.exit_status) == (
        {"pass": "meets", "unresolved": "unresolved", "fail": "over"}[outcome],
        {"pass": 0, "unresolved": 4, "fail": 3}[outcome],
    )
    assert ("all slices together" in "".join(candidate.reasons)) == (outcome != "pass")


def test_two_runs_are_not_equivalent_if_only_one_of_them_stalls() -> None:
    random = np.random.default_rng(41)
    calm = simulate.experiment(random, simulate.white, 1, 96)
    runs = []
    for name, blocks in (("a", calm), ("b", simulate.stalling(random, calm, 0.05)), ("c", calm)):
        estimator = recorded(blocks, 0, 8)
        estimate = estimator.finish()
        known = result(cell(overhead=estimate.overhead, arms=estimate.arms, verdict=estimate.verdict))
        runs.append(Run(name, msgspec.structs.replace(known, id=name), [estimator.intervals()]))
    assert [pair.verdict for pair in comparison.compare(runs).pairs] == ["unresolved", "equivalent"]


# ── the warning is calibrated ─────────────────────────────────────────────────────────────────────────────────────────

NOISES: dict[str, Noise] = {**simulate.SCENARIOS, "regimes": simulate.speeds, "step": simulate.trend_with_large_step}


@pytest.mark.parametrize("sessions", [1, 8])
@pytest.mark.parametrize("name", NOISES)
def test_equal_arms_disagree_in_at_most_one_run_of_fifty(name: str, sessions: int) -> None:
    runs, blocks = 500, 20 if sessions == 1 else 96
    simulated = simulate.experiment(np.random.default_rng(42), NOISES[name], runs, blocks)
    number = np.repeat(np.arange(sessions), blocks // sessions)
    claims = 0
    for rates, signs in zip(simulated.rates, simulated.signs, strict=True):
        arms = simulate.as_arms(rates, signs, number)
        claims += min(throughput_differs(arms), totals.stalled(arms).p_value) < totals.ALPHA
    print(f"\n{name}, {sessions} sessions: {claims / runs:.1%}", end="")
    assert claims / runs <= 0.02


def test_many_stalls_of_one_arm_are_more_than_chance() -> None:
    estimates = stalling_runs(8, 25, 0.05, 20)
    codes = [{warning.code for warning in one.warnings} for one in estimates]
    assert np.mean(["totals-disagree" in run_codes for run_codes in codes]) >= 0.95


@given(st.lists(st.floats(-5, 5), max_size=12))
def test_a_sum_is_compared_with_every_pattern_of_signs(values: list[float]) -> None:
    kept = [value for value in values if value]
    if not kept:
        assert totals.one_sided(np.array(values)) == 1
        return
    sums = [
        abs(sum(s * v for s, v in zip(signs, kept, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(kept))
    ]
    seen = abs(sum(kept))
    least, most = (
        np.mean([total >= seen * share - slack for total in sums]) for share, slack in ((1, -1e-9), (1 - 1e-8, 1e-9))
    )
    assert least <= totals.one_sided(np.array(values)) <= most


@pytest.mark.parametrize("n", [13, 60, 400])
def test_drawn_signs_and_their_limit_agree_for_many_values(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1, n)
    z = abs(values.sum()) / math.sqrt(values @ values)
    assert totals.one_sided(values) == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.05)
    assert totals.one_sided(values) == totals.one_sided(values)


@pytest.mark.parametrize(("one", "other", "p"), [(0, 0, 1.0), (1, 0, 1.0), (4, 0, 0.125), (7, 0, 2**-6), (5, 5, 1.0)])
def test_a_split_of_stalls_has_the_p_value_of_a_coin(one: int, other: int, p: float) -> None:
    assert totals.coin(one, other) == pytest.approx(p)
    assert totals.coin(other, one) == pytest.approx(p)


def test_a_stall_of_two_slices_in_a_row_is_one_event_and_a_slow_machine_is_none() -> None:
    rates, signs = np.zeros((20, 4)), np.ones(20)
    rates[3, 1:3] = simulate.STALL
    rates[10:] = math.log(0.3)  # From here on the whole machine is slow.
    stalls = totals.stalled(simulate.as_arms(rates, signs, np.ones(20, dtype=np.int64)))
    assert (stalls.plain, stalls.encrypted, stalls.p_value) == (0, 2, 1.0)


def test_simulated_arms_are_those_of_the_tally() -> None:
    simulated = simulate.experiment(np.random.default_rng(43), simulate.white, 1, 12)
    fast = simulate.as_arms(simulated.rates[0], simulated.signs[0], np.repeat([1, 2], 6))
    slow = recorded(simulated, 0, 2)._tallies["capacity"].arms()
    for arm in ARMS:
        quotient = slow.rates(arm) / fast.rates(arm)
        assert quotient == pytest.approx(quotient[0, 0], rel=1e-6)
    both = [ratio_of_totals(arms, ("work",), "seconds", "full") for arms in (fast, slow)]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].centre == pytest.approx(both[1].centre, abs=1e-3)
    assert fast.of("plain")[..., COLUMN["operations"]].sum() == 0


# ── one estimator for levels, ratio and difference ────────────────────────────────────────────────────────────────────


@cache
def histogram(scale: int) -> str:
    """6,000 requests around `scale` µs."""
    hdr = HdrHistogram(1, 3_600_000_000_000, 3)
    for quantile in np.linspace(-2.5, 2.5, 40):
        hdr.record_value(int(scale * 1e3 * math.exp(0.3 * quantile)), 150)
    return str(hdr.encode().decode())


def uneven(mode: Mode, seed: int, effect: float, stall: float, spread: float) -> CellEstimator:
    """A run with sessions `spread` apart (log), each with an effect of its own, and stalls in both arms."""
    random = np.random.default_rng(seed)
    estimator = CellEstimator()
    for session in range(1, 5 if mode == "full" else 2):
        level, session_effect = random.normal(0, spread), effect + random.normal(0, spread / 3)
        for phase, blocks in (("capacity", 5), ("latency", 3)):
            simulated = simulate.experiment(random, simulate.speeds, 1, blocks, effect=session_effect)
            rates = simulated.rates[0] + level + simulate.STALL * (random.random((blocks, 4)) < stall)
            records = simulate.records(rates, simulated.signs[0], session=session, first=100 * (phase == "latency"))
            for record in records:
                estimator.add(in_the_open_loop(record) if phase == "latency" else record)
    return estimator


def in_the_open_loop(record: SliceRecord) -> SliceRecord:
    agent = record.agent
    assert agent is not None
    scale = round(5e6 * agent.seconds / agent.operations, -1)
    changed = msgspec.structs.replace(agent, operations=6000, rows=6000, histogram=histogram(int(max(scale, 10))))
    return msgspec.structs.replace(record, phase="latency", agent=changed)


UNEVEN = (
    st.sampled_from(["full", "quick"]),
    st.integers(0, 10_000),
    st.floats(-0.3, 0.3),
    st.sampled_from([0.0, 0.05, 0.2]),
    st.sampled_from([0.0, 0.1, 0.5]),
)


@given(*UNEVEN)
@settings(max_examples=25, deadline=None)
def test_levels_ratio_and_difference_agree(mode: Mode, seed: int, effect: float, stall: float, spread: float) -> None:
    estimate = uneven(mode, seed, effect, stall, spread).finish(mode)
    one_cell = cell("postgresql", overhead=estimate.overhead, arms=estimate.arms, added=estimate.added, layer="rest")
    for key, overhead in estimate.overhead.items():
        if key in LEVELS:
            plain, encrypted = (levels.level(one_cell, arm, key) for arm in ARMS)
            assert plain
            assert encrypted
            assert encrypted / plain == pytest.approx(overhead.ratio, rel=1e-9), key
    for end in ("server", "client"):
        plain, encrypted = (estimate.arms[arm][f"{end}_cpu_us_per_op"] for arm in ARMS)
        added = estimate.added[f"{end}_cpu"]
        assert added.mean == pytest.approx(encrypted - plain, rel=1e-9, abs=1e-9)
        assert added.low <= added.mean <= added.high


NUMBER = re.compile(r"[\d.,]+(?:e[+-]\d+)?")


def span(text: str) -> tuple[float, float]:
    """The range of values that round to a printed number."""
    plain = text.replace(",", "")
    value, digits = float(plain), len(plain.partition(".")[2])
    return value - 0.5 * 10.0**-digits, value + 0.5 * 10.0**-digits


def agree(cost: str, shown: str) -> bool:
    """Whether `0.3 % fewer` and `12,521 → 12,483 /s` can come from the same two numbers."""
    (a, b), (c, d) = (span(number) for number in NUMBER.findall(shown)[:2])
    least, most = c / b, d / max(a, 1e-12)
    if cost == notation.NO_CHANGE:
        return least <= 1.005 and most >= 0.995
    low, high = span(NUMBER.findall(cost)[0])
    if cost.endswith("times"):
        # Three significant digits.
        value = (low + high) / 2
        half = max((high - low) / 2, 0.5 * 10.0 ** (math.floor(math.log10(value)) - 2))
        return least <= value + half and value - half <= most
    less = re.search("fewer|less|shorter|slower|lower", cost)
    low, high = (1 - high / 100, 1 - low / 100) if less else (1 + low / 100, 1 + high / 100)
    return least <= high and low <= most


def test_texts_that_contradict_each_other_are_detected() -> None:
    assert agree("0.3 % fewer", "12,521 → 12,483 /s")
    assert not agree("0.3 % fewer", "12,521 → 12,575 /s")
    assert agree("4.46 times", "2.04 → 9.1 µs")
    assert not agree("4.56 times", "2.04 → 9.1 µs")
    assert not agree("19 % lower", "0.728 → 0.801 ms")


def rows_of(name: str, text: str) -> list[tuple[str, str]]:
    """(cost, levels) of every row of a page with both."""
    text = unescape(re.sub(r"<[^>]+>", "|", text)) if name == "html" else text
    text = text.replace("\\%", "%").replace("{,}", ",").replace("\\textmu{}", "µ").replace("$\\to$", "→")
    cost = r"([\d.,]+ % (?:more|less|fewer|longer|shorter|higher|lower)|[\d.,]+ times|no change)"
    arrow = r"([\d.,]+(?:e[+-]\d+)? → [\d.,]+(?:e[+-]\d+)? (?:/s|µs|ms|B|MB|s)\b)"
    return re.findall(rf"{cost}[^→\n]*?{arrow}", text.replace("|\n", "|") if name == "html" else text)


@given(*UNEVEN)
@settings(max_examples=8, deadline=None)
def test_every_printed_row_agrees_in_every_format(
    mode: Mode, seed: int, effect: float, stall: float, spread: float
) -> None:
    estimate = uneven(mode, seed, effect, stall, spread).finish(mode)
    one_run = result(cell("postgresql", overhead=estimate.overhead, arms=estimate.arms, mode=mode))
    known = [(row.cost, row.levels) for row in figure_text.rows(one_run.cells[0]) if row.levels]
    assert len(known) >= 5
    assert all(agree(*pair) for pair in known), known
    for name in ("terminal", "md", "latex", "html"):
        rows = rows_of(name, formats.get(name)(one_run))
        assert len(rows) >= 3, (name, rows)
        assert all(agree(*pair) for pair in rows), (name, rows)
    for row in csv.DictReader(io.StringIO(formats.get("csv")(one_run))):
        if row["plain"]:
            assert float(row["encrypted"]) / float(row["plain"]) == pytest.approx(float(row["ratio"]), rel=1e-9)
    (raw,) = json.loads(formats.get("json")(one_run))["cells"]
    plain, encrypted = (raw["arms"][arm]["typical"]["throughput"] for arm in ARMS)
    assert encrypted / plain == pytest.approx(raw["overhead"]["throughput"]["ratio"])
    plain, encrypted = (raw["arms"][arm]["throughput"] for arm in ARMS)
    assert encrypted / plain == pytest.approx(raw["overhead"]["throughput"]["ratio_of_totals"])


@given(st.integers(0, 1000), st.sampled_from(["full", "quick"]))
@settings(max_examples=20, deadline=None)
def test_levels_of_storage_agree_with_their_ratio(seed: int, mode: Mode) -> None:
    random = np.random.default_rng(seed)
    slices = []
    for session, block, job in itertools.product((1, 2, 3), range(3), ("random_read", "fsync_latency")):
        order = "ABBA" if random.random() < 0.5 else "BAAB"
        for position, letter in enumerate(order, start=1):
            operations = int(random.integers(100, 5000))
            slices.append(
                StorageSlice(
                    0, session, block, order, position, "plain" if letter == "A" else "encrypted", job,
                    seconds=0.3, operations=operations, bytes=4096 * operations,
                )
            )  # fmt: skip
    arm_levels = storage.levels(slices, mode)
    for job, estimate in storage.estimate(slices, mode).items():
        assert arm_levels["encrypted"][job] / arm_levels["plain"][job] == pytest.approx(estimate.ratio)


def test_the_pooled_quantile_of_sessions_has_an_interval_of_its_own() -> None:
    estimate = uneven("full", 3, 0.1, 0.0, 0.5).finish("full")
    median = estimate.overhead["latency_p50"]
    assert median.totals_low is not None
    assert median.totals_high is not None
    assert median.totals_low <= (median.ratio_of_totals or 0) <= median.totals_high
    assert statistics.ALPHA > totals.ALPHA


def test_the_pooled_quantile_of_blocks_has_an_interval_around_itself() -> None:
    robust = statistics.block_interval(np.random.default_rng(1).normal(0.0, 0.002, 20))
    assert robust.middle != robust.centre
    pooled = Pooled(np.array([0.0095]), np.empty((0, 1))).interval(0, robust, None)
    assert pooled.tost(math.log1p(0.01)) > statistics.ALPHA, "0.95 % ± 0.1 % does not lie within 1 %"
    low, high = pooled.bounds()
    assert pooled.centre - low == pytest.approx(high - pooled.centre)


@given(st.integers(0, 1000), st.integers(1, 4))
def test_levels_of_the_column_study_agree_with_their_ratio(seed: int, sessions: int) -> None:
    random = np.random.default_rng(seed)
    blocks = {
        session: [measured.Block(*random.normal(session, 1, 2)) for _ in range(int(random.integers(1, 7)))]
        for session in range(sessions)
    }
    arm_levels, cost = measured.levels_of(blocks), measured.ratio_of(blocks)
    assert cost is not None
    assert arm_levels["encrypted"] / arm_levels["plain"] == pytest.approx(cost.value)


@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e3)), min_size=2, max_size=9))
def test_levels_of_the_driver_study_agree_with_their_ratio_and_difference(times: list[tuple[float, float]]) -> None:
    old, new = Setup("5.1.42", "one", "plain"), Setup("9.7.0", "one", "encrypted")
    rounds = [
        {
            setup: StudyRun("one", setup.arm, 0.0, {}, {"cold_us": [time]})
            for setup, time in zip((old, new), both, strict=True)
        }
        for both in times
    ]
    level = [jdbc.over(rounds, lambda round_, s=setup: jdbc.us(round_[s], "cold")) for setup in (old, new)]  # type: ignore[misc]
    ratio = jdbc.ratio(rounds, new, old, "cold")
    assert ratio is not None
    assert level[0] is not None
    assert level[1] is not None
    assert ratio.ratio == pytest.approx(level[1].value / level[0].value)
    assert ratio.low <= ratio.ratio <= ratio.high
