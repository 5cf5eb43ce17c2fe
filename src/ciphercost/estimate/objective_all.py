"""Whether all requests together show the same as the typical block, which decides a capacity at an objective. Pure.

A block counts alike whatever befell it, so stalls of one arm that are rarer than blocks hardly move its capacity, and still make more of its
requests slow than the objective allows. They show below the capacities, where a queue alone makes few requests slow. How few depends on the arm:
a slower one has more of them at the same distance from its capacity. So what each arm's own curve explains is taken off first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.notation import number
from ciphercost.estimate.objective_curve import Fit, Tried, farthest
from ciphercost.estimate.tally import Floats
from ciphercost.model.objective_capacity import AllRequests
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan.latency_objective import Objective

BELOW = 0.02
"""Distance to both capacities, as a logarithm of the rate, from which a block is below them."""
MOST = 1.0
"""Largest difference of the arms' shares of slow requests beyond their curves that lets a ratio stand, in units of the share that the objective
allows.
"""
BOTH, TIMES = 0.7, 3.0
"""If both arms have at least BOTH of that share, the machine stalls both; then the difference may be up to TIMES the smaller of their shares."""
LITTLE = 0.2
"""Difference from which the arms disagree, once it is certain: a curve fits a queue only roughly."""
LEAST_UNITS = 3
"""Fewest sessions, or blocks, for an interval of that difference."""


def judged(
    arms: Mapping[Arm, Sequence[Tried]], of: Objective, fits: Mapping[Arm, Fit], *, by_session: bool
) -> AllRequests | None:
    """The shares of slow requests of both arms in the blocks below both capacities, and whether they may be alike, apart from what their curves
    explain.

    The interval is t over sessions, or the widest of those over blocks. None with too few of them.
    """
    below = [
        each
        for each in zip(*(arms[arm] for arm in ARMS), strict=True)
        if all(math.log(own.rate) < fits[arm].capacity - BELOW for arm, own in zip(ARMS, each, strict=True))
    ]
    unit = [each[0].session if by_session else number for number, each in enumerate(below)]
    units = np.unique(np.array(unit, dtype=np.int64), return_inverse=True)[1]
    if not len(units) or units.max() + 1 < LEAST_UNITS:
        return None
    shares, beyond, values = [], [], []
    for arm, own in zip(ARMS, zip(*below, strict=True), strict=True):
        expected = [each.requests * of.allowed * explained(fits[arm], each.rate, of) for each in own]
        share, more, parts = _share(own, expected, units, of.allowed)
        shares.append(share)
        beyond.append(more)
        values.append(parts)
    difference: Floats = values[1] - values[0]
    centre, smaller = beyond[1] - beyond[0], min(shares)
    most = max(MOST, TIMES * smaller) if smaller >= BOTH else MOST
    found = statistics.session_interval if by_session else statistics.block_interval
    low, high = found(difference, centre).bounds()
    return AllRequests(
        plain=shares[0],
        encrypted=shares[1],
        low=low,
        high=high,
        blocks=len(below),
        agree=low <= LITTLE and high >= -LITTLE and max(-low, high) < most,
    )


def explained(fit: Fit, rate: float, of: Objective) -> float:
    """Share of slow requests that the arm's curve has at a rate below its capacity, in units of the share that the objective allows."""
    return math.exp(fit.score(math.log(rate), farthest(of)))


def _share(
    tried: Sequence[Tried], expected: Sequence[float], units: np.ndarray[tuple[int], np.dtype[np.int64]], allowed: float
) -> tuple[float, float, Floats]:
    """The share of an arm's slow requests ÷ the share allowed, the same beyond the expected ones, and each unit's part in the latter (delta
    method), shape (units,).
    """
    slow, requests = (
        np.bincount(units, counts) for counts in ([each.slow for each in tried], [each.requests for each in tried])
    )
    more = slow - np.bincount(units, expected)
    share = float(more.sum() / requests.sum())
    parts: Floats = (share + (more - share * requests) / requests.mean()) / allowed
    return float(slow.sum() / requests.sum()) / allowed, share / allowed, parts


def reason(of: AllRequests, objective: str) -> str:
    """Why there is no ratio although the typical block gives each arm a capacity."""
    name = objective.partition("=")[0]
    shares = (
        f"below both capacities the share of slow requests is {number(of.encrypted)} times what {name} allows in the encrypted arm and "
        f"{number(of.plain)} times in the plain arm (beyond what each arm's curve explains they differ by {number(of.low)} to {number(of.high)})"
    )
    if of.low > LITTLE or of.high < -LITTLE:
        arm = "encrypted" if of.low > LITTLE else "plain"
        return (
            f"the typical block and all requests together disagree: {shares}, so the {arm} arm stalls now and then, which the typical block does "
            "not show; find out why"
        )
    return (
        f"all requests together do not confirm the typical block: {shares}, so one arm may stall now and then; use a longer --time, or allow a "
        "longer latency"
    )
