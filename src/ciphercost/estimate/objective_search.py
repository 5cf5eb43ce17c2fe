"""Which rates the search for capacity at an objective tries next, from what both arms did at the rates tried so far. Pure.

It brackets each arm's capacity with blocks in which both arms have the same rate (phase `curve`). Then each arm gets the rate at
which it may just keep the objective (phase `objective`), moved after every block: stochastic approximation with gain 1/n and the
slope of the arm's own curve (Lai and Robbins 1979).

A rate is kept if no larger share of requests is slower than the objective's latency than the objective allows: p99 ≤ 5 ms exactly if at most
1 % take longer than 5 ms. The share is used, and not the quantile, because its mean does not depend on how many requests there are; the
quantile of few requests in a queue is too low. METHODOLOGY.md has the method and its limits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ciphercost.estimate.histogram import above, quantiles
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, decode, merge
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Phase
from ciphercost.plan.objective import Objective

START, DOWN, UP = 0.5, 0.5, 1.25
"""First rate of the search as a share of the plain arm's throughput in the closed loop, and its steps down and up."""
MOST_ABOVE = 4.0
"""Highest rate of the search, as a share of that throughput. In a closed loop few clients may ask for less than the server can do."""
FILLED = 0.8
"""Highest share of that throughput that the lowest rate may be."""
BRACKET = 1.15
"""Lowest rate not kept ÷ highest rate kept at which the search for an arm ends."""
GRID = (0.25, 0.5, 0.7, 0.85, 1.0, 1.15)
"""Rates of the load–latency curve, as shares of the higher of both arms' capacities."""
NEAR = 1.07
"""Rates within this factor are the same point of the curve."""
GRID_A_SESSION, GRID_ALONE = 2, 8
"""Most blocks of a session on the curve once both capacities are bracketed, those that bracketed them included; the same in a run of
one session."""
MOST_BLOCKS = 24
"""Most blocks of a search in a session that have not led to a bracket."""
STEP = 0.5
"""Distance between an arm's rate and its capacity, as a logarithm of the odds of a slow request."""
MOST_STEP = 0.1
"""Longest such distance, as a logarithm of the rate."""
SLOPES = (2.0, 300.0)
"""Lowest and highest slope that an arm's curve may have at the objective."""
USUAL_SLOPE = 15.0
"""Slope while there are too few points to show it."""
SPAN = math.log(10)
"""The bracket's slope is that between a tenth of the objective's odds and ten times these."""
PRIOR, MOST_CORRECTED = 4, 4.0
"""Pairs of blocks that the bracket's slope counts as, and the most by which pairs may correct it, as a factor."""
WINDOW, LEAST_NEAR = 3.0, 2
"""Steps from a session's capacity within which its blocks count, and the fewest such blocks."""
FARTHEST = math.log(30)
"""What lies farther from the objective's odds counts as this far: shares there are those of a few requests, or of nearly all."""
STEADY = 4.0
"""Standard deviations by which the number of answers may fall behind a Poisson process's requests before the rest counts as unanswered."""

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

    @property
    def share(self) -> float:
        return self.slow / self.requests if self.requests else 1.0

    def kept(self, objective: Objective) -> bool:
        return self.share <= 1 - objective.share


class Next(NamedTuple):
    """The next block of a search."""

    phase: Phase
    rates: dict[Arm, float]


# ── the statistic ─────────────────────────────────────────────────────────────────────────────────────────────────────


def latency(records: Sequence[SliceRecord], share: float) -> float:
    """The quantile, seconds, of the requests of an arm's slices; infinite if it lies among those without an answer.

    Raises UsageError if a histogram is damaged.
    """
    whole, lost = answers(records)
    done = whole.total if whole else 0
    position = share * (done + lost)
    if whole is None or position > done:
        return math.inf
    return float(quantiles(whole, [position / done])[0]) / 1e9


def slow(records: Sequence[SliceRecord], seconds: float) -> tuple[float, float]:
    """(requests slower than that many seconds, all requests) of an arm's slices. Raises UsageError if a histogram is damaged."""
    whole, lost = answers(records)
    if whole is None:
        return max(lost, 1.0), max(lost, 1.0)
    return above(whole, seconds * 1e9) + lost, whole.total + lost


