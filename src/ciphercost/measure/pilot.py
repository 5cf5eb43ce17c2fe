"""pilot: what the short slices at the beginning of a cell say: each arm's capacity, and how long counted slices must be. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule

Taken = list[tuple[AgentSlice, float]]
"""One arm's answers, each with the seconds that it took."""


def log_rate(answer: AgentSlice) -> float:
    """Natural logarithm of a slice's operations per second, parts of operations included."""
    return math.log(max(answer.done, 1e-3) / answer.seconds)


class Pilot:
    """The slices of a pilot. Whoever runs one adds its answer, with the time that it took, to `took`."""

    def __init__(self) -> None:
        self.took: dict[Arm, Taken] = {arm: [] for arm in ARMS}

    def rates(self, arm: Arm) -> list[float]:
        """Log rates of an arm's slices, in time order."""
        return [log_rate(answer) for answer, _ in self.took[arm]]

    def capacity(self) -> dict[str, float]:
        """Operations per second of each arm that has any, as the facts name them."""
        names: dict[Arm, str] = {"plain": "pilot_per_s", "encrypted": "pilot_encrypted_per_s"}
        return {names[arm]: float(np.exp(np.mean(self.rates(arm)))) for arm in ARMS if self.took[arm]}

    def slice_length(
        self,
        length: float,
        budget: schedule.Budget,
        clients: int,
        slowest: Callable[[Taken, int], float] | None,
    ) -> float:
        """Seconds of a counted slice. `length`: of the pilot's; `slowest`: seconds of an arm's slowest usual operation."""
        pairs = list(zip(self.rates("plain"), self.rates("encrypted"), strict=False))
        return schedule.choose_slice_length(
            np.array(pairs),
            length,
            session_seconds=budget.capacity_s or budget.latency_s,
            min_blocks=budget.min_blocks,
            clients=clients,
            slowest=max(slowest(slices, clients) for slices in self.took.values()) if slowest else 0.0,
        )
