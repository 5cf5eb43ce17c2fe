"""operation_client: an operator's task as the load: one slice is one execution of it (a backup, a restart …)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import msgspec

from ciphercost.host import run_ownership
from ciphercost.load import command_output
from ciphercost.load.load_client import ClientMachine, SliceSampler
from ciphercost.model.command_load import ToolFigures
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice, Arrivals
from ciphercost.model.spec import Arm

SHORTEST = 0.1
"""Seconds that a slice counts as, at least."""


class Done(msgspec.Struct, frozen=True):
    """One execution."""

    seconds: float
    user_ns: int = 0
    """CPU time of what made it beside the server, such as the tool: in user mode, and in the kernel."""
    system_ns: int = 0
    output_bytes: int = 0
    """Bytes of the files that it made."""
    traffic: dict[str, float] = {}
    """Operations per second of traffic on the server: `quiet`, before it, and `meanwhile`. Empty: there was none."""


class Operation(ABC):
    """An operator's task, for both arms."""

    name: str
    """The workload's `operation`."""
    tool: str = ""
    """What does it, for reports: `pg_dump`; empty: the server itself."""

    def prepare(self, arm: Arm) -> None:  # noqa: B027
        """Do what comes before each execution and is no part of it. Raises AgentError, RunError."""

    @abstractmethod
    def execute(self, arm: Arm) -> Done:
        """Do it once. Raises AgentError, in one line, if it fails; RunError if it can't be done any more."""

    def verify(self, arm: Arm) -> None:  # noqa: B027
        """Check what an execution made. It is no part of the execution. Raises RunError."""

    def clear(self, arm: Arm) -> None:  # noqa: B027
        """Remove what an execution left, also one that failed."""


class OperationClient:
    """Does the task, slice by slice."""

    compiles = False
    start_skew: float | None = None
    machines: Sequence[ClientMachine] | None = None
    server_sampler: SliceSampler | None = None
    reported: ToolFigures | None = None
    """Figures of the last slice."""

    def __init__(self, operation: Operation, pid: int, threads: int) -> None:
        """`pid`: the agent, which asks the server. `threads`: CPUs that the task's own processes may use."""
        self._operation = operation
        self._threads = threads
        self._longest = 0.0
        self.pid = pid

    def fitting(self, seconds: float, room: float = 0.0) -> float:  # noqa: ARG002
        """A slice takes as long as the task: the longest so far, in hundredths of a second."""
        return math.ceil(100 * max(SHORTEST, self._longest or seconds)) / 100

    def own_cpu(self, answer: AgentSlice) -> tuple[int, int]:
        """CPU time of the task's own processes in the last slice, in nanoseconds: in all, and in user mode."""
        return answer.cpu_user_ns + answer.cpu_system_ns, answer.cpu_user_ns

    def slice(
        self,
        arm: str,
        seconds: float,  # noqa: ARG002 - it takes as long as it takes
        *,
        discard: float = 0.2,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
        rate: float = 0.0,  # noqa: ARG002
        operations: int = 0,  # noqa: ARG002
        arrivals: Arrivals = "even",  # noqa: ARG002
        on_counting: Callable[[], None] | None = None,
        on_counted: Callable[[], None] | None = None,
    ) -> AgentSlice:
        """Execute the task once. Raises AgentError if it fails, RunError if it can't be done any more."""
        self.reported = None
        side: Arm = "plain" if arm == "plain" else "encrypted"
        try:
            self._operation.prepare(side)
            if on_counting:
                on_counting()
            done = self._operation.execute(side)
            if on_counted:
                on_counted()
            self._operation.verify(side)
        except AgentError as error:
            # Before what it made is removed.
            if not (full := run_ownership.disk_full()):
                raise
            raise AgentError(f"{error}; {full}", error.code) from None
        finally:
            self._operation.clear(side)
        cpu = done.user_ns, done.system_ns
        answer, figures = command_output.converted(command_output.counted(1), done.seconds, cpu, self._threads, arm)
        self.reported = msgspec.structs.replace(
            figures,
            tool=self._operation.tool,
            operation=self._operation.name,
            output_bytes=done.output_bytes,
            traffic=done.traffic,
        )
        self._longest = max(self._longest, done.seconds)
        return answer
