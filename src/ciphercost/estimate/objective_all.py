"""Whether all requests together show the same as the typical block, which decides a capacity at an objective. Pure.

A block counts alike whatever befell it, so stalls of one arm that are rarer than blocks hardly move its capacity, and still make more of its
requests slow than the objective allows. They show in two ways:

- below the capacities, where a queue alone makes few requests slow. How few depends on the arm: a slower one has more of them at the same
  distance from its capacity. So what each arm's own curve explains is taken off first.
- as requests that are so late that hardly a queue explains them, near the capacities too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.notation import number
from ciphercost.estimate.objective_curve import Fit, Tried, farthest
from ciphercost.estimate.statistics import LEVEL, Interval
from ciphercost.estimate.tally import Floats
from ciphercost.model.objective_capacity import AllRequests
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule
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
TIMES_RARER = (100.0, 1e6)
"""How many times rarer than allowed a queue at its capacity has late requests, and later ones."""
ABOVE = 0.1
"""Distance above the capacities, as a logarithm of the rate, up to which later requests show a stall. The rates tried there are not farther."""
STALLED = 0.1
"""Late requests from which a block, or an arm, has stalled, in units of the share that the objective allows."""
ALMOST = 0.999
"""Largest part of the share allowed that stalls may take in a widened interval: with all of it there is no capacity."""


Units = npt.NDArray[np.int64]


def judged(
    arms: Mapping[Arm, Sequence[Tried]], of: Objective, fits: Mapping[Arm, Fit], *, by_session: bool
) -> AllRequests | None:
    """The shares of slow requests of both arms in the blocks below both capacities, and whether they may be alike, apart from what their curves
    explain; and whether one arm alone has stalled.

    The interval is t over sessions, or the widest of those over blocks. None with too few of them.
    """
    below = _blocks(arms, fits, -BELOW)
    units = _units([both[0] for both in below], by_session=by_session)
    if units is None:
        return None
    shares, beyond, values = [], [], []
    for arm, blocks in zip(ARMS, zip(*below, strict=True), strict=True):
        share, more, parts = _share(blocks, fits[arm], units, of)
        shares.append(share)
        beyond.append(more)
        values.append(parts)
    difference: Floats = values[1] - values[0]
    centre = beyond[1] - beyond[0]
    low, high = interval(difference, centre, by_session=by_session).bounds()
    around = _blocks(arms, fits, ABOVE)
    lates = [_late([block.late for block in blocks], blocks, of) for blocks in zip(*below, strict=True)]
    laters = [_late([block.later for block in blocks], blocks, of) for blocks in zip(*around, strict=True)]
    alone = [one_alone(*both) for both in (lates, laters)]
    plain, encrypted = laters if alone[1] or not alone[0] else lates
    return AllRequests(
        plain=shares[0],
        encrypted=shares[1],
        low=low,
        high=high,
        blocks=len(below),
        agree=low <= LITTLE and high >= -LITTLE and max(-low, high) < most(min(shares)) and not any(alone),
        late_plain=plain.share,
        late_encrypted=encrypted.share,
        stalled_plain=plain.blocks,
        stalled_encrypted=encrypted.blocks,
        watched_s=sum(2 * (1 - schedule.DISCARD) * block.length for block, _ in around),
    )


def most(smaller: float) -> float:
    """Largest difference that lets a ratio stand. `smaller`: of both arms' shares of slow requests; all in units of the share allowed."""
    return max(MOST, TIMES * smaller) if smaller >= BOTH else MOST


def widened(typical: Interval, of: AllRequests, fits: Mapping[Arm, Fit]) -> Interval:
    """The log ratio of the capacities that all requests give, widened where necessary to contain the typical block's.

    If stalls make a share d of the allowed requests slow, a queue may only make 1 − d slow, so the capacity is log(1 − d) ÷ slope lower. d is the
    difference of the arms, so what stalls both cancels. Its error and that of the typical ratio are taken as independent.
    """
    limit = most(min(of.plain, of.encrypted))

    def lower(difference: float) -> float:
        arm: Arm = "encrypted" if difference > 0 else "plain"
        shift = math.log1p(-min(abs(difference) / limit, ALMOST)) / fits[arm].slope
        return shift if difference > 0 else -shift

    shift = lower((of.low + of.high) / 2)
    half = max(shift - lower(of.high), lower(of.low) - shift)
    errors = tuple(
        error._replace(standard=math.hypot(error.standard, half / student_t.quantile((1 + LEVEL) / 2, error.nu)))
        for error in typical.errors
    )
    return typical._replace(mean=typical.middle + shift, errors=errors)


