"""new_estimate: how long a cell's load takes, once the pilot knows how slow its operations are."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.measure.progress import Display
from ciphercost.model.facts import CellFacts
from ciphercost.plan import schedule, settled

WORTH_SAYING = 1.3
"""Times the planned load that the new estimate must be before it is printed; and SECONDS_MORE at least."""
SECONDS_MORE = 5.0
FAST = 0.05
"""Operations shorter than this, in seconds, end within their slice."""
OPEN_LOOP = 0.6
"""The usual rate of the latency phase, as a share of the plain arm's capacity."""


def operation_seconds(capacity: Mapping[str, float], clients: int) -> float:
    """Seconds that an operation of the slower arm takes, by the pilot's rates. 0: unknown."""
    slowest = min(capacity.values(), default=0.0)
    return clients / slowest if slowest else 0.0


def load_seconds(budget: schedule.Budget, slice_seconds: float, capacity: Mapping[str, float], clients: int) -> float:
    """Seconds of load of the whole cell. A slice ends when its last operation does, and each phase needs so many blocks."""
    operation = operation_seconds(capacity, clients)
    if operation < FAST:
        return budget.total_s
    least = min(budget.min_blocks, schedule.MIN_BLOCKS)

    def phase(seconds: float, length: float) -> float:
        if not seconds:
            return 0.0
        block = schedule.SLICES_A_BLOCK * length + 5 * operation
        return max(least, int(seconds // (schedule.SLICES_A_BLOCK * length))) * block

    longest = max(budget.warmup_s, budget.warmup_limit_s)
    warm_up = max(budget.warmup_s, min(longest, 2 * settled.WARMUP_POINTS * operation))
    rate = OPEN_LOOP * capacity.get("pilot_per_s", 0.0)
    open_length = schedule.latency_slice_length(budget.latency_s, rate, slice_seconds)
    session = warm_up + phase(budget.capacity_s, slice_seconds) + phase(budget.latency_s, open_length)
    return budget.pilot_s + budget.sessions * (session + budget.objective_s + budget.profile_s)


def say(display: Display, number: int, facts: CellFacts, budget: schedule.Budget) -> None:
    """Report how long a cell's load takes if its operations are too slow for the plan. Not under a limit, where they wait."""
    if facts.spec.max_rate:
        return
    now = load_seconds(budget, facts.slice_seconds, facts.capacity, facts.clients)
    if now > max(WORTH_SAYING * budget.total_s, budget.total_s + SECONDS_MORE):
        display.expect(number, now, operation_seconds(facts.capacity, facts.clients))
