"""procfs: counters that move when, and only when, something happens."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from ciphercost.host import procfs
from ciphercost.model.slices import Counters
from processes import wait_for

TRIES = 5
"""The kernel may count whole clock ticks for whoever has the processor then: on a busy machine not always the right one."""
BUSY = """
import sys
ballast = bytearray(8_000_000)
print(1, flush=True)
sys.stdin.readline()
n = 0
for i in range(3_000_000): n += i
print("done", flush=True)
sys.stdin.readline()
"""


def test_the_cpu_of_a_process_tree_is_counted_and_an_idle_one_counts_nothing() -> None:
    command = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, BUSY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with closing(procfs.Sampler(process.pid)) as sampler:
            sampler.begin()
            idle = sampler.end()
            sampler.refresh()
            sampler.begin()
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            busy = sampler.end()
        process.stdin.write("end\n")
    assert busy.server_cpu_ns > 10_000_000
    assert busy.server_cpu_ns > 10 * idle.server_cpu_ns
    assert busy.window_ns >= busy.server_cpu_ns * 0.5
    assert busy.server_memory_bytes > 1_000_000


def test_host_shares_add_up_to_one() -> None:
    with closing(procfs.Sampler()) as sampler:
        sampler.begin()
        deadline = time.process_time() + 0.2
        while time.process_time() < deadline:
            pass
        counters = sampler.end()
    shares = (
        counters.host_user
        + counters.host_nice
        + counters.host_system
        + counters.host_iowait
        + counters.host_steal
        + counters.host_idle
    )
    assert abs(shares - 1) < 0.02
    assert counters.memory_available_bytes > 0


def test_a_tree_holds_its_root_and_what_is_below_and_nothing_once_it_is_gone() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert process.pid in procfs.tree(os.getpid())
        assert procfs.tree(process.pid) == [process.pid]
        process.kill()
    assert procfs.tree(process.pid) == []
    assert procfs.tree(0) == []


def test_our_own_cpu_does_not_count_as_foreign() -> None:
    with closing(procfs.Sampler()) as sampler:
        sampler.begin()
        deadline = time.process_time() + 0.3
        while time.process_time() < deadline:
            pass
        counters = sampler.end()
    # Whatever else runs on this machine is foreign; our own CPU time must not be added to it.
    everything = (1 - counters.host_idle) * (os.cpu_count() or 1)
    assert counters.foreign_cpu < everything - 0.3 * 0.3e9 / counters.window_ns


def test_the_machine_is_named() -> None:
    machine = procfs.machine()
    assert machine["cpu"]
    assert machine["cores"] == len(os.sched_getaffinity(0))
    assert isinstance(machine["aes"], bool)


BURNER = """
import hashlib, os, sys, threading, time
print(1, flush=True)
sys.stdin.readline()
def burn(block=bytearray(1 << 20)):
    started = time.thread_time()
    while time.thread_time() - started < 0.25: hashlib.sha256(block)
threads = [threading.Thread(target=burn) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with open(sys.argv[1], "wb") as file:
    file.write(bytes(1 << 20))
    os.fsync(file.fileno())
print(time.process_time_ns(), flush=True)
sys.stdin.readline()
"""
"""Two threads of a quarter of a second each, which end; a megabyte written. Prints its own CPU time."""


@contextmanager
def burner(path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", BURNER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        yield process
        process.stdin.write("end\n")


def burn(process: subprocess.Popen[str]) -> int:
    """Let it do its work. Returns its CPU time since it began, as it reports it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_every_thread_of_a_server_without_a_control_group_is_counted_also_those_that_ended(tmp_path: Path) -> None:
    with burner(tmp_path / "f") as process, closing(procfs.Sampler(process.pid)) as sampler:
        sampler.refresh()
        sampler.begin()
        burn(process)
        counters = sampler.end()
    assert counters.server_cpu_ns >= 500_000_000
    assert counters.server_user_ns >= 300_000_000


def test_a_child_that_came_and_went_is_counted_by_whichever_process_waited_for_it() -> None:
    inner = "import time; n = 0\nwhile time.process_time() < 0.3: n += 1"
    outer = f"import subprocess, sys; sys.stdin.readline(); subprocess.run([sys.executable, '-c', {inner!r}]); print(1, flush=True); sys.stdin.readline()"
    command = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, outer]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wait_for("the inner process", lambda: len(procfs.tree(process.pid)) >= 2)
        with closing(procfs.Sampler(process.pid)) as sampler:
            sampler.begin()
            process.stdin.write("go\n")
            process.stdin.flush()
            process.stdout.readline()
            counters = sampler.end()
        process.stdin.write("end\n")
    assert counters.server_cpu_ns >= 250_000_000


