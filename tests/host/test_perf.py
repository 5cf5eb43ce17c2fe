"""perf: where it can't be used there is one clear line; where it can, it samples the known function and nothing while it is off."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ciphercost.host import perf, perf_text, supervisor
from ciphercost.model.errors import RunError
from conftest import Require

DENIED = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
access to performance monitoring and observability operations for processes
without CAP_PERFMON, CAP_SYS_PTRACE or CAP_SYS_ADMIN Linux capability.
"""


def test_a_refusal_is_one_line_that_says_what_to_do() -> None:
    message = perf.refusal(DENIED, "4")
    assert "\n" not in message
    assert "kernel.perf_event_paranoid is 4" in message
    assert "CAP_PERFMON" in message
    assert perf.refusal("perf_event_open(...): Operation not permitted\nError: failed", "") == perf.refusal(
        DENIED, "unknown"
    )
    assert perf.refusal("", "2") == ""


def test_another_error_is_repeated() -> None:
    message = perf.refusal("Error:\nThe cpu-clock event is not supported.\n", "1")
    assert message.startswith("perf can't sample here: ")


def test_few_samples_on_many_cpus() -> None:
    assert perf.hz(2) == perf.MOST_HZ
    assert perf.LEAST_HZ <= perf.hz(64) <= perf.IN_ALL_HZ / 64
    assert perf.hz(1000) == perf.LEAST_HZ


SPIN = """
import hashlib, sys
data = bytes(1 << 20)
print("ready", flush=True)
while True:
    hashlib.sha256(data).digest()
"""


@pytest.fixture
def recording_place(tmp_path: Path) -> Path:
    return tmp_path / "profile"


def test_it_samples_a_process_only_while_it_is_on(
    require: Require, recording_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attached to the process, as a user without rights over whole CPUs has it."""
    require(not perf.obstacle(), perf.obstacle())
    monkeypatch.setattr(perf, "sees_everything", lambda: False)
    with (
        supervisor.Supervisor("test-perf") as run_supervisor,
        subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) as process,
    ):
        try:
            assert process.stdout is not None
            process.stdout.readline()
            recording = perf.Recording(run_supervisor, recording_place, [process.pid])
            windows = []
            for _ in range(2):
                began = time.monotonic_ns()
                recording.on()
                works(process.pid, 0.2e9)
                recording.off()
                windows.append((began, time.monotonic_ns()))
                works(process.pid, 0.1e9)
            with recording.text([process.pid]).open() as text:
                samples = [event for event in perf_text.read(text) if isinstance(event, perf_text.Sample)]
            recording.close()
        finally:
            process.kill()
    ours = [sample for sample in samples if sample.pid == process.pid]
    assert len(ours) >= 20
    assert all(any(began <= sample.at_ns <= ended for began, ended in windows) for sample in ours)
    libraries = Counter(sample.frames[0].partition("`")[0] for sample in ours if sample.frames)
    assert max(libraries, key=lambda name: libraries[name]).startswith(("libcrypto", "_sha", "python", "_hashlib"))
    assert not recording_place.exists()


def works(pid: int, ns: float) -> None:
    """Wait until a process has used this much CPU time."""
    until = cpu_ns(pid) + ns
    while cpu_ns(pid) < until:
        time.sleep(0.02)


def cpu_ns(pid: int) -> float:
    """CPU time of a process, from its clock ticks."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * 1e9 / os.sysconf("SC_CLK_TCK")


def test_a_process_that_does_not_exist_is_an_error_and_leaves_nothing(
    require: Require, recording_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(not perf.obstacle(), perf.obstacle())
    monkeypatch.setattr(perf, "sees_everything", lambda: False)
    with supervisor.Supervisor("test-perf") as run_supervisor, pytest.raises(RunError, match="perf did not start"):
        perf.Recording(run_supervisor, recording_place, [2**22 - 1])
    assert not recording_place.exists()
