"""An operator's task as the load client: what a slice becomes, in which order its parts run, and what is left after it failed."""

from __future__ import annotations

import pytest

from ciphercost.load.operation_client import SHORTEST, Done, Operation, OperationClient
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import Arm


class Task(Operation):
    name, tool = "backup", "copier"

    def __init__(self, done: Done | Exception, verdict: Exception | None = None) -> None:
        self.done, self.verdict = done, verdict
        self.calls: list[str] = []

    def prepare(self, arm: Arm) -> None:
        self.calls.append(f"prepare {arm}")

    def execute(self, arm: Arm) -> Done:
        self.calls.append(f"execute {arm}")
        if isinstance(self.done, Exception):
            raise self.done
        return self.done

    def verify(self, arm: Arm) -> None:
        self.calls.append(f"verify {arm}")
        if self.verdict:
            raise self.verdict

    def clear(self, arm: Arm) -> None:
        self.calls.append(f"clear {arm}")


def test_a_slice_is_one_execution_and_only_that_is_counted() -> None:
    task = Task(Done(2.5, 300, 200, output_bytes=10**9, traffic={"quiet": 100.0, "meanwhile": 60.0}))
    client = OperationClient(task, pid=7, threads=2)
    answer = client.slice(
        "encrypted",
        1.0,
        on_counting=lambda: task.calls.append("counting"),
        on_counted=lambda: task.calls.append("counted"),
    )
    names = ["prepare encrypted", "counting", "execute encrypted", "counted", "verify encrypted", "clear encrypted"]
    assert task.calls == names
    assert (answer.operations, answer.done, answer.seconds, answer.threads) == (1, 1.0, 2.5, 2)
    assert client.own_cpu(answer) == (500, 300)
    assert client.reported is not None
    assert (client.reported.operation, client.reported.tool) == ("backup", "copier")
    assert (client.reported.process_s, client.reported.output_bytes) == (2.5, 10**9)
    assert client.reported.traffic == {"quiet": 100.0, "meanwhile": 60.0}


@pytest.mark.parametrize("error", [AgentError("no space left on device"), RunError("the server is gone")])
def test_what_a_failed_execution_made_is_removed(error: Exception) -> None:
    task = Task(error)
    client = OperationClient(task, pid=7, threads=1)
    with pytest.raises(type(error)):
        client.slice("plain", 1.0)
    assert task.calls[-1] == "clear plain"
    assert client.reported is None


def test_what_a_wrong_execution_made_is_removed_and_has_no_figures() -> None:
    task = Task(Done(1.0), RunError("the data are not encrypted"))
    client = OperationClient(task, pid=7, threads=1)
    with pytest.raises(RunError):
        client.slice("encrypted", 1.0)
    assert task.calls[-1] == "clear encrypted"
    assert client.reported is None


def test_a_slice_is_as_long_as_the_longest_execution_so_far() -> None:
    client = OperationClient(Task(Done(2.511)), pid=7, threads=1)
    assert client.fitting(0.05) == SHORTEST
    assert client.fitting(1.0) == 1.0
    client.slice("plain", 1.0)
    assert client.fitting(0.05) == client.fitting(30.0) == 2.52
