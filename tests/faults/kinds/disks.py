"""Disks that fill up: the one of the servers' data and logs, the one of the record, or both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from faults.world import Fault, Going, World

SIZE = "1500M"
FILLER = "filler"


def small(where: str, world: World) -> None:
    """Put scratch or the record on a file system of its own, in memory."""
    place = world.directory / f"small-{where}"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=711", "small", str(place)], check=True)
    world.stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=False)
    if where == "scratch":
        world.scratch_in(place / "scratch")
    else:
        world.run = place / "run"


def fill(where: str, going: Going) -> bool:
    """Take all that is left."""
    place = going.world.directory / f"small-{where}"
    with (place / FILLER).open("wb") as file:
        left = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
        try:
            os.posix_fallocate(file.fileno(), 0, max(1, left))
        except OSError:
            return True  # somebody else was faster
    return True


def free(where: str, world: World) -> None:
    Path(world.directory / f"small-{where}" / FILLER).unlink(missing_ok=True)


def is_root(_: str) -> bool:
    return os.geteuid() == 0


def full(where: str) -> tuple[Callable[[Going], bool], Callable[[World], None], Callable[[World], None]]:
    return partial(fill, where), partial(small, where), partial(free, where)


FAULTS = (
    Fault("disk of the servers' data full", *full("scratch"), suits=is_root),
    Fault("disk of the record full", *full("record"), suits=is_root),
)
