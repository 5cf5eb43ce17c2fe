"""threads: processes -> the CPU time of each of their threads, in user mode and in kernel mode. I/O by /proc, no statistics.

The whole comes from the scheduler (nanoseconds); user mode apart from kernel mode is counted in clock ticks of 10 ms, so that of
little work it says little.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class ThreadTime(msgspec.Struct, frozen=True):
    """Seconds of one thread since it began, or between two looks."""

    name: str
    pid: int
    thread: int
    seconds: float
    """By the scheduler; where the kernel keeps no account of that, user and kernel mode together."""
    user: float
    system: float


def parse(stat: bytes, schedstat: bytes = b"") -> tuple[str, float, float, float]:
    """(name, seconds, user, system) of a thread's two files; the name may hold blanks and parentheses. Pure."""
    before, _, after = stat.rpartition(b")")
    fields = after.split()
    user, system = int(fields[11]) * _TICK_S, int(fields[12]) * _TICK_S
    words = schedstat.split()
    seconds = int(words[0]) / 1e9 if words and words[0] != b"0" else user + system
    return before.partition(b"(")[2].decode(errors="replace"), seconds, user, system


def read(pids: Iterable[int]) -> dict[int, ThreadTime]:
    """Every thread of these processes, by its id. What is gone meanwhile is left out."""
    found: dict[int, ThreadTime] = {}
    for pid in pids:
        tasks = Path(f"/proc/{pid}/task")
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):  # noqa: PTH208 - names are all that is wanted
                with contextlib.suppress(OSError):
                    name, seconds, user, system = parse(
                        (tasks / thread / "stat").read_bytes(), _schedstat(tasks / thread)
                    )
                    found[int(thread)] = ThreadTime(name, pid, int(thread), seconds, user, system)
    return found


def _schedstat(task: Path) -> bytes:
    """Empty where the kernel has none."""
    try:
        return (task / "schedstat").read_bytes()
    except OSError:
        return b""


def between(before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]) -> list[ThreadTime]:
    """What each thread that did anything did meanwhile, the busiest first; one that ended meanwhile is not known. Pure."""
    found = []
    for thread, now in after.items():
        then = before.get(thread)
        if then is not None:
            now = ThreadTime(
                now.name, now.pid, thread, now.seconds - then.seconds, now.user - then.user, now.system - then.system
            )
        if now.seconds > 0:
            found.append(now)
    return sorted(found, key=lambda each: -each.seconds)
