"""Sample the study's four counters at a fixed interval over a window. I/O in `sample`; no statistics.

Processor time covers all CPUs without client and controller, which the study ran on another machine.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from ciphercost.host import procfs
from ciphercost.host.proc_file import ProcFile
from ciphercost.studies.web_tls.published import DISK, MEMORY, NETWORK, PROCESSOR

SERVER = "server_time_percent"
"""Processor time of the server's own processes alone, which the study did not measure."""
READ = (PROCESSOR, MEMORY, NETWORK, DISK, SERVER)
CPUS = os.cpu_count() or 1
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4, 7)
"""Fields of a line of /proc/stat: idle, iowait, steal."""


class Level(msgspec.Struct, frozen=True):
    """All counters at one moment; cumulative ones so far."""

    at_ns: int
    machine_ns: int
    """CPU time except client and controller."""
    server_ns: int
    memory: int
    bytes: int
    disk_ms: int
    """Weighted by requests in flight."""
    disk_busy_ms: tuple[int, ...] = ()
    """Time of each disk with any request in flight."""


class Counters:
    """Reads the counters. `agent`: the client's process; `device`: the network interface that receives its bytes, empty: loopback."""

    def __init__(self, sampler: procfs.Sampler, agent: int, device: str = "") -> None:
        self._sampler, self._agent = sampler, agent
        card = Path("/sys/class/net") / device / "statistics" if device else None
        self._card = [ProcFile(card / name) for name in ("rx_bytes", "tx_bytes")] if card else []
        self._lock = threading.Lock()

    def close(self) -> None:
        for file in self._card:
            file.close()

    def read(self) -> Level:
        with self._lock:
            now = self._sampler.level()
            client = procfs.cpu_clock_ns(self._agent)
            crossed = sum(int(file.read()) for file in self._card) if self._card else now.network_bytes
        busy = sum(ticks for number, ticks in enumerate(now.host) if number not in _IDLE) * _TICK_NS
        everything = now.all_cpu_ns if now.all_cpu_ns >= 0 else busy
        return Level(
            at_ns=now.at_ns,
            machine_ns=everything - client - now.own_cpu_ns,
            server_ns=now.server_cpu_ns,
            memory=now.memory_available,
            bytes=crossed,
            disk_ms=now.disk_weighted_ms,
            disk_busy_ms=now.disk_busy_ms,
        )


def between(before: Level, after: Level) -> dict[str, float]:
    """The counters between two readings. Pure."""
    ns = max(1, after.at_ns - before.at_ns)
    return {
        PROCESSOR: max(0.0, (after.machine_ns - before.machine_ns) / ns / CPUS * 100),
        MEMORY: (before.memory + after.memory) / 2,
        NETWORK: (after.bytes - before.bytes) / ns * 1e9,
        DISK: max(0.0, (after.disk_ms - before.disk_ms) * 1e6 / ns),
        SERVER: max(0.0, (after.server_ns - before.server_ns) / ns / CPUS * 100),
    }


def series(levels: Sequence[Level]) -> dict[str, list[float]]:
    """For consecutive readings: when each sample ended, how long it was, and its counters. Pure."""
    by_name: dict[str, list[float]] = {"at_s": [], "seconds": [], **{name: [] for name in READ}}
    for before, after in itertools.pairwise(levels):
        by_name["at_s"].append((after.at_ns - levels[0].at_ns) / 1e9)
        by_name["seconds"].append((after.at_ns - before.at_ns) / 1e9)
        for name, value in between(before, after).items():
            by_name[name].append(value)
    return by_name


class Watch:
    """A thread that reads the counters every `interval` seconds until `end`."""

    def __init__(self, counters: Counters, interval: float) -> None:
        self.levels: list[Level] = []
        self._counters, self._interval = counters, interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self.levels.append(self._counters.read())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def until(self, seconds: float) -> None:
        """Wait until the window has this length, then end it."""
        time.sleep(max(0.0, self._began + seconds - time.monotonic()))
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        due = self._began
        while not self._over.wait(max(0.0, (due := due + self._interval) - time.monotonic())):
            self.levels.append(self._counters.read())
        # The rest of the window, unless it is too short for a sample.
        last = self._counters.read()
        if last.at_ns - self.levels[-1].at_ns > self._interval * 5e8:
            self.levels.append(last)
