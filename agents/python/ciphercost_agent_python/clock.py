"""The time in nanoseconds, and the CPU time of this thread and this process."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import time
from typing import NamedTuple

now = time.monotonic_ns
_SET_TIMER_SLACK = 29


class Cpu(NamedTuple):
    """Nanoseconds in user mode and in the kernel."""

    user_ns: int
    system_ns: int

    def since(self, before: Cpu) -> Cpu:
        return Cpu(max(0, self.user_ns - before.user_ns), max(0, self.system_ns - before.system_ns))


def thread_cpu() -> Cpu:
    """Of the calling thread. The sum is exact; the split is sampled where the kernel counts in ticks."""
    return _cpu(resource.RUSAGE_THREAD)


def process_ns() -> int:
    """Of all threads of this process."""
    return time.process_time_ns()


def _cpu(whose: int) -> Cpu:
    used = resource.getrusage(whose)
    return Cpu(round(used.ru_utime * 1e9), round(used.ru_stime * 1e9))


def sleep_until(due: int) -> None:
    """Block this thread until the monotonic clock shows `due`."""
    while (left := due - now()) > 0:
        time.sleep(left / 1e9)


def wake_on_time() -> None:
    """Make this thread's timers fire on time: the kernel's default slack of 50 µs would add to the measured latency."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(1), 0, 0, 0)
