"""confined_start: a process becomes a program with the limits that were asked for, or says why it can't."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ciphercost.host import confined_start
from ciphercost.load.agent import Agent
from ciphercost.model.errors import RunError

SHOW = "import os, resource; print(sorted(os.sched_getaffinity(0)), resource.getrlimit(resource.RLIMIT_CORE))"


def started(argv: list[str], *, parent: int = 0, cpus: tuple[int, ...] = (), netns: str = "") -> tuple[int, str, str]:
    """(exit status, output, what it wrote of its failure)"""
    reading, writing = os.pipe()
    with os.fdopen(reading) as failure:
        wanted = confined_start.Wanted(
            parent=parent or os.getpid(), groups=[], netns=netns, cpus=list(cpus), errors=writing
        )
        done = subprocess.run(confined_start.command(wanted, argv), pass_fds=[writing], capture_output=True, text=True)
        os.close(writing)
        return done.returncode, done.stdout, failure.read()


def test_it_becomes_the_program_with_its_limits() -> None:
    cpu = min(os.sched_getaffinity(0))
    status, shown, failure = started([sys.executable, "-c", SHOW], cpus=(cpu,))
    assert (status, failure) == (0, "")
    assert shown == f"[{cpu}] (0, 0)\n"


def test_a_signal_that_python_ignores_is_not_ignored_in_the_program() -> None:
    status, _, failure = started(["/bin/sh", "-c", "kill -PIPE $$; exit 3"])
    assert (status, failure) == (-signal.SIGPIPE, "")
    assert resource.getrlimit(resource.RLIMIT_CORE)[1] != 0  # the limit is that of the program alone


@pytest.mark.parametrize(
    ("argv", "netns", "reason"),
    [
        (["/nowhere/agent"], "", "No such file or directory"),
        (["/dev/null"], "", "Permission denied"),
        (["/bin/true"], "/nowhere/netns", "No such file or directory: /nowhere/netns"),
    ],
    ids=["missing", "no-program", "no-namespace"],
)
def test_what_can_not_start_says_why(argv: list[str], netns: str, reason: str) -> None:
    assert started(argv, netns=netns) == (127, "", reason)


def test_it_starts_nothing_for_a_process_that_has_ended() -> None:
    assert started(["/bin/echo", "started"], parent=1) == (127, "", "")


def test_an_agent_that_can_not_start_is_an_error_with_the_reason(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/nowhere/interpreter\n")
    program.chmod(0o755)
    with pytest.raises(RunError, match=f"can't start the agent.*{program}.*No such file or directory"):
        Agent([str(program)])
