"""search: the blocks of a session's search for capacity at an objective: how many, how long, at which rates. No statistics."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.measure.stopping import Stopping
from ciphercost.model.spec import Arm, Phase
from ciphercost.plan import latency_objective, schedule
from ciphercost.plan.latency_objective import Objective

MOST_BLOCKS = 200
"""Most blocks of a session, so that blocks that fail again and again end."""


class Step(NamedTuple):
    """A block to run."""

    phase: Phase
    rates: dict[Arm, float]
    """Requests per second of each arm."""
    length: float
    """Of a counted slice, seconds."""


class Steps:
    """The blocks of one session. Whoever runs one adds the seconds that it took to `spent`."""

    def __init__(self, of: Objective, budget: schedule.Budget, usual: float) -> None:
        """`usual`: length of a slice in the closed loop, seconds."""
        self.spent = 0.0
        self._objective, self._budget, self._usual = of, budget, usual
        self._blocks = self._aimed = 0

    def next(self, statistics: Stopping, session: int) -> Step | None:
        """The next block; None if the session has had its time and enough blocks, or if nothing is left to find."""
        lowest = latency_objective.lowest_rate(self._objective, self._budget.objective_s, self._usual)
        next_block = statistics.next_of_search(session, lowest, alone=self._budget.sessions == 1)
        if next_block is None or self._blocks >= MOST_BLOCKS:
            return None
        phase, rates = next_block
        length = max(
            latency_objective.slice_length(self._objective, rate, self._budget.objective_s, self._usual)
            for rate in rates.values()
        )
        over = self.spent + schedule.SLICES_A_BLOCK * length > self._budget.objective_s
        if over and self._aimed >= schedule.MIN_BLOCKS:
            return None
        self._blocks += 1
        self._aimed += phase == "objective"
        return Step(phase, rates, length)
