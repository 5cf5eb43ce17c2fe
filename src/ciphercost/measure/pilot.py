"""pilot: what the short slices at the beginning of a cell say: each arm's capacity, and how long counted slices must be. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule

Taken = list[tuple[AgentSlice, float]]
"""One arm's answers, each with the seconds that it took."""


class Pilot:
    """The slices of a pilot. Whoever runs one adds its log rate to `rates`, and its answer with its time to `took`."""

    def __init__(self) -> None:
        self.rates: dict[Arm, list[float]] = {arm: [] for arm in ARMS}
        self.took: dict[Arm, Taken] = {arm: [] for arm in ARMS}

    def capacity(self) -> dict[str, float]:
        """Operations per second of each arm that has any, as the facts name them."""
        names: dict[Arm, str] = {"plain": "pilot_per_s", "encrypted": "pilot_encrypted_per_s"}
        return {names[arm]: float(np.exp(np.mean(rates))) for arm, rates in self.rates.items() if rates}

    def slice_length(
        self,
        length: float,
        budget: schedule.Budget,
        clients: int,
        slowest: Callable[[Taken, int], float] | None,
    ) -> float:
        """Seconds of a counted slice. `length`: of the pilot's; `slowest`: seconds of an arm's slowest usual operation."""
        shortest = min(map(len, self.rates.values()))
        return schedule.choose_slice_length(
            np.array([self.rates["plain"][:shortest], self.rates["encrypted"][:shortest]]).T,
            length,
            session_seconds=budget.capacity_s or budget.latency_s,
            min_blocks=budget.min_blocks,
            clients=clients,
            slowest=max(slowest(slices, clients) for slices in self.took.values()) if slowest else 0.0,
        )