def lowered(tried: Sequence[Tried], of: Objective, fit: Fit | None, *, by_session: bool) -> float:
    """How far the low end of one arm's log capacity lies lower because of all its requests, at most 0: −inf if they may not keep the objective.

    `fit`: None: the typical block keeps it at all rates that were tried. 0 with too few blocks.
    """
    below = [block for block in tried if fit is None or math.log(block.rate) < fit.capacity - BELOW]
    units = _units(below, by_session=by_session)
    if units is None:
        return 0.0
    _, beyond, parts = _share(below, fit, units, of)
    high = interval(parts, beyond, by_session=by_session).bounds()[1]
    if high >= MOST:
        return -math.inf
    return math.log1p(-max(high, 0.0)) / fit.slope if fit else 0.0


def interval(values: Floats, centre: float, *, by_session: bool, most_nu: int | None = None) -> Interval:
    """The interval of a centre from the values of sessions, or of blocks."""
    if by_session:
        return statistics.session_interval(values, centre, most_nu)
    return statistics.block_interval(values, centre)


def explained(fit: Fit, rate: float, of: Objective) -> float:
    """Share of slow requests that the arm's curve has at a rate below its capacity, in units of the share that the objective allows."""
    return math.exp(fit.score(math.log(rate), farthest(of)))


class Late(NamedTuple):
    """An arm's late requests."""

    share: float
    """In units of the share that the objective allows."""
    blocks: int
    """How many blocks have stalled."""


def one_alone(plain: Late, encrypted: Late) -> bool:
    """Whether one arm alone has stalled. A machine that stalls both does so in blocks of both."""
    return abs(encrypted.share - plain.share) >= STALLED and not min(plain.blocks, encrypted.blocks)


def _late(counts: Sequence[float], tried: Sequence[Tried], of: Objective) -> Late:
    requests = [block.requests * of.allowed for block in tried]
    blocks = sum(count > STALLED * allowed for count, allowed in zip(counts, requests, strict=True))
    return Late(sum(counts) / sum(requests), blocks)


def _blocks(arms: Mapping[Arm, Sequence[Tried]], fits: Mapping[Arm, Fit], distance: float) -> list[tuple[Tried, ...]]:
    """What both arms did in the blocks in which neither's log rate was farther than that above its capacity."""
    return [
        both
        for both in zip(*(arms[arm] for arm in ARMS), strict=True)
        if all(math.log(block.rate) < fits[arm].capacity + distance for arm, block in zip(ARMS, both, strict=True))
    ]


def _units(tried: Sequence[Tried], *, by_session: bool) -> Units | None:
    """The number of each block's session, or of the block, shape (blocks,); None with too few of them for an interval."""
    named = [block.session if by_session else index for index, block in enumerate(tried)]
    units = np.unique(np.array(named, dtype=np.int64), return_inverse=True)[1]
    return units if len(units) and units.max() + 1 >= LEAST_UNITS else None


def _share(tried: Sequence[Tried], fit: Fit | None, units: Units, of: Objective) -> tuple[float, float, Floats]:
    """The share of an arm's slow requests ÷ the share allowed, the same beyond what its curve explains (None: nothing), and each unit's part in
    the latter (delta method), shape (units,).
    """
    expected = [block.requests * of.allowed * explained(fit, block.rate, of) if fit else 0.0 for block in tried]
    slow, requests = (
        np.bincount(units, counts) for counts in ([block.slow for block in tried], [block.requests for block in tried])
    )
    more = slow - np.bincount(units, expected)
    share = float(more.sum() / requests.sum())
    parts: Floats = (share + (more - share * requests) / requests.mean()) / of.allowed
    return float(slow.sum() / requests.sum()) / of.allowed, share / of.allowed, parts


def reason(of: AllRequests, objective: str) -> str:
    """Why there is no ratio although the typical block gives each arm a capacity."""
    name = objective.partition("=")[0]
    if one_alone(Late(of.late_plain, of.stalled_plain), Late(of.late_encrypted, of.stalled_encrypted)):
        arm, blocks, share = max(
            ("plain", of.stalled_plain, of.late_plain),
            ("encrypted", of.stalled_encrypted, of.late_encrypted),
            key=lambda stalled: stalled[2],
        )
        return (
            f"the typical block and all requests together disagree: {blocks} {'block' if blocks == 1 else 'blocks'} of the {arm} arm alone "
            f"had requests that no queue explains ({number(share)} times the share of slow ones that {name} allows), so that arm, or the "
            "machine, stalls now and then, which the typical block does not show; find out why, or use a longer --time"
        )
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
