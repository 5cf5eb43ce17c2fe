"""Which rates the search for capacity at an objective tries next, from what both arms did at the rates tried so far. Pure.

It brackets each arm's capacity with blocks in which both arms have the same rate (phase `curve`). Then each arm gets the rate at
which it may just keep the objective (phase `objective`), by turns a step below and a step above the capacity that its curve shows so far.
METHODOLOGY.md has the method and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ciphercost.estimate.objective_curve import ArmSoFar, Tried
from ciphercost.model.spec import ARMS, Arm, Phase
from ciphercost.plan.latency_objective import Objective

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
STEP = 0.6
"""Distance between an arm's rate and its capacity, as a score in units of the highest."""
MOST_STEP = 0.08
"""Longest such distance, as a logarithm of the rate."""


class Next(NamedTuple):
    """The next block of a search."""

    phase: Phase
    rates: dict[Arm, float]


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
        in_session = [block for block in self.arms["plain"] if block.session == session]
        curve = [block for block in in_session if block.phase == "curve"]
        if (rate := self._bracketing(so_far, len(curve))) is not None:
            return Next("curve", dict.fromkeys(ARMS, rate))
        centres = {arm: so_far[arm].centre for arm in ARMS}
        known = [centre for centre in centres.values() if centre is not None]
        if not known:
            # The objective can't be kept, or is always kept: a block in each session shows whether that holds.
            return None if in_session else Next("curve", dict.fromkeys(ARMS, self._edge(so_far["plain"])))
        aimed = any(block.phase == "objective" for block in in_session)
        wanted = not aimed and len(curve) < (GRID_ALONE if self.alone else GRID_A_SESSION)
        if wanted and (rate := self._missing(math.exp(max(known)), so_far)) is not None:
            return Next("curve", dict.fromkeys(ARMS, rate))
        return Next("objective", {arm: self._aim(session, so_far[arm]) for arm in ARMS})

    def _bracketing(self, so_far: dict[Arm, ArmSoFar], blocks: int) -> float | None:
        """The rate that narrows the wider bracket; None if both are narrow enough or can't be had. `blocks`: of this session on the curve.

        A bracket is that of an arm's curve, and not of single blocks: a stall makes any rate look too high.
        """
        wanted = []
        for arm in ARMS:
            kept = [x for x, score in so_far[arm].curve if score <= 0]
            lost = [x for x, score in so_far[arm].curve if score > 0]
            tried = [block.rate for block in so_far[arm].tried]
            if not tried:
                return rounded(max(START * self.top, self.lowest))
            if not kept:
                if blocks < MOST_BLOCKS and min(tried) > self.lowest * 1.001:
                    wanted.append((math.inf, max(DOWN * min(tried), self.lowest)))
            elif not lost:
                if blocks < MOST_BLOCKS and max(tried) < MOST_ABOVE * self.top:
                    wanted.append((math.inf, UP * max(tried)))
            elif blocks < GRID_ALONE and (wide := math.exp(lost[0] - kept[-1])) > BRACKET:
                wanted.append((wide, math.exp((lost[0] + kept[-1]) / 2)))
        return rounded(max(wanted)[1]) if wanted else None

    def _missing(self, highest: float, so_far: dict[Arm, ArmSoFar]) -> float | None:
        """The first rate of the curve near which both arms were not tried yet."""
        tried = [block.rate for block in so_far["plain"].tried if block.phase == "curve"]
        for share in GRID:
            rate = rounded(max(share * highest, self.lowest))
            if all(max(rate / earlier, earlier / rate) > NEAR for earlier in tried):
                return rate
        return None

    def _aim(self, session: int, arm: ArmSoFar) -> float:
        """The rate of an arm's next slices: by turns a step below and a step above its capacity as known.

        The two blocks of a pair surround one rate: what the first shows does not move the second.
        """
        second = sum(block.session == session for block in arm.aimed) % 2 == 1
        known = ArmSoFar(arm.tried[:-1], self.objective) if second else arm
        if known.centre is None:
            return self._edge(arm)
        tried = [math.log(block.rate) for block in known.tried]
        capacity = min(max(known.fit.capacity, min(tried)), max(tried))
        step = min(STEP * known.farthest / known.fit.slope, MOST_STEP)
        return rounded(max(math.exp(capacity + (step if second else -step)), self.lowest))

    def _edge(self, arm: ArmSoFar) -> float:
        """The rate at which an arm without a capacity is tried again: the lowest if it kept none, else the highest."""
        rates = [block.rate for block in arm.tried] or [self.lowest]
        return min(rates) if arm.kind() == "below" else max(rates)


def too_slow(top: float, lowest: float) -> bool:
    """Whether the lowest rate that has enough requests is about as much as the plain arm can do at all."""
    return lowest > FILLED * top


def rounded(rate: float) -> float:
    """The rate with four significant digits."""
    return float(f"{rate:.4g}")
