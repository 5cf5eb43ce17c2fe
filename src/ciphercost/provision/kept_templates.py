"""kept_templates: copies of clusters into which a dump was loaded, so that the next run need not load it again. I/O.

They hold the user's data, and for a server that encrypts by itself the key of its copy, so only their owner can enter them (mode 0700). A
copy belongs to one content of the dump, one server and one way to encrypt. `ciphercost clean` removes them all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import kept_dumps
from ciphercost.host.run_ownership import server_user
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import CiphercostError
from ciphercost.model.sizes import size as sized
from ciphercost.provision import cache
from ciphercost.provision.dataset import copy

FORMAT = 1
"""Of a kept copy. Part of its name, so that another version of ciphercost does not use it."""
ROOM = 2.0
"""A copy is kept if the disk has this many times its size free, since the run itself needs room for more of them."""


class Kept(msgspec.Struct, frozen=True):
    """Written last into a copy; one without it is incomplete."""

    keys: dict[str, str] = {}
    """By name in the run's directory of keys: the content of files that open the copy."""
    notes: list[str] = []
    """What the load reported."""


def place_of(*parts: object) -> Path:
    """The directory of the copy that these parts describe."""
    return kept_dumps.home() / hashlib.sha256(repr((FORMAT, server_user(), *parts)).encode()).hexdigest()[:24]


@contextlib.contextmanager
def locked(place: Path) -> Iterator[Kept | None]:
    """Hold a copy for reading, so that nobody removes it meanwhile; None if there is none."""
    with contextlib.ExitStack() as stack:
        kept = None
        with contextlib.suppress(OSError, msgspec.DecodeError):
            kept_dumps.check(place)
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            kept = msgspec.json.decode((place / kept_dumps.RECEIPT).read_bytes(), type=Kept)
        yield kept


def restore(place: Path, template: Path) -> None:
    """Copy a kept cluster to `template`, which does not exist yet. Raises RunError."""
    copy(place / kept_dumps.DATA, template)


def keep(place: Path, template: Path, receipt: Kept, supervisor: Supervisor) -> str:
    """Keep a copy of a cluster whose server is stopped. Returns what was done, or why not, for people."""
    size = cache.size(template)
    work = place.with_name(f".new-{place.name}-{supervisor.run_id}")
    try:
        kept_dumps.make_home()
        free = shutil.disk_usage(place.parent).free
        if free < ROOM * size:
            return f"no copy is kept for the next run: {sized(size)} are needed twice in {place.parent}, and {sized(free)} are free"
        supervisor.remove(work)  # if this run is killed
        work.mkdir(mode=0o700)
        copy(template, work / kept_dumps.DATA)
        _write_out(work / kept_dumps.DATA)
        descriptor = os.open(work / kept_dumps.RECEIPT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(receipt))
            file.flush()
            os.fsync(descriptor)
        kept_dumps.remove(place)
        work.rename(place)
    except (OSError, CiphercostError) as error:
        return f"no copy is kept for the next run: {error}"
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return f"a copy is kept for the next run: {sized(size)} in {place} (`ciphercost clean` removes it)"


def _write_out(directory: Path) -> None:
    """Wait until the disk has every file, so that the receipt, which comes last, never stands for a copy that a power cut broke. Raises OSError.

    The disk is then also idle when the first slice begins.
    """
    for path in [directory, *directory.rglob("*")]:
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            continue
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def matches(keys: Mapping[str, str], secrets: Path) -> bool:
    """Whether none of these files of keys exists with another content."""
    return all(not (secrets / name).exists() or (secrets / name).read_text() == text for name, text in keys.items())
