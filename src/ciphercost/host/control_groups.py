"""control_groups: where the kernel's control groups are mounted, and in which of them a process is. Reads /proc."""

from __future__ import annotations

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


def lines(path: Path) -> list[str]:
    """The lines of a file; none if it can't be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
