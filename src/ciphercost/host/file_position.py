"""file_position: how far a process has read a file, from /proc: a tool that loads a dump prints no progress of its own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from ciphercost.host.supervisor import Process
from ciphercost.model.errors import RunError


def followed(process: Process, path: Path, read: Callable[[int], None], every: float, timeout: float) -> int:
    """Wait for a process that reads a file, or the files of a directory. Calls `read` with the bytes read so far. Returns its status.

    Raises RunError after `timeout` seconds.
    """
    place = path.resolve()
    done: dict[str, int] = {}
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(RunError):
            return process.wait(every)
        done |= positions(process.pid, place)
        if done:
            read(sum(done.values()))
        if time.monotonic() >= deadline:
            raise RunError(f"{process.name} did not end within {timeout:g} seconds")


def positions(pid: int, place: Path) -> dict[str, int]:
    """By path: the offset of each file at or below `place` that the process has open. Empty if it can't be seen."""
    offsets = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError, ValueError):
                file = Path(entry.path).readlink()
                if file == place or file.is_relative_to(place):
                    first = Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text().split("\n", 1)[0]
                    offsets[str(file)] = int(first.removeprefix("pos:"))
    return offsets
