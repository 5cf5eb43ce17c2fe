"""cpu_quota: the quotas of a process's control groups, and how long it was held back."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import procfs
from ciphercost.host.cpu_quota import Quota, Throttling, quotas, threads, tightest
from conftest import Require
from limited_cpu import limited_cpu

V2_STAT = "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 20\nnr_throttled 9\nthrottled_usec {}\n"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc and a mounted hierarchy of version 2: process 7 is in /app.slice/db.service, both with a quota."""
    root = tmp_path / "cgroup"
    written(root / "cpu.stat", "usage_usec 5\n")
    written(root / "app.slice/cpu.max", "150000 100000\n")
    written(root / "app.slice/cpu.stat", V2_STAT.format(10))
    written(root / "app.slice/db.service/cpu.max", "25000 50000\n")
    written(root / "app.slice/db.service/cpu.stat", V2_STAT.format(400))
    written(root / "app.slice/free.service/cpu.max", "max 100000\n")
    directory = tmp_path / "proc"
    written(directory / "self/mounts", f"proc /proc proc rw 0 0\ncgroup2 {root} cgroup2 rw,nosuid 0 0\n")
    for pid, group in {"self": "/", "7": "/app.slice/db.service", "8": "/app.slice/free.service", "9": "/gone"}.items():
        written(directory / pid / "cgroup", f"0::{group}\n")
    written(directory / "10/cgroup", "0::/../outside\n")
    return directory


def test_the_quota_of_every_group_above_holds_too(proc: Path) -> None:
    root = proc.parent / "cgroup"
    assert quotas(7, proc) == [Quota(0.5, root / "app.slice/db.service"), Quota(1.5, root / "app.slice")]
    assert tightest(7, proc) == Quota(0.5, root / "app.slice/db.service")
    assert tightest(8, proc) == Quota(1.5, root / "app.slice")
    for without in (0, 9, 10, 99):
        assert tightest(without, proc) is None


def test_what_a_group_was_held_back_is_counted_once(proc: Path) -> None:
    held = Throttling([7, 7, 8], proc)
    with contextlib.closing(held):
        assert held.level_ns() == 410_000
        written(proc.parent / "cgroup/app.slice/db.service/cpu.stat", V2_STAT.format(900))
        assert held.level_ns() == 910_000
    with contextlib.closing(Throttling([0, 9], proc)) as none:
        assert none.level_ns() == -1


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    written(root / "cpu.cfs_quota_us", "200000\n")
    written(root / "cpu.cfs_period_us", "100000\n")
    written(root / "cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 77\n")
    directory = tmp_path / "proc"
    written(directory / "self/mounts", f"cgroup {root} cgroup rw,cpu,cpuacct 0 0\n")
    for pid in ("self", "5"):
        written(directory / pid / "cgroup", "4:cpu,cpuacct:/docker/0a1b\n3:memory:/docker/0a1b\n")
    assert tightest(5, directory) == Quota(2.0, root)
    with contextlib.closing(Throttling([5], directory)) as held:
        assert held.level_ns() == 77


@pytest.mark.parametrize(
    ("cpus", "cores", "expected"), [(4, None, 4), (4, 0.5, 1), (4, 1.5, 2), (2, 8.0, 2), (1, 0.1, 1)]
)
def test_threads_under_a_quota(cpus: int, cores: float | None, expected: int) -> None:
    assert threads(cpus, None if cores is None else Quota(cores, Path("/x"))) == expected


BUSY = "import time\nwhile time.process_time() < 0.05: pass"
"""Far more CPU time than a period of the quota has, so it is held back however busy the machine is."""


@pytest.fixture
def group(require: Require) -> Iterator[Path]:
    with limited_cpu(0.05, require) as directory:
        yield directory


def test_a_real_group_holds_a_process_back(group: Path) -> None:
    inside = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; read go; exec "$@"', str(group), sys.executable, "-c", BUSY]
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        while str(process.pid) not in (group / "cgroup.procs").read_text().split():
            assert process.poll() is None
        quota = tightest(process.pid)
        assert quota is not None
        assert quota == Quota(0.05, group)
        with contextlib.closing(procfs.Sampler(process.pid)) as sampler:
            sampler.begin()
            print("go", file=process.stdin, flush=True)
            process.wait()
            counters = sampler.end()
    assert counters.throttled_ns


def test_without_a_quota_nothing_is_counted() -> None:
    with contextlib.closing(procfs.Sampler(os.getpid())) as sampler:
        sampler.begin()
        assert sampler.end().throttled_ns is None or tightest(os.getpid()) is not None


def test_doctor_names_the_quota(require: Require) -> None:
    script = "from ciphercost.runs import doctor; print(*doctor._cores(), sep='|')"
    with limited_cpu(1.5, require) as group:
        inside = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(group), sys.executable, "-c", script]
        done = subprocess.run(inside, capture_output=True, text=True, check=True)
    subject, state, text = done.stdout.split("|")
    assert (subject, state) == ("cores", "warn")
    assert "a CPU quota allows 1.5" in text
