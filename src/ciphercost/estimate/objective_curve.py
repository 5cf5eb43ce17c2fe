"""One arm's rates, how far its requests were from the objective at each, and the curve through them, which shows its capacity. Pure.

A block's score is the logarithm of its share of slow requests, less that of the share allowed, and limited on both sides. So each block counts
alike, whatever befell it: near its capacity an arm has hardly a slow request in most blocks, and in some of them a queue that makes a tenth of
all requests slow. The capacity is where the curve through the scores is 0: about where half of the blocks keep the objective. On M/M/1 the
logarithm of the share rises in proportion to the rate.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ciphercost.estimate.tally import Floats
from ciphercost.model.spec import Phase
from ciphercost.plan.latency_objective import Objective

FARTHEST = math.log(30)
"""Highest score of any objective. Shares that are farther from the allowed one are those of a few requests, or of very many."""
SLOPES = (2.0, 300.0)
"""Lowest and highest slope that an arm's curve may have at the objective."""
USUAL_SLOPE = 20.0
"""Slope while there are too few blocks to show it."""
PRIOR = 0.3
"""Precision of its logarithm, among squared differences of scores in units of the highest."""
MOST_ITERATIONS = 200
"""Of a fit. Ten or twenty are usual."""
GROUPS = 20
"""Blocks are taken together, so that each arm has hardly more groups of them than this."""

Booleans = npt.NDArray[np.bool_]
Kind = Literal["within", "below", "above", "unknown"]
"""An arm's capacity lies between rates that were tried, below the lowest, or above the highest; `unknown`: not bracketed yet."""


class Tried(NamedTuple):
    """What an arm did in its two slices of a block."""

    session: int
    block: int
    phase: Phase
    rate: float
    """Requests per second."""
    slow: float
    """Requests slower than the objective's latency, those without an answer included."""
    requests: float
    """All requests."""
    length: float
    """Of a slice, seconds."""
    late: float
    """Requests slower than `Objective.late`, those without an answer included."""
    later: float
    """Requests slower than `Objective.later`, those without an answer included."""


Pool = tuple[float, float, float]
"""Log rate, score, and weight."""


def fitted(points: Sequence[Pool]) -> list[Pool]:
    """The points, of which the score rises with the rate, by centred isotonic regression: neighbours that fall are pooled.

    Oron and Flournoy, "Centered isotonic regression: point and interval estimation for dose–response studies" (2017): a pool stands at the
    mean rate of its points, and between pools the curve is straight.
    """
    pools: list[Pool] = []
    for point in sorted(points):
        pools.append(point)
        while len(pools) > 1 and (pools[-1][1] < pools[-2][1] or pools[-1][0] == pools[-2][0]):
            (a, b, n), (c, d, m) = pools[-2:]
            pools[-2:] = [((a * n + c * m) / (n + m), (b * n + d * m) / (n + m), n + m)]
    return pools


def crossing(curve: Sequence[tuple[float, float]], level: float) -> float | None:
    """Where a rising curve of points (x, y) reaches a level; None if it does not."""
    for (x, y), (following, higher) in itertools.pairwise(curve):
        if y <= level <= higher and y < higher:
            return x + (level - y) / (higher - y) * (following - x)
    return None


class Fit(NamedTuple):
    """A curve of scores: farthest · tanh(slope · x / farthest), x above the capacity, farthest as in `ArmSoFar`."""

    capacity: float
    """Log rate at which the score is 0."""
    slope: float
    """Rise of the score there, for each unit of the logarithm of the rate."""

    def score(self, rate: float, farthest: float) -> float:
        """The curve at a log rate."""
        return farthest * math.tanh(self.slope * (rate - self.capacity) / farthest)


def farthest(objective: Objective) -> float:
    """Highest score of an objective, and lowest."""
    return min(FARTHEST, -math.log(objective.allowed))


