"""Traffic on the server while an operator's task goes on: what the task costs those who use the server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec

from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm

QUIET_SECONDS, SLICE_SECONDS = 0.5, 0.1


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
        operations = seconds = 0.0
        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(self._operation.execute, arm)
            while not task.done():
                answer = self._slice(arm, SLICE_SECONDS)
                if task.done() and seconds:
                    break  # a part of it was without the task
                operations, seconds = operations + answer.done, seconds + answer.seconds
            done = task.result()
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
