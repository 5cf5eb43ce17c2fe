"""Whether all requests below both capacities show the same as the typical block."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import objective_all
from ciphercost.estimate.objective_curve import Fit, Tried
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.objective_capacity import AllRequests
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import latency_objective

P99 = latency_objective.parse("p99=5ms")
FITS = dict.fromkeys(ARMS, Fit(math.log(1000.0), 300.0))
"""Curves so steep that a queue explains no slow request below the capacity."""


def tried(session: int, slow: float, rate: float = 800.0, late: float = 0.0, later: float = 0.0) -> Tried:
    return Tried(session, 0, "objective", rate, slow, 1000.0, 1.0, late, later)


def judged(plain: list[float], encrypted: list[float], *, by_session: bool = True) -> AllRequests | None:
    """Slow ones of 1000 requests, by session; 10 are allowed."""
    arms: dict[Arm, list[Tried]] = {
        "plain": [tried(number, slow) for number, slow in enumerate(plain)],
        "encrypted": [tried(number, slow) for number, slow in enumerate(encrypted)],
    }
    return objective_all.judged(arms, P99, FITS, by_session=by_session)


def known(plain: list[float], encrypted: list[float]) -> AllRequests:
    all_requests = judged(plain, encrypted)
    assert all_requests is not None
    return all_requests


def test_shares_are_those_of_all_requests_in_units_of_what_is_allowed() -> None:
    all_requests = known([2, 4, 3, 3], [3, 3, 2, 4])
    assert all_requests.plain == pytest.approx(0.3)
    assert all_requests.encrypted == pytest.approx(0.3)
    assert all_requests.blocks == 4
    assert all_requests.low < 0 < all_requests.high
    assert all_requests.agree


def test_certain_stalls_of_one_arm_disagree() -> None:
    all_requests = known([3, 3, 4, 2], [14, 15, 13, 14])
    assert all_requests.low > objective_all.LITTLE
    assert not all_requests.agree
    reason = objective_all.reason(all_requests, P99.text)
    assert "together disagree: below both capacities" in reason
    assert re.search(r"\b1\.4 times .*p99.*encrypted.* 0\.3 times .*plain", reason)
    assert "the encrypted arm stalls now and then" in reason
    other = objective_all.reason(known([14, 15, 13, 14], [3, 3, 4, 2]), P99.text)
    assert "the plain arm stalls now and then" in other


def test_one_long_stall_leaves_it_open() -> None:
    all_requests = known([3, 3, 4, 2], [3, 60, 3, 3])
    assert all_requests.low < 0
    assert not all_requests.agree
    assert objective_all.reason(all_requests, P99.text).startswith("all requests together do not confirm")


def test_where_the_machine_stalls_both_arms_more_may_differ() -> None:
    assert known([20, 9, 31, 22], [9, 31, 20, 21]).agree
    assert not known([2, 1, 3, 2], [9, 31, 20, 21]).agree


def test_a_small_difference_that_is_certain_is_no_disagreement() -> None:
    all_requests = known([3.0, 3.1, 2.9, 3.0], [4.0, 4.1, 3.9, 4.0])
    assert all_requests.low > 0
    assert all_requests.agree


def test_blocks_near_or_above_a_capacity_do_not_count() -> None:
    arms: dict[Arm, list[Tried]] = {arm: [tried(number, 3) for number in range(4)] for arm in ARMS}
    for arm, rates in (("plain", (990.0, 800.0)), ("encrypted", (800.0, 1200.0))):
        arms[arm] += [tried(9, 500, rate) for rate in rates]  # type: ignore[index]
    all_requests = objective_all.judged(arms, P99, FITS, by_session=True)
    assert all_requests is not None
    assert all_requests.blocks == 4


def test_too_few_blocks_decide_nothing() -> None:
    assert judged([3, 3], [30, 30]) is None
    assert judged([3, 3], [30, 30], by_session=False) is None


# ── requests that no queue explains ───────────────────────────────────────────────────────────────────────────────────


def stalled(plain: list[float], encrypted: list[float], *, rate: float = 1050.0) -> AllRequests:
    """With later requests of 1000 in blocks above the capacity, by session; 10 may be slow."""
    arms: dict[Arm, list[Tried]] = {
        arm: [tried(number, 3) for number in range(4)]
        + [tried(number, count, rate, later=count) for number, count in enumerate(later)]
        for arm, later in zip(ARMS, (plain, encrypted), strict=True)
    }
    all_requests = objective_all.judged(arms, P99, FITS, by_session=True)
    assert all_requests is not None
    return all_requests


def test_a_stall_of_one_arm_shows_above_its_capacity_too() -> None:
    assert stalled([0, 0, 0, 0], [0, 0, 0, 0]).agree
    all_requests = stalled([0, 0, 0, 0], [0, 40, 0, 0])
    assert not all_requests.agree
    assert (all_requests.stalled_plain, all_requests.stalled_encrypted) == (0, 1)
    assert all_requests.late_encrypted == pytest.approx(40 / 80)
    reason = objective_all.reason(all_requests, P99.text)
    assert "1 block of the encrypted arm alone" in reason
    assert "(0.5 times" in reason
    other = objective_all.reason(stalled([0, 40, 0, 50], [0, 0, 0, 0]), P99.text)
    assert "2 blocks of the plain arm alone" in other


def test_stalls_of_both_arms_are_the_machines() -> None:
    assert stalled([0, 60, 0, 0], [0, 0, 40, 30]).agree


def test_few_late_requests_of_one_arm_are_no_stall() -> None:
    assert stalled([0, 0, 0, 0], [0, 7, 0, 0]).agree


def test_far_above_a_capacity_late_requests_are_a_queue() -> None:
    assert stalled([0, 0, 0, 0], [0, 400, 0, 0], rate=1150.0).agree


def test_below_the_capacities_less_late_requests_show_a_stall() -> None:
    arms: dict[Arm, list[Tried]] = {arm: [tried(number, 3) for number in range(4)] for arm in ARMS}
    arms["encrypted"][2] = tried(2, 8, late=8.0)
    all_requests = objective_all.judged(arms, P99, FITS, by_session=True)
    assert all_requests is not None
    assert not all_requests.agree
    assert all_requests.stalled_encrypted == 1
    assert all_requests.late_encrypted == pytest.approx(8 / 40)


def test_each_arm_is_watched_in_its_own_two_slices_less_what_is_discarded() -> None:
    assert stalled([0, 0, 0, 0], [0, 0, 0, 0]).watched_s == pytest.approx(8 * 2 * 0.8)


# ── what stalls do to the interval ────────────────────────────────────────────────────────────────────────────────────

SLOPES = dict.fromkeys(ARMS, Fit(math.log(1000.0), 20.0))
TYPICAL = Interval(-0.1, (Error(0.01, 7, "t"),), 8)


def shares(low: float, high: float, both: float = 0.3) -> AllRequests:
    return AllRequests(both, both, low, high, 20, agree=True)


@given(st.floats(-0.9, 0.9), st.floats(0.0, 0.5))
def test_a_widened_interval_holds_the_typical_ratio_and_is_never_narrower(centre: float, half: float) -> None:
    low, high = TYPICAL.bounds()
    interval = objective_all.widened(TYPICAL, shares(centre - half, centre + half), SLOPES)
    lower, higher = interval.bounds()
    assert interval.centre == TYPICAL.centre
    assert lower <= TYPICAL.centre <= higher
    assert interval.half() >= (high - low) / 2 - 1e-12
    stalls_of_encrypted = centre > 0
    assert (interval.middle <= TYPICAL.centre) if stalls_of_encrypted else (interval.middle >= TYPICAL.centre)


def test_stalls_take_what_they_use_of_the_share_allowed_from_the_queue() -> None:
    half = objective_all.widened(TYPICAL, shares(0.5, 0.5), SLOPES)
    assert half.middle == pytest.approx(-0.1 + math.log(0.5) / 20)
    plain = objective_all.widened(TYPICAL, shares(-0.5, -0.5), SLOPES)
    assert plain.middle == pytest.approx(-0.1 - math.log(0.5) / 20)


def test_one_arms_low_end_is_that_of_all_its_requests() -> None:
    fit = SLOPES["plain"]
    quiet = [tried(number, 0) for number in range(4)]
    assert objective_all.lowered(quiet, P99, fit, by_session=True) == 0.0
    half = objective_all.lowered([tried(number, 5) for number in range(4)], P99, fit, by_session=True)
    queue = objective_all.explained(fit, 800.0, P99)
    assert half == pytest.approx(math.log1p(-(0.5 - queue)) / 20)
    stalls = [tried(number, 20) for number in range(4)]
    assert objective_all.lowered(stalls, P99, fit, by_session=True) == -math.inf
    assert objective_all.lowered(stalls, P99, None, by_session=True) == -math.inf
    assert objective_all.lowered(quiet, P99, None, by_session=True) == 0.0
    assert objective_all.lowered(stalls[:2], P99, fit, by_session=True) == 0.0
