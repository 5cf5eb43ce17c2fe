"""warm_up: when a session's warm-up is over. Pure."""

from __future__ import annotations

import numpy as np

from ciphercost.model.errors import RunError
from ciphercost.model.result import Warning_
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule, settled


class NoSteadyState(RunError):
    """The warm-up ended without a steady level to measure at."""


class WarmUp:
    """The slices of a warm-up. Whoever runs one adds its log rate to `rates`."""

    def __init__(self, budget: schedule.Budget, *, steady_by_itself: bool, coarse: bool = False) -> None:
        """`steady_by_itself`: the load has a limited rate. `coarse`: slices are so long that a warm-up has a few only; then its time
        decides, and what is not steady shows in the slices that count.
        """
        self.rates: dict[Arm, list[float]] = {arm: [] for arm in ARMS}
        self._budget = budget
        self._steady_by_itself = steady_by_itself
        self._coarse = coarse

    def ended(self, spent: float, step: int, *, warm: bool) -> tuple[bool, Warning_ | None]:
        """Whether it is over after `step` slices of each arm, which took `spent` seconds in all, and what it warns of then.

        `warm`: the agent no longer compiles. Raises NoSteadyState if there is no level to measure at.
        """
        if self._coarse:
            return spent >= self._budget.warmup_s, None
        rates = self.rates
        steady = self._steady_by_itself or settled.steady(np.array(rates["plain"]), np.array(rates["encrypted"]))
        if spent >= self._budget.warmup_s and steady and warm:
            return True, None
        if spent < self._budget.warmup_limit_s:
            return False, None
        if steady:
            text = "Java was still compiling when the warm-up ended; use a longer --time"
            return True, Warning_("warmup-jit", text)
        if step < settled.WARMUP_POINTS:
            # One slow operation outlasts a slice, and the number of slices that the steadiness test needs would take minutes.
            text = (
                f"operations take {spent / (2 * step):.2g} s: the warm-up had {step} slices per arm, too few to "
                "check whether the throughput was steady; use a longer --time"
            )
            return True, Warning_("warm-up-short", text)
        raise NoSteadyState(
            f"after {spent:.0f} s of warm-up the throughput is still not steady; use a longer --time, or check "
            "what else runs on this machine"
        )
