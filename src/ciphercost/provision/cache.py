"""cache: turns --cache and the size of the data into settings of the server's own cache, and empties the operating
system's cache.

    warm    the server's own size, filled by the warm-up: the cost of encryption where little is read from the disk again
    cold    the server's own size, and the system's cache emptied before each session: both arms begin by reading
    small   a tenth of the data, and the system's cache emptied before each session: the cost where encryption acts on each page

Both arms always get the same treatment. Direct I/O is used where server and mechanism support it in both arms, so that
a page missing from the server's cache is read from the disk. Without it, the system's cache answers, and `caveat` says
so.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.spec import CellSpec

SMALL = 10
"""Size of the data divided by the size of a small cache."""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def pool(cell: CellSpec, data_bytes: int) -> int:
    """Bytes of the server's own cache. 0: the server's default, also while data is being loaded. Pure."""
    return max(data_bytes // SMALL, 1) if cell.cache == "small" and data_bytes else 0


def settings(engine: Engine, cell: CellSpec, data_bytes: int, direct: bool) -> dict[str, str]:
    """Settings of the server of either arm. `data_bytes`: of the loaded data directory; `direct`: whether both arms can
    do direct I/O.

    Raises UsageError if this server's cache can't be sized.
    """
    if engine.embedded or not isinstance(engine, StoresData):
        return {}
    return engine.cache_settings(pool(cell, data_bytes), direct=direct)


def connection(engine: Engine, cell: CellSpec, data_bytes: int) -> Changes:
    """For an embedded engine: what its cache adds to a connection, to be merged with `joined`. Empty for a server."""
    if not engine.embedded or not isinstance(engine, StoresData):
        return {}
    asked = engine.cache_settings(pool(cell, data_bytes), direct=False)
    return {"pragmas": ";".join(f"PRAGMA {name}={value}" for name, value in asked.items())} if asked else {}


def joined(connection: Connection, more: Changes) -> Connection:
    """Add to a connection. Pragmas run in order: page settings come first, because a new file is made with them."""
    if connection.pragmas is not None and (more_pragmas := more.get("pragmas")) is not None:
        more = {**more, "pragmas": f"{connection.pragmas};{more_pragmas}"}
    return connection | more


def empties(cell: CellSpec) -> bool:
    """Whether the system's cache is emptied before each session. Pure."""
    return cell.cache != "warm"


def size(directory: Path) -> int:
    """Total length in bytes of all files below a directory (not their allocated blocks), as used for `data_bytes`."""
    return sum(length for _, length in _files([directory]))


def drop(paths: Iterable[Path]) -> str:
    """Make the system drop its cached pages of every file below these directories, after writing them to disk. Returns
    a description of what was done.

    Each file is written back and released (posix_fadvise). If permitted, the kernel then drops every clean page of the
    machine, which also covers stacked file systems (FUSE, loop devices). Call it before a server starts: pages that a
    process has mapped are not released.
    """
    given_up = refused = 0
    for path, _ in _files(paths):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            refused += 1
            continue
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            given_up += 1
        except OSError:
            refused += 1
        finally:
            os.close(descriptor)
    words = f"{given_up} files written back and released (posix_fadvise)"
    if refused:
        words += f", {refused} could not be"
    try:
        os.sync()
        DROP_CACHES.write_text("1\n")
    except OSError as error:
        return f"{words}; the kernel's whole page cache not dropped (drop_caches: {error.strerror})"
    return f"{words}; the kernel's whole page cache dropped (drop_caches)"


def caveat(cell: CellSpec, *, direct: bool, below: bool) -> str:
    """What a reader must know about reads that miss the server's own cache. Empty: nothing. Pure.

    `below`: encryption happens below the server (in a file system), so the system's cache holds decrypted pages.
    """
    if direct or cell.cache == "warm":
        return ""
    beginning = (
        "no direct I/O in both arms: a page missing from the server's own cache is read from the operating system's "
        "page cache if it is there, and not from the disk; "
    )
    if below:
        return beginning + (
            "that cache holds decrypted pages, so a page is decrypted only when it is first read: the figures mostly "
            "show the cost of writing"
        )
    return (
        beginning
        + "that cache holds encrypted pages, so every such page is decrypted, but the disk's own time is missing"
    )


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """Regular files below directories, or given themselves, each with its length in bytes. Links are not followed; files that vanish
    meanwhile are skipped.
    """
    for path in paths:
        below = (f"{parent}/{name}" for parent, _, names in os.walk(path) for name in names)
        for file in itertools.chain([str(path)], below):
            with contextlib.suppress(OSError):
                status = os.lstat(file)
                if stat.S_ISREG(status.st_mode):
                    yield file, status.st_size
