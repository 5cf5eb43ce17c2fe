"""memory: a control group limits the memory of its processes, ends with the run, and `clean` finds it if the supervisor
was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import leftovers, memory, run_ownership
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError, UsageError
from conftest import Require
from processes import wait_for

LIMIT = 200_000_000
CONTROLLER = """
import sys, time
from ciphercost.host import supervisor
from ciphercost.host import memory
run_supervisor = supervisor.Supervisor(sys.argv[1])
supervisor.scratch(sys.argv[1], run_supervisor)
with memory.limited(run_supervisor, 200_000_000):
    run_supervisor.spawn(["sleep", "1000"])
    print(run_supervisor.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _possible(require: Require) -> None:
    require(run_ownership.memory_parent(), "no control group with a memory limit can be made here: run as root")


def groups_of(run_id: str) -> list[Path]:
    parent = run_ownership.memory_parent()
    assert parent is not None
    return list(parent[0].glob(f"{run_ownership.CGROUP_PREFIX}{run_id}*"))


def members(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def test_server_and_client_share_a_limit_that_ends_with_it() -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        with memory.limited(run_supervisor, LIMIT) as groups:
            (group,) = groups
            parent = run_ownership.memory_parent()
            assert parent is not None
            assert LIMIT - 4096 <= int((group / parent[1]).read_text()) <= LIMIT
            server = run_supervisor.spawn(["sleep", "1000"])
            with Agent(cgroups=groups) as agent:
                assert set(members(group)) == {str(server.pid), str(agent.pid)}
                server.stop(5.0)
                assert members(group) == [str(agent.pid)], "the group outlives a server: a session may begin anew in it"
                assert agent.hello
        assert groups_of(run_id) == []
        outside = run_supervisor.spawn(["sleep", "1000"])
        assert outside.poll() is None
        assert "-memory-" not in Path(f"/proc/{outside.pid}/cgroup").read_text()


def test_a_group_ends_with_the_last_process_in_it() -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        with memory.limited(run_supervisor, LIMIT):
            server = run_supervisor.spawn(["sleep", "1000"])
        assert server.poll() is None, "it is stopped by whoever started it"
        assert len(groups_of(run_id)) == 1
        server.stop(5.0)
        assert groups_of(run_id) == []
    assert not run_supervisor.lost


def test_a_process_that_exceeds_the_limit_is_killed() -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor, memory.limited(run_supervisor, LIMIT):
        assert run_supervisor.run([sys.executable, "-c", "print(len(bytearray(20_000_000)))"]) == "20000000\n"
        with pytest.raises(RunError, match="status -9"):
            run_supervisor.run([sys.executable, "-c", f"print(len(bytearray(b'x') * {8 * LIMIT}))"])


def test_without_a_limit_there_is_no_group() -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor, memory.limited(run_supervisor, 0) as groups:
        assert groups == ()
        assert groups_of(run_id) == []


@contextlib.contextmanager
def controlled(run_id: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A separate controller with a limit, and the pid of its supervisor."""
    argv = [sys.executable, "-c", CONTROLLER, run_id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        yield controller, int(controller.stdout.readline())


def test_a_killed_controller_leaves_no_group() -> None:
    run_id = run_directory.new_id()
    with controlled(run_id) as (controller, supervisor_pid):
        assert groups_of(run_id)
        controller.kill()
    wait_for("the supervisor to end", lambda: run_ownership.start_time(supervisor_pid) == "")
    assert groups_of(run_id) == []


@pytest.mark.usefixtures("alone")
def test_clean_finds_a_group_whose_supervisor_was_killed_too() -> None:
    run_id = run_directory.new_id()
    with controlled(run_id) as (controller, supervisor_pid):
        os.kill(supervisor_pid, signal.SIGSTOP)
        controller.kill()
        controller.wait()
        os.kill(supervisor_pid, signal.SIGKILL)
    wait_for("the supervisor to end", lambda: run_ownership.start_time(supervisor_pid) == "")
    wait_for("the child to die with its supervisor", lambda: not any(map(members, groups_of(run_id))))
    left = [leftover for leftover in leftovers.leftovers() if run_id in str(leftover)]
    assert [leftover.what for leftover in left if leftover.kind == "control group"] == [
        str(group) for group in groups_of(run_id)
    ]
    assert len(groups_of(run_id)) == 1
    assert leftovers.remove(left) == []
    assert groups_of(run_id) == []


def test_if_no_group_can_be_made_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_parent", lambda: None)
    with pytest.raises(UsageError, match=r"--memory 2GB: no control group.*as root"):
        memory.check("--memory 2GB")
