"""scheduling: how often the kernel gave a CPU to the threads of some processes, and how many page faults these took. Reads /proc,
which everybody may.

A thread gets a CPU when it is woken, or again after another one had it. So this counts wake-ups and preemptions together.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from ciphercost.host.proc_file import ProcFile

MOST_THREADS = 300
"""Reading a thread's counter takes about 4 µs: of more threads it would last too long beside a slice."""
MINOR, CHILDRENS_MINOR, MAJOR, CHILDRENS_MAJOR, THREADS = 7, 8, 9, 10, 17
"""Positions in /proc/PID/stat after the command's name (proc_pid_stat(5))."""


class Scheduling:
    """Counters of processes that `refresh` names."""

    def __init__(self) -> None:
        self._threads: dict[tuple[int, str], ProcFile] = {}
        self._processes: dict[int, ProcFile] = {}

    def refresh(self, pids: Iterable[int]) -> None:
        """From now on count these processes, with the threads that they have now. More than `MOST_THREADS`: count none."""
        threads = {(pid, thread) for pid in pids for thread in _threads(pid)}
        if len(threads) > MOST_THREADS:
            threads = set()
        processes = {pid for pid, _ in threads}
        for key in self._threads.keys() - threads:
            self._threads.pop(key).close()
        for pid in self._processes.keys() - processes:
            self._processes.pop(pid).close()
        with contextlib.suppress(OSError):
            for pid in processes - self._processes.keys():
                self._processes[pid] = ProcFile(f"/proc/{pid}/stat")
            for pid, thread in threads - self._threads.keys():
                self._threads[pid, thread] = ProcFile(f"/proc/{pid}/task/{thread}/schedstat")

    def level(self) -> tuple[int, int] | None:
        """(times that a thread got a CPU, page faults) so far; None if unknown, or if threads have come or gone since `refresh`."""
        if not self._threads:
            return None
        faults = threads = 0
        try:
            for file in self._processes.values():
                fields = file.read().rpartition(b")")[2].split()
                faults += sum(int(fields[at]) for at in (MINOR, CHILDRENS_MINOR, MAJOR, CHILDRENS_MAJOR))
                threads += int(fields[THREADS])
            if threads != len(self._threads):
                return None
            return sum(int(file.read().split()[2]) for file in self._threads.values()), faults
        except (OSError, IndexError):
            return None

    def close(self) -> None:
        for file in (*self._threads.values(), *self._processes.values()):
            file.close()
        self._threads, self._processes = {}, {}


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
