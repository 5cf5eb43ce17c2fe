"""sar: computes what `sar -u` and `sar -r` print, every few seconds while something else runs. Reads /proc, no
statistics.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from ciphercost.host.procfs import memory_pss, tree
from ciphercost.model.study import HostSample

INTERVAL = 5.0
"""Seconds between two rows, as in the study."""
Ticks = tuple[int, ...]
"""user, nice, system, idle, iowait, irq, softirq, steal of /proc/stat."""


def percentages(before: Ticks, after: Ticks) -> tuple[float, float, float, float, float, float]:
    """%user, %nice, %system, %iowait, %steal, %idle between two readings, with sar's arithmetic. Pure.

    %system includes interrupts, %user includes guest time. A counter that went backwards (iowait and idle may, after a
    CPU was offline) counts as zero, and the total is the sum of what was counted. All zero if no time passed.
    """
    user, nice, system, idle, iowait, irq, softirq, steal = (
        max(0, now - then) for then, now in zip(before[:8], after[:8], strict=True)
    )
    whole = user + nice + system + idle + iowait + irq + softirq + steal
    scale = 100 / whole if whole else 0.0
    parts = (user, nice, system + irq + softirq, iowait, steal, idle)
    return tuple(part * scale for part in parts)  # type: ignore[return-value]


def ticks(text: str | None = None, cpu: int | None = None) -> Ticks:
    """The machine's line of /proc/stat, or of `text`; or the line of one CPU."""
    whole = text if text is not None else Path("/proc/stat").read_text()
    wanted = "cpu" if cpu is None else f"cpu{cpu}"
    line = next(line for line in whole.splitlines() if line.split(None, 1)[0] == wanted)
    return tuple(int(value) for value in line.split()[1:9])


def memory_free(text: str | None = None) -> int:
    """Bytes of unused memory in /proc/meminfo, or in `text`."""
    whole = text if text is not None else Path("/proc/meminfo").read_text()
    return next((int(line.split()[1]) * 1024 for line in whole.splitlines() if line.startswith("MemFree:")), 0)


def memory(text: str | None = None) -> tuple[int, int]:
    """(available, used) bytes of /proc/meminfo, or of `text`. Used is everything that is not available, so caches that
    can be dropped don't count as used.
    """
    sizes = {}
    for line in (text if text is not None else Path("/proc/meminfo").read_text()).splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            sizes[name] = int(rest.split()[0]) * 1024
    available = sizes.get("MemAvailable", 0)
    return available, sizes.get("MemTotal", 0) - available


class Sar:
    """A thread that takes a row every `interval` seconds. Leaving it takes the last, shorter one.

    `server`: root of the server's processes; `cpu`: report only this CPU's time, if the load runs on one.
    """

    def __init__(self, server: int = 0, interval: float = INTERVAL, cpu: int | None = None) -> None:
        self.rows: list[HostSample] = []
        self._server = server
        self._interval = interval
        self._cpu = cpu
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._began = self._at = time.monotonic()
        self._ticks = ticks(cpu=self._cpu)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._row()

    def _watch(self) -> None:
        due = self._began
        while not self._over.wait(max(0.0, (due := due + self._interval) - time.monotonic())):
            self._row()

    def _row(self) -> None:
        now, level = time.monotonic(), ticks(cpu=self._cpu)
        if sum(level) <= sum(self._ticks):
            return  # no clock tick has passed since the last row
        user, nice, system, iowait, steal, idle = percentages(self._ticks, level)
        available, used = memory()
        self.rows.append(
            HostSample(
                at_s=round(now - self._began, 3),
                seconds=round(now - self._at, 3),
                user=user,
                nice=nice,
                system=system,
                iowait=iowait,
                steal=steal,
                idle=idle,
                memory_available_bytes=available,
                memory_used_bytes=used,
                server_memory_bytes=memory_pss(tree(self._server)),
                memory_free_bytes=memory_free(),
            )
        )
        self._at, self._ticks = now, level
