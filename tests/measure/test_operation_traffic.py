"""Traffic beside an operator's task: its operations that fail are no slower traffic."""

from __future__ import annotations

import threading
from typing import Any, cast

import msgspec
import pytest

from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext
from ciphercost.measure.operations.traffic import WithTraffic
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm

ANSWER = AgentSlice("plain", 0.1, 100, 0, 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, "")


class Load:
    """Gives one answer before the task and the other during it."""

    def __init__(self, quiet: AgentSlice, meanwhile: AgentSlice) -> None:
        self.answers = [quiet, meanwhile]
        self.beside = threading.Event()

    def slice(self, *_: Any, **__: Any) -> AgentSlice:
        if len(self.answers) == 1:
            self.beside.set()
            return self.answers[0]
        return self.answers.pop(0)


class Task(Operation):
    """Lasts until there was traffic beside it."""

    name = "backup"

    def __init__(self, load: Load) -> None:
        self.load = load

    def execute(self, arm: Arm) -> Done:
        self.load.beside.wait(60)
        return Done(0.1)


class Session:
    def __init__(self, load: Load) -> None:
        self.agent = load


def beside(quiet: AgentSlice, meanwhile: AgentSlice) -> WithTraffic:
    load = Load(quiet, meanwhile)
    return WithTraffic(Task(load), cast("OperationContext", Session(load)))


def rates(task: WithTraffic) -> dict[str, float]:
    task.prepare("plain")
    return task.execute("plain").traffic


def test_both_rates_are_those_of_the_traffic() -> None:
    found = rates(beside(ANSWER, msgspec.structs.replace(ANSWER, operations=50)))
    assert found == {"quiet": pytest.approx(1000), "meanwhile": pytest.approx(500)}


@pytest.mark.parametrize("before", [True, False])
def test_traffic_that_fails_has_no_rate(before: bool) -> None:
    failed = msgspec.structs.replace(ANSWER, errors=3, first_error="deadlock found")
    task = beside(failed, ANSWER) if before else beside(ANSWER, failed)
    with pytest.raises(AgentError, match="3 operations of the traffic beside backup failed: deadlock found"):
        rates(task)
