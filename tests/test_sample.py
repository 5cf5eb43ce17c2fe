"""sample: counters that move when, and only when, something happens."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing

from ciphercost import sample

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
        with closing(sample.Sampler(process.pid)) as sampler:
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
    with closing(sample.Sampler()) as sampler:
        sampler.begin()
        deadline = time.process_time() + 0.2
        while time.process_time() < deadline:
            pass
        found = sampler.end()
    shares = (
        found.host_user + found.host_nice + found.host_system + found.host_iowait + found.host_steal + found.host_idle
    )
    assert abs(shares - 1) < 0.02
    assert found.memory_available_bytes > 0


def test_a_tree_holds_its_root_and_what_is_below_and_nothing_once_it_is_gone() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert process.pid in sample.tree(os.getpid())
        assert sample.tree(process.pid) == [process.pid]
        process.kill()
    assert sample.tree(process.pid) == []
    assert sample.tree(0) == []


def test_what_this_process_used_is_not_taken_for_foreign() -> None:
    with closing(sample.Sampler()) as sampler:
        sampler.begin()
        deadline = time.process_time() + 0.3
        while time.process_time() < deadline:
            pass
        found = sampler.end()
    # Whatever else runs on this machine is foreign; what we burnt must not be in it on top.
    everything = (1 - found.host_idle) * (os.cpu_count() or 1)
    assert found.foreign_cpu < everything - 0.3 * 0.3e9 / found.window_ns


def test_the_machine_is_named() -> None:
    machine = sample.machine()
    assert machine["cpu"]
    assert machine["cores"] == len(os.sched_getaffinity(0))
    assert isinstance(machine["aes"], bool)
