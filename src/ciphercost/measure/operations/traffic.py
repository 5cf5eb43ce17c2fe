"""Traffic on the server while an operator's task goes on: what the task costs those who use the server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm

QUIET_SECONDS, SLICE_SECONDS = 0.5, 0.1
"""Seconds of traffic before a task, and of each slice of it meanwhile."""
T = TypeVar("T")


def meanwhile(task: Callable[[], T], traffic: Callable[[], AgentSlice], *, least: int = 0) -> tuple[T, float, float]:
    """Do a task while slices of traffic go on. Returns its result, and the operations and seconds of the slices that ended before it did; of
    the first, if none did.

    `least`: slices that are made however soon the task ends.
    """
    operations = seconds = 0.0
    slices = 0
    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(task)
        while slices < least or not going_on.done():
            answer = traffic()
            slices += 1
            if going_on.done() and seconds:
                break  # a part of it was without the task
            operations, seconds = operations + answer.done, seconds + answer.seconds
        return going_on.result(), operations, seconds


class WithTraffic(Operation):
    """A task beside the workload's own operations, which one client sends as fast as they are answered."""

    def __init__(self, operation: Operation, context: OperationContext) -> None:
        self._operation = operation
        self._context = context
        self.name, self.tool = operation.name, operation.tool
        self._quiet = 0.0
        self._seed = 0

    def prepare(self, arm: Arm) -> None:
        self._operation.prepare(arm)
        answer = self._slice(arm, QUIET_SECONDS)
        self._quiet = answer.done / answer.seconds

    def execute(self, arm: Arm) -> Done:
        done, operations, seconds = meanwhile(
            lambda: self._operation.execute(arm), lambda: self._slice(arm, SLICE_SECONDS)
        )
        if not seconds or not self._quiet:
            raise RunError(f"{self.name} ended before any traffic beside it could be measured; use more --rows")
        return msgspec.structs.replace(done, traffic={"quiet": self._quiet, "meanwhile": operations / seconds})

    def verify(self, arm: Arm) -> None:
        self._operation.verify(arm)

    def clear(self, arm: Arm) -> None:
        self._operation.clear(arm)

    def _slice(self, arm: Arm, seconds: float) -> AgentSlice:
        """Raises AgentError if an operation of the traffic failed: what is left would be compared with traffic that did more."""
        self._seed += 1
        answer = self._context.agent.slice(arm, seconds, discard=0.0, seed=self._seed)
        if answer.errors:
            reason = f": {answer.first_error}" if answer.first_error else ""
            raise AgentError(f"{answer.errors} operations of the traffic beside {self.name} failed{reason}")
        return answer
