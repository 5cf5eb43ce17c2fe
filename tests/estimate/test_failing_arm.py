"""Slices and operations that fail are counted by arm, compared, and part of the verdict and of a budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

import simulate
import simulate_failures
from ciphercost.estimate import failures
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.model.result import Cell, CellEstimate, Failures
from ciphercost.model.slices import AGENTS, SliceRecord
from ciphercost.model.spec import Mode
from ciphercost.report import cost_gate
from simulate_failures import SLOW_COST, Failing, failed

Change = Callable[[SliceRecord], SliceRecord]
LIMIT = 0.01


def estimated(change: Change, *, effect: float = 0.0, sessions: int = 8, blocks: int = 12) -> CellEstimate:
    """The estimate of a quiet run whose slices are changed. With one session, of quick mode."""
    random = np.random.default_rng(5)
    estimator = CellEstimator()
    for session in range(1, sessions + 1):
        simulated = simulate.experiment(
            random, lambda r, n, s: simulate.white(r, n, s, 0.002), 1, blocks, effect=float(np.log1p(effect))
        )
        for record in simulate.records(simulated.rates[0], simulated.signs[0], session=session):
            estimator.add(change(record))
    return estimator.finish("full" if sessions > 1 else "quick")


def losing(arm: str, every: int) -> Change:
    """Each so many-th slice of the arm fails."""
    seen: Counter[str] = Counter()

    def change(record: SliceRecord) -> SliceRecord:
        seen[record.arm] += 1
        return failed(record) if record.arm == arm and seen[arm] % every == 0 else record

    return change


def of(estimate: CellEstimate) -> Failures:
    assert estimate.failures is not None
    return estimate.failures


def codes(estimate: CellEstimate) -> dict[str, str]:
    return {warning.code: warning.text for warning in estimate.warnings}


def gate(estimate: CellEstimate, limit: float = LIMIT) -> str:
    cell = Cell(
        "e", "1", "transit", "tls", "w", 1, "ok", "full", overhead=estimate.overhead, failures=estimate.failures
    )
    return cost_gate.with_failures("throughput", cell, limit)


# ── what is counted ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_where_nothing_failed_there_is_nothing_to_say() -> None:
    estimate = estimated(lambda record: record)
    assert estimate.failures is None
    assert estimate.verdict == "equivalent"
    assert gate(estimate) == "pass"


def test_failed_slices_of_each_arm_are_counted_with_lead_ins() -> None:
    here = {(1, 2, 0), (1, 3, 1), (2, 4, 1), (2, 4, 2), (2, 4, 3)}
    estimate = estimated(
        lambda record: failed(record) if (record.session, record.block, record.position) in here else record
    )
    counts = of(estimate)
    assert counts.plain + counts.encrypted == 5
    assert counts.plain_slices + counts.encrypted_slices == 8 * 12 * 5
    assert (counts.blocks, counts.sessions) == (96, 2)
    assert estimate.blocks == 93
    assert failures.counted(counts) in codes(estimate)["failed-slices"]
    assert "3 blocks are incomplete" in codes(estimate)["failed-slices"]


def test_slices_that_failed_because_of_the_agents_are_nobodys_failures() -> None:
    lost = losing("encrypted", 20)

    def change(record: SliceRecord) -> SliceRecord:
        changed = lost(record)
        return msgspec.structs.replace(changed, marks=[AGENTS]) if changed.error else changed

    estimate = estimated(change)
    assert estimate.failures is None
    assert estimate.verdict == "equivalent"
    assert codes(estimate)["failed-slices"].startswith("no slice failed; ")


def test_a_repeated_session_does_not_count() -> None:
    estimator = CellEstimator()
    random = np.random.default_rng(5)
    for session in (1, 2, 3):
        simulated = simulate.experiment(random, simulate.white, 1, 6)
        for record in simulate.records(simulated.rates[0], simulated.signs[0], session=session):
            estimator.add(failed(record) if session == 2 and record.block == 1 else record)
    estimator.void(2)
    assert estimator.finish("full").failures is None


# ── what follows ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sessions", [8, 1])
def test_an_arm_that_fails_more_often_is_neither_equivalent_nor_within_a_budget(sessions: int) -> None:
    estimate = estimated(losing("encrypted", 10), sessions=sessions, blocks=12 if sessions > 1 else 96)
    assert failures.differ(of(estimate))
    assert failures.more(of(estimate)) == "encrypted"
    assert estimate.overhead["throughput"].ratio == pytest.approx(1, abs=0.003), "what succeeded shows nothing"
    assert estimate.verdict == "unresolved"
    assert of(estimate).undecided
    worst = of(estimate).throughput
    assert worst is not None
    assert worst.ratio == pytest.approx(0.9, abs=0.01)
    assert gate(estimate) == "fail"
    assert gate(estimate, 0.3) == "unresolved", "one arm fails more often, whatever that costs"
    assert next(iter(codes(estimate))) == failures.DIFFER
    assert re.search("encrypted arm looks faster.* cost too low", codes(estimate)["failed-slices"])


def test_few_failures_are_no_difference_but_may_change_the_answer() -> None:
    estimate = estimated(losing("encrypted", 90))
    assert not failures.differ(of(estimate))
    assert failures.DIFFER not in codes(estimate)
    assert estimate.verdict == "unresolved"
    assert gate(estimate) == "unresolved"
    assert gate(estimate, 0.1) == "pass"


def test_a_cost_that_failures_can_not_undo_stays() -> None:
    estimate = estimated(losing("plain", 100), effect=-0.2)
    assert estimate.verdict == "differs"
    assert gate(estimate) == "fail"
    assert gate(estimate, 0.3) == "pass"


def test_a_cost_that_failures_of_the_plain_arm_could_undo_is_open() -> None:
    estimate = estimated(losing("plain", 20), effect=-0.02)
    assert estimate.verdict == "unresolved"
    assert of(estimate).undecided
    assert gate(estimate) == "unresolved"
    assert "cost too high" in codes(estimate)["failed-slices"]


def test_operations_of_one_arm_that_fail_are_a_difference_too() -> None:
    def change(record: SliceRecord) -> SliceRecord:
        assert record.agent is not None
        errors = 3 if record.arm == "encrypted" else 0
        return msgspec.structs.replace(record, agent=msgspec.structs.replace(record.agent, errors=errors))

    estimate = estimated(change)
    assert of(estimate).encrypted_operations == 3 * of(estimate).encrypted_slices
    assert of(estimate).plain_operations == 0
    assert estimate.verdict == "unresolved"
    assert gate(estimate) == "unresolved"
    assert (
        f"{of(estimate).encrypted_operations} encrypted operations failed and 0 plain ones"
        in codes(estimate)[failures.DIFFER]
    )
    assert f"by arm: 0 plain, {of(estimate).encrypted_operations} encrypted" in codes(estimate)["errors"]


def test_operations_that_fail_in_both_arms_alike_are_none() -> None:
    def change(record: SliceRecord) -> SliceRecord:
        assert record.agent is not None
        return msgspec.structs.replace(record, agent=msgspec.structs.replace(record.agent, errors=3))

    estimate = estimated(change)
    assert of(estimate).operations_p_value > failures.OPERATIONS_ALPHA
    assert estimate.verdict == "equivalent"
    assert gate(estimate) == "pass"


def test_several_machines_are_one_table() -> None:
    one = Failures(0, 240, 3, 240, 0.25, blocks=96, encrypted_blocks=3)
    both = failures.together([one, one, None])
    assert both is not None
    assert (both.encrypted, both.encrypted_slices, both.blocks) == (6, 480, 192)
    assert both.p_value < 0.05
    assert failures.together([None, None]) is None


# ── simulated ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("sessions", "blocks"), [(8, 12), (1, 25)])
def test_failures_of_one_arm_are_never_equivalent(sessions: int, blocks: int) -> None:
    """Of 40 runs with 2 % of encrypted slices failing, all were equivalent and within 1 % while failures counted for nothing."""
    estimates = list(simulate_failures.runs(7, 40, sessions, blocks, Failing(encrypted=0.02)))
    hit = [estimate for estimate in estimates if estimate.failures is not None]
    assert len(hit) >= 20
    assert not [estimate for estimate in hit if estimate.verdict == "equivalent" or gate(estimate) == "pass"]


@pytest.mark.parametrize("failing", [Failing(plain=0.02, encrypted=0.02), Failing(outages=0.04)])
def test_arms_that_fail_alike_seldom_differ(failing: Failing) -> None:
    estimates = list(simulate_failures.runs(8, 60, 8, 6, failing))
    assert sum(failures.differ(estimate.failures) for estimate in estimates) <= 6
    assert sum(estimate.verdict == "differs" for estimate in estimates) <= 6


def test_the_cost_of_slices_that_time_out_lies_between_both_intervals() -> None:
    estimates = list(simulate_failures.runs(9, 40, 8, 12, Failing(slow=True)))
    truth = float(np.exp(SLOW_COST))
    holds = [
        estimate.overhead["throughput"].low <= truth <= estimate.overhead["throughput"].high for estimate in estimates
    ]
    both = []
    for estimate in estimates:
        worst = estimate.failures.throughput if estimate.failures else None
        ends = [estimate.overhead["throughput"], *([worst] if worst else [])]
        both.append(min(end.low for end in ends) <= truth <= max(end.high for end in ends))
    assert np.mean(holds) < 0.5
    assert np.mean(both) >= 0.9


def test_modes_are_named() -> None:
    modes: list[Mode] = ["full", "quick"]
    for mode, sessions in zip(modes, (2, 1), strict=True):
        estimate = simulate_failures.run(np.random.default_rng(3), sessions, 30, Failing(encrypted=0.1))
        assert of(estimate).succeeded is not None
        assert ("sessions" in of(estimate).succeeded.method) is (mode == "full")  # type: ignore[union-attr]