class ArmSoFar:
    """One arm's rates and scores, and what they say of its capacity."""

    def __init__(self, tried: Sequence[Tried], objective: Objective) -> None:
        self.tried = tried
        self._allowed = objective.allowed
        self.farthest = farthest(objective)
        """Highest score, and lowest."""
        self.curve = [
            (x, score) for x, score, _ in fitted([(math.log(block.rate), self.score(block), 1.0) for block in tried])
        ]
        """Log rates and scores, of which the score rises."""
        self.groups = grouped(tried)
        self._rates = np.log([group.rate for group in self.groups])
        self._scores = np.array([self.score(group) for group in self.groups])

    def score(self, of: Tried) -> float:
        """Of a block, as if half a request more were slow and half a request more were not."""
        return min(max(math.log((of.slow + 0.5) / (of.requests + 1) / self._allowed), -self.farthest), self.farthest)

    @property
    def aimed(self) -> list[Tried]:
        """The blocks in which the arm had its own rate."""
        return [block for block in self.tried if block.phase == "objective"]

    @property
    def centre(self) -> float | None:
        """Log rate at which the curve reaches the objective; None if it does not."""
        return crossing(self.curve, 0.0)

    def kind(self) -> Kind:
        """Where the capacity lies, by the rates tried so far."""
        if not self.tried:
            return "unknown"
        if self.centre is not None:
            return "within"
        return "below" if self.curve[0][1] > 0 else "above"

    def shows(self) -> bool:
        """Whether the capacity is among the rates that were tried: a curve goes no further."""
        return self.kind() == "within" and bool(self._rates.min() <= self.fit.capacity <= self._rates.max())

    @functools.cached_property
    def fit(self) -> Fit:
        """The curve of all groups of blocks."""
        slopes = np.geomspace(*SLOPES, 24)
        capacities = np.linspace(self._rates.min() - 0.1, self._rates.max() + 0.1, 160)
        expected = np.tanh(slopes[:, None, None] * (self._rates - capacities[:, None]) / self.farthest)
        cost = ((self._scores / self.farthest - expected) ** 2).sum(axis=2) + PRIOR * np.log(slopes / USUAL_SLOPE)[
            :, None
        ] ** 2
        slope, capacity = np.unravel_index(int(np.argmin(cost)), cost.shape)
        start = Fit(float(capacities[capacity]), float(slopes[slope]))
        return _least_squares(self._rates, self._scores, self.farthest, start)

    def without(self, out: Booleans) -> float:
        """The log capacity, without the groups whose entries in `out` are true."""
        return _least_squares(self._rates[~out], self._scores[~out], self.farthest, self.fit).capacity


def grouped(tried: Sequence[Tried]) -> list[Tried]:
    """The blocks, those with a rate of the arm's own in groups of neighbours in a session and on the same side of the capacity.

    With many blocks, a group is long enough to have its share of the requests that wait in rare long queues. With few, each stands for itself.
    Two arms of the same blocks have the same groups.
    """
    aimed = [block for block in tried if block.phase == "objective"]
    size = max(1, len(aimed) // GROUPS)
    groups = [block for block in tried if block.phase != "objective"]
    for session in dict.fromkeys(block.session for block in aimed):
        in_session = [block for block in aimed if block.session == session]
        for side in (in_session[::2], in_session[1::2]):
            groups += [_together(side[at : at + size]) for at in range(0, len(side), size)]
    return groups


def _together(blocks: Sequence[Tried]) -> Tried:
    """Several blocks as one, at the mean of their log rates."""
    rate = math.exp(sum(math.log(block.rate) for block in blocks) / len(blocks))
    return blocks[0]._replace(
        rate=rate,
        slow=sum(block.slow for block in blocks),
        requests=sum(block.requests for block in blocks),
        late=sum(block.late for block in blocks),
        later=sum(block.later for block in blocks),
    )


def _least_squares(rates: Floats, scores: Floats, farthest: float, start: Fit) -> Fit:
    """The least squares nearest to a curve, with a prior of the slope (Levenberg 1944, Marquardt 1963)."""
    usual, (low, high) = math.log(USUAL_SLOPE), np.log(SLOPES)

    def missed(capacity: float, slope: float) -> tuple[Floats, Floats, float]:
        curve = np.tanh(math.exp(slope) * (rates - capacity) / farthest)
        away = scores / farthest - curve
        return curve, away, float(away @ away) + PRIOR * (slope - usual) ** 2

    capacity, slope, damping = start.capacity, math.log(start.slope), 1e-2
    curve, away, now = missed(capacity, slope)
    for _ in range(MOST_ITERATIONS):
        steep = math.exp(slope) / farthest * (1 - curve**2)
        by_slope = steep * (rates - capacity)
        a, b, c = float(steep @ steep), -float(steep @ by_slope), float(by_slope @ by_slope) + PRIOR
        p, q = -float(steep @ away), float(by_slope @ away) + PRIOR * (usual - slope)
        a, c = a * (1 + damping) + 1e-9, c * (1 + damping)
        determinant = a * c - b * b
        farther = capacity + min(max((c * p - b * q) / determinant, -0.05), 0.05)
        steeper = min(max(slope + min(max((a * q - b * p) / determinant, -0.7), 0.7), low), high)
        then = missed(farther, steeper)
        if then[2] < now - 1e-10:
            capacity, slope, damping = farther, steeper, damping / 5
            curve, away, now = then
        else:
            damping *= 10
            if damping > 1e6:
                break
    return Fit(capacity, math.exp(slope))