def answers(records: Sequence[SliceRecord]) -> tuple[Histogram | None, float]:
    """Latencies of an arm's slices, None without any, and the number of requests without an answer.

    Failed operations have no answer. Neither have the requests by which the answers fall behind the rate, beyond what chance explains.
    """
    due, done, failed = 0.0, 0, 0
    decoded: list[Histogram] = []
    for record in records:
        agent = record.agent
        assert agent is not None
        due += record.rate * agent.seconds
        done += agent.operations
        failed += agent.errors
        if agent.operations:
            decoded.append(_decoded(record, agent.histogram))
    lost = failed + max(0.0, due - done - failed - STEADY * math.sqrt(due))
    return (merge(decoded) if decoded else None), lost


def _decoded(record: SliceRecord, text: str) -> Histogram:
    try:
        found = decode(text)
    except ValueError as error:
        raise UsageError(f"session {record.session}, block {record.block}: {error}") from None
    if record.agent is not None and found.total != record.agent.operations:
        raise UsageError(
            f"session {record.session}, block {record.block}, position {record.position}: the histogram holds {found.total} latencies, "
            f"but the slice has {record.agent.operations} operations"
        )
    return found


# ── one arm's curve ───────────────────────────────────────────────────────────────────────────────────────────────────


Pool = tuple[float, float, float]
"""Log rate, share of slow requests, and requests."""


