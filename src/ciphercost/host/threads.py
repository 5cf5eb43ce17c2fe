"""threads: the CPU time of each thread of some processes, in user mode and in kernel mode. Reads /proc, no statistics.

The total comes from the scheduler (nanoseconds). User and kernel mode are counted separately only in clock ticks of 10
ms, which says little about short work.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class ThreadTime(msgspec.Struct, frozen=True):
    """Seconds of CPU of one thread since it began, or between two readings."""

    name: str
    pid: int
    thread: int
    seconds: float
    """From the scheduler; if the kernel keeps no account of that, the sum of user and kernel mode."""
    user: float
    system: float


def parse(stat: bytes, schedstat: bytes = b"") -> tuple[str, float, float, float]:
    """(name, seconds, user, system) from a thread's two files; the name may contain spaces and parentheses. Pure."""
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    user, system = int(fields[11]) * _TICK_S, int(fields[12]) * _TICK_S
    words = schedstat.split()
    seconds = int(words[0]) / 1e9 if words and words[0] != b"0" else user + system
    return before.partition(b"(")[2].decode(errors="replace"), seconds, user, system


def read(pids: Iterable[int]) -> dict[int, ThreadTime]:
    """Every thread of these processes, by its id. Threads that vanish meanwhile are left out."""
    times: dict[int, ThreadTime] = {}
    for pid in pids:
        tasks = Path(f"/proc/{pid}/task")
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):  # noqa: PTH208 - names are all that is wanted
                with contextlib.suppress(OSError):
                    name, seconds, user, system = parse(
                        (tasks / thread / "stat").read_bytes(), _schedstat(tasks / thread)
                    )
                    times[int(thread)] = ThreadTime(name, pid, int(thread), seconds, user, system)
    return times


def _schedstat(task: Path) -> bytes:
    """Empty if the kernel has none."""
    try:
        return (task / "schedstat").read_bytes()
    except OSError:
        return b""


def between(before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]) -> list[ThreadTime]:
    """CPU time of each thread that did anything between the readings, busiest first. A thread that ended meanwhile is
    missing. Pure.
    """
    busy = []
    for thread, now in after.items():
        then = before.get(thread)
        if then is not None:
            now = ThreadTime(
                now.name, now.pid, thread, now.seconds - then.seconds, now.user - then.user, now.system - then.system
            )
        if now.seconds > 0:
            busy.append(now)
    return sorted(busy, key=lambda thread_time: -thread_time.seconds)
