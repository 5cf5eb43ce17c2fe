"""The new estimate of a cell's time, once the pilot knows that its operations are slow."""

from __future__ import annotations

import pytest

from ciphercost.measure import new_estimate
from ciphercost.measure.progress import Display
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule
from ciphercost.report.progress import slower

CELL = CellSpec("url", "tls", workload="page", url="http://localhost/ https://localhost/")


class Heard(Display):
    def __init__(self) -> None:
        self.estimates: list[tuple[float, float]] = []

    def expect(self, cell: int, load_seconds: float, operation_s: float) -> None:
        self.estimates.append((load_seconds, operation_s))


@pytest.mark.parametrize(("rate", "slice_seconds", "told"), [(10_000.0, 0.1, False), (4 / 0.7, 1.5, True)])
def test_slow_operations_make_a_run_longer_and_it_says_so(rate: float, slice_seconds: float, told: bool) -> None:
    spec = Spec([CELL], mode="quick", sessions=1, time=8.0, latency=False)
    budget = schedule.budget(spec, CELL)
    facts = CellFacts(CELL, clients=4, slice_seconds=slice_seconds)
    facts.capacity = {"pilot_per_s": rate, "pilot_encrypted_per_s": rate}
    heard = Heard()
    new_estimate.say(heard, 0, facts, budget)
    assert bool(heard.estimates) == told
    if told:
        ((seconds, operation),) = heard.estimates
        assert operation == pytest.approx(0.7)
        # Each of the blocks that a session needs has five slices, which wait for their last operation.
        assert seconds > schedule.MIN_BLOCKS * 5 * (slice_seconds + operation) * 0.9
        assert seconds > budget.total_s
        text = slower("url:tls page", 95.0, 0.7)
        assert text.startswith("url:tls page: ")
        assert " 0.7 s, so its load takes about " in text


def test_under_a_limit_operations_wait_for_their_turn() -> None:
    facts = CellFacts(CELL.__class__("url", "tls", max_rate=5.0, regime="latency"), clients=4, slice_seconds=1.0)
    facts.capacity = {"pilot_per_s": 5.0}
    heard = Heard()
    new_estimate.say(heard, 0, facts, schedule.budget(Spec([CELL], mode="quick", sessions=1, time=8.0), CELL))
    assert heard.estimates == []