def fitted(points: Sequence[Pool]) -> list[Pool]:
    """The points, of which the share rises with the rate, by centred isotonic regression: neighbours that fall are pooled.

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


def _together(blocks: Sequence[Tried]) -> Tried:
    """Several blocks as one, at the mean of their log rates."""
    first = blocks[0]
    rate = math.exp(sum(math.log(each.rate) for each in blocks) / len(blocks))
    counts = sum(each.slow for each in blocks), sum(each.requests for each in blocks)
    return Tried(first.session, first.block, first.phase, rate, *counts, first.length)


def _corrected(of: Tried) -> float:
    """The share of slow requests, as if half a request more were slow and half a request more were not."""
    return (of.slow + 0.5) / (of.requests + 1)


def logit(share: float) -> float:
    return math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)


class ArmSoFar:
    """One arm's rates and the shares of slow requests at them, and what they say of its capacity."""

    def __init__(self, tried: Sequence[Tried], objective: Objective) -> None:
        self.tried = tried
        self._objective = objective
        self._allowed = logit(1 - objective.share)
        self._pools = fitted([(math.log(each.rate), each.share, each.requests) for each in tried])
        self._curve = [(x, self._odds(share)) for x, share, _ in self._pools]
        """Log rate, and log odds of a slow request above those that the objective allows."""

    def _odds(self, share: float) -> float:
        return min(max(logit(share) - self._allowed, -FARTHEST), FARTHEST)

    def without(self, session: int) -> ArmSoFar:
        """What the other sessions say."""
        return ArmSoFar([each for each in self.tried if each.session != session], self._objective)

    @property
    def aimed(self) -> list[Tried]:
        """The blocks in which the arm had its own rate."""
        return [each for each in self.tried if each.phase == "objective"]

    def aimed_in(self, session: int) -> list[Tried]:
        """Those of a session: pairs, a step below and above one rate."""
        return [each for each in self.aimed if each.session == session]

    @property
    def kept(self) -> list[float]:
        return [each.rate for each in self.tried if each.kept(self._objective)]

    @property
    def not_kept(self) -> list[float]:
        return [each.rate for each in self.tried if not each.kept(self._objective)]

    @property
    def centre(self) -> float | None:
        """Log rate at which the curve reaches the objective; None if it does not."""
        return crossing(self._curve, 0.0)

    def kind(self) -> Kind:
        """Where the capacity lies, by the rates tried so far."""
        if not self.tried:
            return "unknown"
        if self.centre is not None:
            return "within"
        return "below" if self._curve[0][1] > 0 else "above"

    @functools.cached_property
    def slope(self) -> float:
        """Rise of the log odds of a slow request at the objective, for each unit of the logarithm of the rate.

        Of the pairs of blocks a step below and above the same rate: the odds of all lower blocks together against those of all upper
        ones. The bracket counts as PRIOR pairs. Rates that follow the results show a wrong slope: where blocks crowd around the objective,
        chance makes an isotonic curve a step. Within a pair, the rates follow nothing.
        """
        usual = self._bracket_slope()
        weight = PRIOR * (2 * step(usual)) ** 2
        pairs = [
            pair
            for session in {each.session for each in self.tried}
            for pair in _pairs(self.aimed_in(session))
            if self._surrounds(pair, usual)
        ]
        if not pairs:
            return usual
        lower, upper = (_together([pair[side] for pair in pairs]) for side in (0, 1))
        far = math.log(upper.rate / lower.rate)
        rise = self._odds(_corrected(upper)) - self._odds(_corrected(lower))
        found = (usual * weight + rise * far * len(pairs)) / (weight + far**2 * len(pairs))
        return min(max(found, SLOPES[0], usual / MOST_CORRECTED), SLOPES[1], usual * MOST_CORRECTED)

    def _surrounds(self, pair: Sequence[Tried], slope: float) -> bool:
        """Whether a pair's blocks lie near the capacity that all blocks show, where the curve has its slope."""
        if self.centre is None:
            return True
        middle = sum(math.log(each.rate) for each in pair) / len(pair)
        return abs(middle - self.centre) <= WINDOW * step(slope)

    def _bracket_slope(self) -> float:
        """The slope between the rates that were tried to bracket the capacity, around the objective."""
        own = [each for each in self.tried if each.phase == "curve"]
        curve = [
            (x, self._odds(share))
            for x, share, _ in fitted([(math.log(each.rate), _corrected(each), each.requests) for each in own])
        ]
        if len(curve) < 2:
            return USUAL_SLOPE
        low, high = (min(max(level, curve[0][1]), curve[-1][1]) for level in (-SPAN, SPAN))
        left, right = crossing(curve, low), crossing(curve, high)
        if left is None or right is None or right - left < 1e-9:
            return USUAL_SLOPE
        return min(max((high - low) / (right - left), SLOPES[0]), SLOPES[1])

    def near(self, blocks: Sequence[Tried]) -> list[Tried]:
        """Those of a session's blocks whose rates are near its capacity, as its own isotonic curve shows it; all, if those are few.

        The first blocks of a session may be far off, where the curve has another slope.
        """
        sessions = {each.session for each in blocks}
        own = fitted([(math.log(e.rate), e.share, e.requests) for e in self.tried if e.session in sessions])
        centre = crossing([(x, self._odds(share)) for x, share, _ in own], 0.0)
        if centre is None:
            return list(blocks)
        found = [each for each in blocks if abs(math.log(each.rate) - centre) <= WINDOW * step(self.slope)]
        return found if len(found) >= LEAST_NEAR else list(blocks)

    def capacity(self, blocks: Sequence[Tried], slope: float | None = None) -> float:
        """The log capacity that these blocks together show: that at which a logistic curve of this slope has as many slow requests.

        As if half a request more were slow, so that blocks without a slow one show a capacity too. `slope`: of this arm, if not given.
        """
        rates = np.log([each.rate for each in blocks])
        requests = np.array([each.requests for each in blocks])
        rise = self.slope if slope is None else slope
        count = min(sum(each.slow for each in blocks) + 0.5, float(requests.sum()) - 0.5)
        far = FARTHEST / rise
        low, high = float(rates.min()) - far, float(rates.max()) + far
        for _ in range(60):
            middle = (low + high) / 2
            expected = float(requests @ (1 / (1 + np.exp(-(self._allowed + rise * (rates - middle))))))
            low, high = (middle, high) if expected > count else (low, middle)
        return (low + high) / 2


