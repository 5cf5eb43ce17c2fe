"""cache: --cache and the size of the data -> settings of a server's own cache; and the operating system's cache, emptied.

    warm    the server's own size, filled by the warm-up: what encryption costs where little is read again from the disk
    cold    the server's own size, and the system's cache emptied before each session: both arms begin with reading
    small   a tenth of the data, and the system's cache emptied before each session: cost where encryption acts, at each page

Whatever is done is done alike in both arms. Direct I/O is used where server and mechanism have it in both arms, so that a page that
the server does not hold is read from the disk; where there is none, the system's cache answers, and `caveat` says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.model.spec import CellSpec

SMALL = 10
"""The data ÷ what a small cache holds of it."""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def pool(cell: CellSpec, data_bytes: int) -> int:
    """Bytes of the server's own cache; 0: as many as it has by itself, also while nothing is loaded. Pure."""
    return max(data_bytes // SMALL, 1) if cell.cache == "small" and data_bytes else 0


def settings(engine: Engine, cell: CellSpec, data_bytes: int, direct: bool) -> dict[str, str]:
    """Settings of the server of either arm. `data_bytes`: of the loaded data directory; `direct`: whether both arms can do direct I/O.

    Raises UsageError where this server's cache can't be sized.
    """
    if engine.embedded or not isinstance(engine, StoresData):
        return {}
    return engine.cache_settings(pool(cell, data_bytes), direct=direct)


def connection(engine: Engine, cell: CellSpec, data_bytes: int) -> dict[str, object]:
    """Of an embedded engine: fields of the agent's `connect`, for `joined`; nothing of a server."""
    if not engine.embedded or not isinstance(engine, StoresData):
        return {}
    asked = engine.cache_settings(pool(cell, data_bytes), direct=False)
    return {"pragmas": ";".join(f"PRAGMA {name}={value}" for name, value in asked.items())} if asked else {}


def joined(fields: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """Fields of `connect` with others added. Pragmas are run one after the other: those of pages first, which a new file is made with."""
    made = dict(fields) | dict(more)
    if "pragmas" in fields and "pragmas" in more:
        made["pragmas"] = f"{fields['pragmas']};{more['pragmas']}"
    return made


def empties(cell: CellSpec) -> bool:
    """Whether the system's cache is emptied before each session. Pure."""
    return cell.cache != "warm"


def size(directory: Path) -> int:
    """Bytes of all files below a directory, as long as they are (not the blocks that they have): what `data_bytes` is."""
    return sum(found.stat().st_size for found in _files([directory]))


def drop(paths: Iterable[Path]) -> str:
    """Have the system forget what it holds of every file below these directories: all of it is on the disk first. In words what was done.

    Each file is written back and given up (posix_fadvise); then, where there is the right, the kernel drops every clean page of the
    machine, which reaches those of file systems stacked on others (FUSE, loop devices) as well. Before a server starts: what
    a process has mapped is not given up.
    """
    given_up = refused = 0
    for path in _files(paths):
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
    words = f"{given_up} files written back and given up (posix_fadvise)"
    if refused:
        words += f", {refused} could not be"
    try:
        os.sync()
        DROP_CACHES.write_text("1\n")
    except OSError as error:
        return f"{words}; the kernel's whole page cache not dropped (drop_caches: {error.strerror})"
    return f"{words}; the kernel's whole page cache dropped (drop_caches)"


def caveat(cell: CellSpec, *, direct: bool, below: bool) -> str:
    """What a reader must know of reads that miss the server's own cache; empty: nothing. Pure.

    `below`: encryption lies below the server (a file system's), so that what the system's cache holds is in clear already.
    """
    if direct or cell.cache == "warm":
        return ""
    said = (
        "no direct I/O in both arms: a page that the server's own cache lacks is read from the operating system's page cache "
        "once it is there, and not from the disk; "
    )
    if below:
        return said + (
            "what it holds is decrypted already, so that reading costs encryption only the first time: "
            "the figures are above all those of writing"
        )
    return (
        said
        + "what it holds is encrypted, so that every such page is decrypted; what is missing is the disk's own time"
    )


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Regular files below directories, links not followed; what vanishes meanwhile is left out."""
    for path in paths:
        if path.is_file() and not path.is_symlink():
            yield path
        for parent, _, names in os.walk(path):
            for name in names:
                found = Path(parent, name)
                with contextlib.suppress(OSError):
                    if found.is_file() and not found.is_symlink():
                        yield found
