"""proc_file: a file below /proc or /sys that is read again and again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path


class _Buffer(threading.local):
    """Where a thread reads files to: a new one for each read would leave gaps in this process's memory, which then grows."""

    def __init__(self) -> None:
        self.content = bytearray(1 << 16)


_buffer = _Buffer()


class ProcFile:
    """A file below /proc or /sys that is read repeatedly: opened once, read from its start."""

    def __init__(self, path: Path | str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        count = os.preadv(self._descriptor, [_buffer.content], 0)
        return bytes(memoryview(_buffer.content)[:count])

    def close(self) -> None:
        os.close(self._descriptor)


def opened(path: Path | str) -> ProcFile | None:
    """The file; None if it can't be opened."""
    try:
        return ProcFile(path)
    except OSError:
        return None


def cpu_files(cgroups: Iterable[Path]) -> dict[str, ProcFile]:
    """The counters of CPU time, by name, each of the first of these control groups that has it."""
    files: dict[str, ProcFile] = {}
    for group in cgroups:
        for name in ("cpuacct.usage", "cpuacct.usage_user", "cpuacct.usage_sys", "cpu.stat"):
            if name not in files and (file := opened(group / name)):
                files[name] = file
    return files
