"""Counters that few events decide have no interval; those that have one cover the truth. METHODOLOGY.md has the figures."""

from __future__ import annotations

import itertools
import math
import re

import msgspec
import numpy as np
import pytest

import simulate
import simulate_events
from ciphercost.estimate import rare
from ciphercost.estimate.cost_ratios import ratio_of_totals, without_ratio
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.tally import COLUMN
from ciphercost.model.result import CellEstimate
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import Mode
from ciphercost.report import figures, formats
from ciphercost.report.words import figure_text
from results import cell, result
from simulate_events import KINDS, as_arms

FAULTS = (("faults",), "scheduled_work")


def reason(plain: list[float], encrypted: list[float]) -> str:
    return rare.too_few(as_arms(np.array(plain), np.array(encrypted)), *FAULTS)


def slices_with_any(text: str) -> list[str]:
    """How many slices of which arm a reason names, in order."""
    return re.findall(r"\d+ of \d+ (?:plain|encrypted)", text)


# ── the rule ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_event_in_the_same_block_of_both_arms_has_no_interval() -> None:
    arms = as_arms(np.array([10.0, 0, 0, 0]), np.array([24.0, 0, 0, 0]))
    interval = ratio_of_totals(arms, *FAULTS, "quick")
    assert interval is not None
    assert interval.half() == 0, "this is the interval that the rule refuses"
    assert slices_with_any(rare.too_few(arms, *FAULTS)) == ["1 of 8 plain", "1 of 8 encrypted"]
    assert "faults_per_op" in without_ratio(arms)


@pytest.mark.parametrize(
    ("plain", "encrypted"),
    [
        ([0, 0, 0, 30, 0, 0, 0, 0], [0, 0, 50, 0, 0, 0, 0, 0]),  # in different blocks
        ([100] * 20, [1000, *[10] * 19]),  # a block of one arm alone
        ([1000, *[10] * 19], [2000, *[20] * 19]),  # the same block of both arms
        ([3, 3, 3, 3], [4, 4, 4, 4]),  # the same in all blocks, which is chance with so few
        ([0] * 20, [5, *[0] * 19]),  # none at all in one arm
        ([*[100.0] * 7, *[0.0] * 93], [*[120.0] * 7, *[0.0] * 93]),  # seven checkpoints
    ],
)
def test_few_events_have_no_interval_and_a_reason(plain: list[float], encrypted: list[float]) -> None:
    assert reason(plain, encrypted)


@pytest.mark.parametrize(
    ("plain", "encrypted"),
    [
        ([50] * 20, [60] * 20),
        ([*[100.0] * 9, *[0.0] * 91], [*[120.0] * 9, *[0.0] * 91]),  # nine checkpoints
        ([0] * 20, [0] * 20),  # nothing in either arm is no figure at all
        ([1000], [1000]),  # one block has no interval anyway
    ],
)
def test_regular_counters_and_many_events_keep_their_interval(plain: list[float], encrypted: list[float]) -> None:
    assert reason(plain, encrypted) == ""


def test_a_short_session_is_no_rare_event() -> None:
    """Blocks of different lengths have different totals, but the same figure per operation."""
    arms = as_arms(np.array([1000.0, 50, 50, 50]), np.array([1200.0, 60, 60, 60]))
    for arm in (arms.plain, arms.encrypted):
        arm[0:1, :, COLUMN["scheduled_work"]] *= 20
    assert rare.too_few(arms, *FAULTS) == ""


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────────────────────────

RUNS = 200


def covered(kind: str, total: float, sessions: int, blocks: int, ratio: float) -> tuple[float, float, float]:
    """(share of runs with an interval, share whose interval misses the truth, the same without the rule)."""
    mode: Mode = "full" if sessions > 1 else "quick"
    given, wrong, old = [], [], []
    for arms in simulate_events.runs(47, KINDS[kind], total, sessions, blocks, ratio, RUNS):
        interval = ratio_of_totals(arms, *FAULTS, mode)
        low, high = (math.nan, math.nan) if interval is None else interval.bounds()
        missed = not low <= math.log(ratio) <= high
        given.append(interval is not None and not rare.too_few(arms, *FAULTS))
        wrong.append(given[-1] and missed)
        old.append(interval is not None and missed)
    return float(np.mean(given)), float(np.mean(wrong)), float(np.mean(old))


@pytest.mark.parametrize("ratio", [1.0, 2.0])
@pytest.mark.parametrize(("sessions", "blocks"), [(1, 20), (8, 4)])
def test_an_interval_that_is_given_covers_whatever_the_events_are_like(
    sessions: int, blocks: int, ratio: float
) -> None:
    for kind, total in itertools.product(KINDS, (3, 10, 30, 100)):
        given, wrong, old = covered(kind, total, sessions, blocks, ratio)
        print(
            f"{kind}, {total} events, {sessions}x{blocks}, x{ratio}: given {given:.1%}, wrong {wrong:.1%}, before {old:.1%}"
        )
        assert wrong <= 0.09, (kind, total)
        assert total > 3 or given <= 0.05, (kind, total)
        assert total < 100 or kind == "dominated" or given > 0.95, (kind, total)


def test_mutant_without_the_rule_an_interval_of_few_events_is_too_narrow() -> None:
    assert covered("uneven", 3, 8, 4, 1.0)[2] > 0.09


# ── in a result ───────────────────────────────────────────────────────────────────────────────────────────────────────


def flushed(plain: int, encrypted: int, slices: int = 1) -> CellEstimate:
    """A quick run in which the first `slices` slices of each arm write these many bytes, and no other slice any."""
    random = np.random.default_rng(3)
    simulated = simulate.experiment(random, simulate.white, 1, 20)
    estimator, left = CellEstimator(), {"plain": slices, "encrypted": slices}
    for record in simulate.records(simulated.rates[0], simulated.signs[0], session=1):
        counted = record.position > 0 and left[record.arm] > 0
        left[record.arm] -= counted
        amount = {"plain": plain, "encrypted": encrypted}[record.arm] * counted
        estimator.add(written(record, amount))
    return estimator.finish("quick")


def written(record: SliceRecord, amount: int) -> SliceRecord:
    assert record.counters is not None
    return msgspec.structs.replace(record, counters=msgspec.structs.replace(record.counters, server_write_bytes=amount))


def test_a_result_has_the_reason_in_place_of_the_ratio_and_every_report_prints_it() -> None:
    estimate = flushed(40_000_000, 95_000_000)
    assert not {"disk_bytes_per_op", "disk_written_per_op"} & set(estimate.overhead)
    assert slices_with_any(estimate.too_few["disk_bytes_per_op"]) == ["1 of 40 plain", "1 of 40 encrypted"]
    assert "server_cpu" in estimate.added
    whole = result(
        cell(
            overhead=estimate.overhead,
            arms=estimate.arms,
            too_few={"disk_bytes_per_op": estimate.too_few["disk_bytes_per_op"]},
        )
    )
    for name in ("terminal", "md", "html"):
        text = " ".join(formats.get(name)(whole).split())
        assert estimate.too_few["disk_bytes_per_op"] in text, name
    assert not [figure for figure in figures.figures(whole) if figure["metric"] == "disk_bytes_per_op"]


def test_reports_say_nothing_of_what_would_be_noise_anyway() -> None:
    estimate = flushed(4096, 8192)
    assert "disk_bytes_per_op" in estimate.too_few
    measured = cell(overhead=estimate.overhead, arms=estimate.arms, too_few=estimate.too_few)
    assert [line for line in figure_text.without_ratio(measured) if "disk" in line] == []
