"""clean: removes what dead runs left, and nothing of living ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ciphercost.host import dead_runs, leftovers, process_state, run_ownership, supervisor
from ciphercost.host.leftovers import Leftover
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.runs import doctor
from conftest import Require
from processes import wait_for

CONTROLLER = """
import sys, time
from ciphercost.host import run_ownership, supervisor
run_id = sys.argv[1]
run_supervisor = supervisor.Supervisor(run_id)
scratch = supervisor.scratch(run_id, run_supervisor)
process = run_supervisor.spawn(["sh", "-c", "trap '' INT; setsid sh -c ': > up; exec sleep 1000' & wait"], cwd=scratch / "secrets",
                               cgroups=run_ownership.cgroup_for(run_id, "server"), user=run_ownership.server_user())
while not (scratch / "secrets" / "up").exists():
    time.sleep(0.02)
print(run_supervisor.pid, flush=True)
sys.stdin.read()
"""


every = leftovers.leftovers


def of(run_id: str) -> list[Leftover]:
    return [leftover for leftover in every() if run_id in str(leftover)]


@pytest.fixture
def wreck(alone: None) -> Iterator[str]:
    """A run whose controller and supervisor were both killed at once."""
    run_id = run_directory.new_id()
    argv = [sys.executable, "-c", CONTROLLER, run_id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        supervisor_pid = int(controller.stdout.readline())
        assert of(run_id) == [], "a living run has no leftovers"
        os.kill(supervisor_pid, signal.SIGSTOP)  # so that it can't begin to undo
        wait_for("it to stop", lambda: process_state.is_stopped(supervisor_pid))
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        kinds = [leftover.kind for leftover in of(run_id)]
        assert kinds == ["stopped supervisor"], "while its supervisor is there, all else is the supervisor's"
        os.kill(supervisor_pid, signal.SIGKILL)
        wait_for("the supervisor to end", lambda: run_ownership.start_time(supervisor_pid) == "")
    yield run_id
    leftovers.remove(of(run_id))


def test_finds_and_removes_what_a_killed_supervisor_left(wreck: str) -> None:
    # The kernel ends the child once its supervisor is gone, but not at that very moment. The grandchild, in its own
    # session, is the one that is left.
    wait_for(
        "the child to die with its supervisor", lambda: sum(leftover.kind == "process" for leftover in of(wreck)) == 1
    )
    remains = of(wreck)
    kinds = [leftover.kind for leftover in remains]
    assert kinds == ["process", *(["control group"] if run_ownership.cgroup_parents() else []), "directory"]
    assert leftovers.remove(remains) == []
    assert of(wreck) == []
    assert run_ownership.start_time(int(remains[0].what)) == ""
    assert not (run_ownership.scratch_base() / wreck).exists()


@pytest.mark.usefixtures("alone")
def test_clean_names_a_stopped_supervisor_and_lets_it_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = run_directory.new_id()
    argv = [sys.executable, "-c", CONTROLLER, run_id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        supervisor_pid = int(controller.stdout.readline())
        os.kill(supervisor_pid, signal.SIGSTOP)
        monkeypatch.setattr(leftovers, "leftovers", partial(of, run_id))  # ignore other runs'
        wait_for("it to be named", lambda: bool([line for line in leftovers.stalled() if run_id in line]))
        report, _ = leftovers.sweep()
        assert f"the supervisor of run {run_id} (process {supervisor_pid}) is stopped" in report
        assert f"kill -CONT {supervisor_pid}" in report
        assert (run_ownership.scratch_base() / run_id).exists(), "its controller lives"
        controller.kill()
        controller.wait()
        report, whole = leftovers.sweep()
    assert whole
    assert f"removed stopped supervisor {supervisor_pid} of run {run_id}" in report
    assert run_ownership.start_time(supervisor_pid) == ""
    assert not (run_ownership.scratch_base() / run_id).exists()
    assert of(run_id) == []


def test_doctor_reports_leftovers_and_clean_lists_what_it_removed(wreck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {name: (state, text) for name, state, text in doctor.checks()}
    assert states["leftovers"][0] == "warn"
    assert "ciphercost clean" in states["leftovers"][1]
    monkeypatch.setattr(leftovers, "leftovers", partial(of, wreck))  # ignore other runs'
    report, whole = leftovers.sweep()
    assert whole
    assert f"removed directory {run_ownership.scratch_base() / wreck} of run {wreck}" in report
    assert of(wreck) == []


def test_never_touches_what_a_living_controller_owns(monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        process = run_supervisor.spawn(
            ["sleep", "1000"], cwd=scratch / "secrets", cgroups=run_ownership.cgroup_for(run_id, "server")
        )
        assert of(run_id) == []
        monkeypatch.setattr(leftovers, "leftovers", partial(of, run_id))
        leftovers.sweep()
        assert scratch.exists()
        assert process.poll() is None


def test_a_recent_directory_without_an_owner_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path))
    young, old = run_directory.new_id(), run_directory.new_id()
    long_ago = time.time() - 2 * dead_runs.GRACE_SECONDS
    for name in (young, old, "lost+found", "mine"):
        (tmp_path / name).mkdir()
        if name != young:
            os.utime(tmp_path / name, (long_ago, long_ago))
    assert [leftover.what for leftover in leftovers.leftovers() if leftover.kind == "directory"] == [
        str(tmp_path / old)
    ]


def test_a_process_that_reuses_a_dead_ones_pid_is_not_killed() -> None:
    with subprocess.Popen(["sleep", "1000"]) as innocent:
        try:
            assert leftovers.remove([Leftover("process", str(innocent.pid), "run", start="1")]) == []
            assert innocent.poll() is None
        finally:
            innocent.kill()


def test_a_mount_on_a_loop_device_in_a_dead_directory_goes_before_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    require(os.geteuid() == 0, "mounting needs root")
    require(shutil.which("mkfs.ext4"), "mkfs.ext4 (Debian: apt-get install e2fsprogs)")
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path))
    dead = tmp_path / "dead run"
    (dead / "mnt").mkdir(parents=True)
    (dead / run_ownership.OWNER_FILE).write_text("1:1:another-boot:1\n")
    image = dead / "image"
    with image.open("wb") as file:
        file.truncate(8 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", str(image), str(dead / "mnt")], capture_output=True, check=False)
    require(mounted.returncode == 0, f"this machine mounts no loop devices: {mounted.stderr.decode()}")
    remains = [leftover for leftover in leftovers.leftovers() if leftover.run == "dead run"]
    assert [leftover.kind for leftover in remains] == ["mount", "loop device", "directory"]
    assert leftovers.remove(remains) == []
    assert not dead.exists()
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
