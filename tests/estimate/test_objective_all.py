"""Whether all requests below both capacities show the same as the typical block."""

from __future__ import annotations

import math

import pytest

from ciphercost.estimate import objective_all
from ciphercost.estimate.objective_curve import Fit, Tried
from ciphercost.model.objective_capacity import AllRequests
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import latency_objective

P99 = latency_objective.parse("p99=5ms")
FITS = dict.fromkeys(ARMS, Fit(math.log(1000.0), 300.0))
"""Curves so steep that a queue explains no slow request below the capacity."""


def tried(session: int, slow: float, rate: float = 800.0) -> Tried:
    return Tried(session, 0, "objective", rate, slow, 1000.0, 1.0)


def judged(plain: list[float], encrypted: list[float], *, by_session: bool = True) -> AllRequests | None:
    """Slow ones of 1000 requests, by session; 10 are allowed."""
    arms: dict[Arm, list[Tried]] = {
        "plain": [tried(number, each) for number, each in enumerate(plain)],
        "encrypted": [tried(number, each) for number, each in enumerate(encrypted)],
    }
    return objective_all.judged(arms, P99, FITS, by_session=by_session)


def known(plain: list[float], encrypted: list[float]) -> AllRequests:
    found = judged(plain, encrypted)
    assert found is not None
    return found


def test_shares_are_those_of_all_requests_in_units_of_what_is_allowed() -> None:
    found = known([2, 4, 3, 3], [3, 3, 2, 4])
    assert found.plain == pytest.approx(0.3)
    assert found.encrypted == pytest.approx(0.3)
    assert found.blocks == 4
    assert found.low < 0 < found.high
    assert found.agree


def test_certain_stalls_of_one_arm_disagree() -> None:
    found = known([3, 3, 4, 2], [14, 15, 13, 14])
    assert found.low > objective_all.LITTLE
    assert not found.agree
    said = objective_all.reason(found, P99.text)
    assert said.startswith("the typical block and all requests together disagree: below both capacities")
    assert "1.4 times what p99 allows in the encrypted arm and 0.3 times in the plain arm" in said
    assert "the encrypted arm stalls now and then" in said
    other = objective_all.reason(known([14, 15, 13, 14], [3, 3, 4, 2]), P99.text)
    assert "the plain arm stalls now and then" in other


def test_one_long_stall_leaves_it_open() -> None:
    found = known([3, 3, 4, 2], [3, 60, 3, 3])
    assert found.low < 0
    assert not found.agree
    assert objective_all.reason(found, P99.text).startswith("all requests together do not confirm the typical block")


def test_where_the_machine_stalls_both_arms_more_may_differ() -> None:
    assert known([20, 9, 31, 22], [9, 31, 20, 21]).agree
    assert not known([2, 1, 3, 2], [9, 31, 20, 21]).agree


def test_a_small_difference_that_is_certain_is_no_disagreement() -> None:
    found = known([3.0, 3.1, 2.9, 3.0], [4.0, 4.1, 3.9, 4.0])
    assert found.low > 0
    assert found.agree


def test_blocks_near_or_above_a_capacity_do_not_count() -> None:
    arms: dict[Arm, list[Tried]] = {arm: [tried(each, 3) for each in range(4)] for arm in ARMS}
    for arm, rates in (("plain", (990.0, 800.0)), ("encrypted", (800.0, 1200.0))):
        arms[arm] += [tried(9, 500, rate) for rate in rates]  # type: ignore[index]
    found = objective_all.judged(arms, P99, FITS, by_session=True)
    assert found is not None
    assert found.blocks == 4


def test_too_few_blocks_decide_nothing() -> None:
    assert judged([3, 3], [30, 30]) is None
    assert judged([3, 3], [30, 30], by_session=False) is None