def test_helpers_cpu_counts_as_the_servers_and_not_as_foreign(tmp_path: Path) -> None:
    # In the working directory: a file system in memory writes to no storage.
    path = Path(f".sample-{os.getpid()}")
    for _ in range(TRIES):
        try:
            with (
                burner(path) as process,
                closing(procfs.Sampler(helpers=[process.pid])) as sampler,
                closing(procfs.Sampler()) as stranger,
            ):
                stranger.begin()
                sampler.begin()
                spent = burn(process)
                counters = sampler.end()
                foreign = stranger.end()
        finally:
            path.unlink(missing_ok=True)
        assert counters.server_cpu_ns >= 500_000_000
        assert counters.server_write_bytes >= 1 << 20
        assert counters.server_memory_bytes > 1_000_000
        assert foreign.server_cpu_ns == foreign.server_write_bytes == foreign.server_memory_bytes == 0
        assert spent >= 500_000_000
        # The other sampler, whose window encloses this one, has counted it as foreign on top of everything foreign to both.
        theirs, ours = foreign.foreign_cpu * foreign.window_ns, counters.foreign_cpu * counters.window_ns
        if theirs - ours >= 0.8 * 500_000_000:
            break
    assert theirs - ours >= 0.8 * 500_000_000


def test_an_embedded_databases_helpers_are_counted_though_the_agent_is_not(tmp_path: Path) -> None:
    with burner(tmp_path / "f") as process:
        with closing(procfs.Sampler(process.pid, embedded=True)) as sampler:
            sampler.begin()
            assert sampler.end().server_cpu_ns == 0
        with closing(procfs.Sampler(os.getpid(), embedded=True, helpers=[process.pid])) as sampler:
            sampler.begin()
            burn(process)
            assert sampler.end().server_cpu_ns >= 500_000_000


def test_foreign_work_in_user_mode_is_told_from_work_of_the_kernel(tmp_path: Path) -> None:
    for _ in range(TRIES):
        with burner(tmp_path / "f") as process, closing(procfs.Sampler()) as sampler:
            sampler.begin()
            burn(process)
            user = sampler.end()
        assert user.foreign_user_cpu <= user.foreign_cpu
        if user.foreign_user_cpu * user.window_ns > 250_000_000:
            break
    assert user.foreign_user_cpu * user.window_ns > 250_000_000
    for _ in range(TRIES):
        with closing(procfs.Sampler()) as sampler:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
            sampler.begin()
            command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=4M", "count=2000"]
            spent = 0.0
            while spent < 0.2:
                subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
                spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime - before
            kernel = sampler.end()
        in_kernel = (kernel.foreign_cpu - kernel.foreign_user_cpu) * kernel.window_ns
        if in_kernel >= 0.5 * spent * 1e9:
            break
    assert in_kernel >= 0.5 * spent * 1e9


def test_what_the_agent_used_in_user_mode_is_not_foreign(tmp_path: Path) -> None:
    for _ in range(TRIES):
        with burner(tmp_path / "f") as process, closing(procfs.Sampler()) as told, closing(procfs.Sampler()) as untold:
            told.begin()
            untold.begin()
            spent = burn(process)
            for sampler in (told, untold):
                sampler.stop()
            known, unknown = told.end(spent, spent), untold.end()
            told.begin()
            none = told.end(10**12, 10**12)
        assert none.foreign_cpu == none.foreign_user_cpu == 0
        less = unknown.foreign_user_cpu * unknown.window_ns - known.foreign_user_cpu * known.window_ns
        if less > 0.5 * spent:
            break
    assert less > 0.5 * spent


def test_counters_that_fall_are_recorded_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler keeps to the ranges of the record, so that everything written can be read.

    Counters fall when a process ends, an interface goes away, or the kernel corrects how long it waited.
    """
    with closing(procfs.Sampler(os.getpid())) as sampler:
        high = sampler.level()
        fallen = {
            name: tuple(0 for _ in value) if isinstance(value, tuple) else 0
            for name in high.__struct_fields__
            if (value := getattr(high, name)) is not None and name != "at_ns"
        }
        levels = iter((high, msgspec.structs.replace(high, **fallen, at_ns=high.at_ns + 10**9)))
        monkeypatch.setattr(sampler, "_level", lambda: next(levels))
        sampler.begin()
        counters = sampler.end()
    assert high.own_cpu_ns > 0
    assert sum(high.host) > 0
    assert msgspec.json.decode(msgspec.json.encode(counters), type=Counters) == counters
    figures = {name: getattr(counters, name) for name in counters.__struct_fields__}
    assert {name: value for name, value in figures.items() if isinstance(value, int | float) and value < 0} == {}
    assert (counters.network_bytes, counters.server_read_bytes, counters.disk_queue) == (0, 0, 0)
