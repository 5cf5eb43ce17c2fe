"""cpu_quota: how much CPU time a control group allows a process, and how long it was held back. Reads /proc and control groups.

A container or a systemd unit with a quota (`cpu.max`, in version 1 `cpu.cfs_quota_us`) stops all its threads once they have used the quota
of a period (100 ms), until the next one begins. The quota of every group above counts too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ciphercost.host.control_groups import PROC, hierarchies
from ciphercost.host.proc_file import ProcFile


class Quota(NamedTuple):
    """The quota of one control group."""

    cores: float
    """Quota ÷ period."""
    group: Path


class _Files(NamedTuple):
    quota: str
    period: str
    """Empty: the quota's file has both."""
    throttled: bytes
    """Name of the line of cpu.stat."""
    ns: int
    """Nanoseconds in its unit."""


_V1 = _Files("cpu.cfs_quota_us", "cpu.cfs_period_us", b"throttled_time", 1)
_V2 = _Files("cpu.max", "", b"throttled_usec", 1000)


def quotas(pid: int, proc: Path = PROC) -> list[Quota]:
    """The quotas that hold for a process, of its own control group and of those above it. Empty: none, or it is gone."""
    return [Quota(cores, group) for group, files in _groups(pid, proc) if (cores := _cores(group, files)) is not None]


def tightest(pid: int, proc: Path = PROC) -> Quota | None:
    """The smallest quota that holds for a process; None: none does."""
    return min(quotas(pid, proc), default=None)


def threads(cpus: int, quota: Quota | None) -> int:
    """How many threads can run at once on so many CPUs under a quota, at least 1. Pure."""
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota.cores)))


class Throttling:
    """How long processes were held back by their quotas: the sum over the groups that have one, each counted once.

    The kernel adds a wait when it is over, at the end of a period, so windows shorter than that say little.
    """

    def __init__(self, pids: Iterable[int], proc: Path = PROC) -> None:
        self._files: dict[Path, tuple[ProcFile, _Files]] = {}
        for pid in pids:
            for group, files in _groups(pid, proc) if pid else ():
                if group in self._files or _cores(group, files) is None:
                    continue
                with contextlib.suppress(OSError):
                    self._files[group] = ProcFile(group / "cpu.stat"), files

    def level_ns(self) -> int:
        """Nanoseconds so far in which a CPU was withheld from a group, summed over its CPUs; -1: no group has a quota."""
        if not self._files:
            return -1
        total = 0
        for file, files in self._files.values():
            with contextlib.suppress(OSError, ValueError):  # the group is gone
                lines = dict(line.split(None, 1) for line in file.read().splitlines())
                total += int(lines.get(files.throttled, 0)) * files.ns
        return total

    def close(self) -> None:
        for file, _ in self._files.values():
            file.close()


def _cores(group: Path, files: _Files) -> float | None:
    """The group's quota, in cores; None: it has none."""
    try:
        words = (group / files.quota).read_text().split()
        period = (group / files.period).read_text().strip() if files.period else words[1]
        quota, period_us = int(words[0]), int(period)
    except (OSError, ValueError, IndexError):  # `max` is no number, and the root group has no file
        return None
    return quota / period_us if quota > 0 and period_us > 0 else None


def _groups(pid: int, proc: Path) -> Iterator[tuple[Path, _Files]]:
    """The control groups that may limit a process's CPU time, with the names of their files: its own first, then those above."""
    own_paths = {hierarchy.mount: hierarchy.path for hierarchy in hierarchies("cpu", 0, proc)}
    for hierarchy in hierarchies("cpu", pid, proc):
        if not hierarchy.path or ".." in PurePosixPath(hierarchy.path).parts:
            continue  # it is in no group, or in one that this machine's view does not contain
        if not hierarchy.inner.is_dir() and hierarchy.path != own_paths.get(hierarchy.mount):
            continue
        for group in (hierarchy.nearest, *hierarchy.nearest.parents):
            yield group, _V1 if hierarchy.version == 1 else _V2
            if group == hierarchy.mount:
                break
