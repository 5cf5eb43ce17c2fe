"""control_groups: where the kernel's control groups are mounted, which of them a process or a systemd unit is in, and whether one counts CPU time.
Reads /proc and the groups.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Hierarchy(NamedTuple):
    """A mounted hierarchy of control groups."""

    version: int
    mount: Path
    path: str
    """The process's group in it; empty: it is in none, or it is gone."""

    @property
    def inner(self) -> Path:
        """The directory of that group, which exists only if this mount shows it."""
        return self.mount / self.path.strip("/")

    @property
    def nearest(self) -> Path:
        """The same, or the mount: a container may see it from a deeper root."""
        return self.inner if self.inner.is_dir() else self.mount


def hierarchies(controller: str, pid: int = 0, proc: Path = PROC) -> Iterator[Hierarchy]:
    """The hierarchies of version 1 with this controller, and those of version 2, in the order of the mounts. `pid` 0: of this process."""
    paths = {}
    for line in lines(proc / str(pid or "self") / "cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            paths[2] = path
        elif controller in controllers.split(","):
            paths[1] = path
    for line in lines(proc / "self/mounts"):
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2":
            yield Hierarchy(2, Path(mount), paths.get(2, ""))
        elif kind == "cgroup" and controller in options.split(","):
            yield Hierarchy(1, Path(mount), paths.get(1, ""))


def counts_cpu(group: Path) -> bool:
    """Whether the kernel counts the CPU time of this group here: `cpuacct` of version 1, or version 2."""
    return (group / "cpuacct.usage").exists() or any(
        line.startswith("usage_usec") for line in lines(group / "cpu.stat")
    )


def counting(path: str, proc: Path = PROC) -> Path | None:
    """The directory of a group, by its path below the root, in the hierarchy that counts its CPU time; None: there is none."""
    found = (hierarchy.mount / path.strip("/") for hierarchy in hierarchies("cpuacct", proc=proc))
    return next(filter(counts_cpu, found), None)


def of_unit(unit: str, proc: Path = PROC) -> list[Path]:
    """The groups of a systemd unit by its name, where systemd can't be asked: in a container that sees the groups of its host."""
    name = unit if "." in unit else f"{unit}.service"
    for hierarchy in hierarchies("cpuacct", proc=proc):
        if found := [group for group in hierarchy.mount.rglob(f"*.slice/{glob.escape(name)}") if counts_cpu(group)]:
            return found
    return []


def members(group: Path) -> list[int]:
    """The processes in a group and in those below it, lowest first. One of another PID namespace is 0."""
    return sorted(int(line) for path in group.rglob("cgroup.procs") for line in lines(path))


def lines(path: Path) -> list[str]:
    """The lines of a file; none if it can't be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
