"""After kill -9 of the controller at any moment, no server, relay or scratch directory remains, and slices.jsonl is readable."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import processes
from ciphercost.host import leftovers, run_ownership
from ciphercost.host.procfs import tree
from ciphercost.model import run_directory
from conftest import RequireServer
from processes import marked

CLI = Path(sys.executable).parent / "ciphercost"
PATIENCE = 300.0
"""Seconds in which a whole run must get that far."""

wait_for = partial(processes.wait_for, patience=PATIENCE)


def few(target: str) -> tuple[str, ...]:
    """Options for few rows, where inserting them is most of a short run's work."""
    return ("--rows", "2000") if target.startswith("sqlite") else ()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "as soon as there is a run": lambda directory: (directory / "plan.json").exists(),
    "while data is loaded": lambda directory: any((directory / "logs").iterdir()),
    "once it is proven": lambda directory: _size(directory / "proofs.json") > 10,
    "in the middle of the load": lambda directory: _size(directory / "slices.jsonl") > 12_000,
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("target", ["postgresql:tls", "sqlite:sqlcipher"])
@pytest.mark.usefixtures("require_postgresql")
def test_a_controller_that_is_killed_leaves_nothing(tmp_path: Path, target: str, moment: str) -> None:
    directory = tmp_path / "run"
    if target.startswith("sqlite") and moment == "while data is loaded":
        moment = "once it is proven"  # SQLite has no server with a log
    argv: list[str | Path] = [
        CLI,
        "run",
        target,
        "--quick",
        "--time",
        "60s",
        "--no-progress",
        "-o",
        str(directory),
        *few(target),
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(moment, lambda: (directory / "plan.json").exists() and MOMENTS[moment](directory))
        run_id = run_directory.read_facts(directory).id
        family = tree(process.pid)[1:]
        assert process.poll() is None, "the run ended before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
    wait_for(
        "every process of the run to end",
        lambda: not marked(run_id) and not [pid for pid in family if Path(f"/proc/{pid}/exe").exists()],
    )
    wait_for("scratch to be removed", lambda: not (run_ownership.scratch_base() / run_id).exists())
    assert not [
        path
        for parent in run_ownership.cgroup_parents()
        for path in parent.glob(f"{run_ownership.CGROUP_PREFIX}{run_id}*")
    ]
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if run_id in line]
    slices = list(run_directory.read_slices(directory))
    assert all(record.cell == 0 for record in slices)
    assert not [left for left in leftovers.leftovers() if run_id in str(left)]


def supervisor_of(pid: int) -> int:
    """The supervisor among a controller's children; 0: not there yet."""
    for child_pid in tree(pid)[1:]:
        with contextlib.suppress(OSError):
            if b"/supervisor_process.py" in Path(f"/proc/{child_pid}/cmdline").read_bytes():
                return child_pid
    return 0


@pytest.mark.parametrize("moment", ["at its start", *list(MOMENTS)[2:]])
@pytest.mark.parametrize("target", ["postgresql:tls", "nginx:tls", "sqlite:sqlcipher", "firebird:wire-crypt"])
def test_a_run_whose_supervisor_is_killed_says_so_and_leaves_nothing(
    tmp_path: Path, require_server: RequireServer, target: str, moment: str
) -> None:
    if not target.startswith("sqlite"):
        require_server(target.partition(":")[0])
    directory = tmp_path / "run"
    argv: list[str | Path] = [
        CLI,
        "run",
        target,
        "--quick",
        "--time",
        "20s",
        "--no-progress",
        "-o",
        str(directory),
        *few(target),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for("the supervisor", lambda: supervisor_of(process.pid) != 0)
        supervisor_pid = supervisor_of(process.pid)
        if moment != "at its start":
            wait_for(moment, lambda: (directory / "plan.json").exists() and MOMENTS[moment](directory))
        os.kill(supervisor_pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=4 * PATIENCE)
    run_id = run_directory.read_facts(directory).id
    assert "this run's supervisor process was killed" in errors
    assert "Traceback" not in errors
    assert not (run_ownership.scratch_base() / run_id).exists()
    assert not marked(run_id)
    assert not [left for left in leftovers.leftovers() if run_id in str(left)]
    assert process.returncode == 1, errors
    # The run stops at the next block, although SQLite has no server and nginx's workers outlive their master.
    assert not [record for record in run_directory.read_slices(directory) if record.phase == "latency"]


def test_an_interrupted_run_keeps_what_it_measured_and_can_be_reported(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    argv: list[str | Path] = [
        CLI,
        "run",
        "sqlite:sqlcipher",
        *few("sqlite:sqlcipher"),
        "--quick",
        "--time",
        "60s",
        "--no-progress",
        "-o",
        str(directory),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(
            "slices",
            lambda: (directory / "slices.jsonl").exists() and (directory / "slices.jsonl").stat().st_size > 60_000,
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    report = subprocess.run([CLI, "report", str(directory)], capture_output=True, text=True, check=False)
    assert report.returncode == 0, report.stderr
    assert "cut off" in report.stdout
