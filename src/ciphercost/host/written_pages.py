"""How many bytes the kernel counts for a page that a process writes to a file.

`write_bytes` of /proc/PID/io grows when a folio of the page cache becomes dirty, by the folio's whole size. Folios were pages once. On a
file system with large folios (XFS since Linux 5.18, ext4 since 6.16) a folio is as large as what created it: after a file was written in
pieces of 1 MiB, each page of 4 KiB that is written to it counts as 1 MiB, although only its block goes to the disk. Then nobody knows
from these counters what a server wrote. `read_bytes` counts requests to the device and is right.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from ciphercost.host.procfs import WRITTEN_BYTES
from ciphercost.model.facts import PAGE

PIECE = 1 << 20


def most_counted(directories: Iterable[Path]) -> int:
    """Bytes that the kernel counts for `PAGE` bytes written, in that of these directories where they are most.

    0: it counts nothing there (tmpfs, or a file system in user space, whose daemon writes elsewhere), or nobody can tell.
    """
    return max(map(counted, set(directories)), default=0)


def counted(directory: Path) -> int:
    """As `most_counted`, in one directory: writes to a file without a name, which exists only meanwhile."""
    try:
        file = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return 0
    try:
        os.pwrite(file, bytes(PIECE), 0)
        os.fsync(file)
        before = _written()
        os.pwrite(file, bytes(PAGE), 0)
        return _written() - before
    except OSError:
        return 0
    finally:
        os.close(file)


def _written() -> int:
    """What this thread has written so far. Raises OSError if the kernel doesn't say."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/io").read_bytes().split()[WRITTEN_BYTES])