# ── the search ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Search(NamedTuple):
    """What the search knows before its next block."""

    objective: Objective
    arms: Mapping[Arm, Sequence[Tried]]
    """All sessions so far, in order."""
    top: float
    """Operations per second of the plain arm in the closed loop."""
    lowest: float
    """The lowest rate that has enough requests for the quantile."""
    alone: bool
    """The run has one session."""

    def next(self, session: int) -> Next | None:
        """The next block of this session; None if nothing is left to find."""
        if too_slow(self.top, self.lowest):
            return None
        so_far = {arm: ArmSoFar(self.arms[arm], self.objective) for arm in ARMS}
        own = [each for each in self.arms["plain"] if each.session == session]
        curve = [each for each in own if each.phase == "curve"]
        if len(curve) < MOST_BLOCKS and (rate := self._bracketing(so_far)) is not None:
            return Next("curve", dict.fromkeys(ARMS, rate))
        centres = {arm: so_far[arm].centre for arm in ARMS}
        known = [each for each in centres.values() if each is not None]
        if not known:
            # The objective can't be kept, or is always kept: a block in each session shows whether that holds.
            return None if own else Next("curve", dict.fromkeys(ARMS, self._edge(so_far["plain"])))
        aimed = any(each.phase == "objective" for each in own)
        wanted = not aimed and len(curve) < (GRID_ALONE if self.alone else GRID_A_SESSION)
        if wanted and (rate := self._missing(math.exp(max(known)), so_far)) is not None:
            return Next("curve", dict.fromkeys(ARMS, rate))
        return Next("objective", {arm: self._aim(session, so_far[arm]) for arm in ARMS})

    def _bracketing(self, so_far: dict[Arm, ArmSoFar]) -> float | None:
        """The rate that narrows the wider bracket; None if both are narrow enough or can't be had."""
        wanted = []
        for arm in ARMS:
            kept, lost = so_far[arm].kept, so_far[arm].not_kept
            if not kept and not lost:
                return rounded(max(START * self.top, self.lowest))
            if not kept:
                if min(lost) > self.lowest * 1.001:
                    wanted.append((math.inf, max(DOWN * min(lost), self.lowest)))
            elif not lost:
                if max(kept) < MOST_ABOVE * self.top:
                    wanted.append((math.inf, UP * max(kept)))
            elif (wide := min(lost) / max(kept)) > BRACKET:
                wanted.append((wide, math.sqrt(min(lost) * max(kept))))
        return rounded(max(wanted)[1]) if wanted else None

    def _missing(self, highest: float, so_far: dict[Arm, ArmSoFar]) -> float | None:
        """The first rate of the curve near which both arms were not tried yet."""
        tried = [each.rate for each in so_far["plain"].tried if each.phase == "curve"]
        for share in GRID:
            rate = rounded(max(share * highest, self.lowest))
            if all(max(rate / each, each / rate) > NEAR for each in tried):
                return rate
        return None

    def _aim(self, session: int, arm: ArmSoFar) -> float:
        """The rate of an arm's next slices: its capacity as known, and by turns a step below and above."""
        if (centre := arm.centre) is None:
            return self._edge(arm)
        aimed, away = arm.aimed_in(session), step(arm.slope)
        # The two blocks of a pair surround one rate. What came before counts as one block.
        whole = aimed[: len(aimed) // 2 * 2]
        at = centre
        if whole:
            last = float(np.mean([math.log(each.rate) for each in whole[-2:]]))
            at = (centre + len(whole) * arm.capacity(arm.near(whole))) / (1 + len(whole))
            at = min(max(at, last - MOST_STEP), last + MOST_STEP)
        return rounded(max(math.exp(at + (away if len(aimed) % 2 else -away)), self.lowest))

    def _edge(self, arm: ArmSoFar) -> float:
        """The rate at which an arm without a capacity is tried again: the lowest if it kept none, else the highest."""
        rates = [each.rate for each in arm.tried] or [self.lowest]
        return min(rates) if arm.kind() == "below" else max(rates)


def _pairs(aimed: Sequence[Tried]) -> list[tuple[Tried, Tried]]:
    return list(zip(aimed[::2], aimed[1::2], strict=False))


def step(slope: float) -> float:
    """Distance of a block's rate from the capacity, as a logarithm."""
    return min(STEP / slope, MOST_STEP)


def too_slow(top: float, lowest: float) -> bool:
    """Whether the lowest rate that has enough requests is about as much as the plain arm can do at all."""
    return lowest > FILLED * top


def rounded(rate: float) -> float:
    """The rate with four significant digits."""
    return float(f"{rate:.4g}")
