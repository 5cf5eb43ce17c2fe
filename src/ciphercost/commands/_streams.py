"""Standard streams that are closed, or that nobody reads any more: neither costs a run its result."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

STANDARD = 3
"""File descriptors 0 to 2."""


class _Dropping(io.FileIO):
    """A file that drops what it can't write: a terminal or pipe that was closed, or a full disk."""

    def write(self, data: object) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or 0  # type: ignore[arg-type]
        return memoryview(data).nbytes  # type: ignore[arg-type]


def prepare() -> None:
    """Open /dev/null in place of each standard stream that was closed before the start, and let nothing that is written to standard
    error fail.

    Otherwise a file that the run opens would take the number of a standard stream, and what a child prints would go into that file.
    """
    _fill()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = _writer(io.FileIO(1, "w", closefd=False))
    if sys.stderr is sys.__stderr__:  # else whoever called this in a process of their own has replaced it
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr = _writer(_Dropping(2, "w", closefd=False), encoding)


def _fill() -> None:
    """Make every standard descriptor an open one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _writer(file: io.FileIO, encoding: str = "utf-8") -> TextIO:
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=True)


def flush() -> None:
    """Write what is left. If nobody reads it any more (a closed terminal), drop it: Python would end with status 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
