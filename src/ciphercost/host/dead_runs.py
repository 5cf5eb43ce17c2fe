"""dead_runs: finds the scratch directories and the notes of runs that are over, and believes only what nobody else could have written."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.host import journal
from ciphercost.host.run_ownership import OWNER_FILE, lives, scratch_base
from ciphercost.model import owned
from ciphercost.model.errors import UsageError
from ciphercost.model.run_directory import is_id

GRACE_SECONDS = 60.0
"""A younger scratch directory without an owner file may still be under construction."""


class Dead(msgspec.Struct, frozen=True):
    """The scratch directory of a run that is over, and its journal."""

    path: Path
    entries: tuple[journal.Entry, ...] = ()

    def of(self, kind: journal.Kind) -> list[str]:
        """What the run was about to make of this kind, in order."""
        return [entry.what for entry in self.entries if entry.kind == kind]


def directories(ended: str) -> Iterator[tuple[str, Dead | None]]:
    """(run, facts about it, or None if it lives) for each scratch directory that is ours alone. Raises UsageError."""
    with opened_base() as base:
        for name in sorted(os.listdir(base) if base is not None else []):  # noqa: PTH208 - of a descriptor
            with contextlib.suppress(OSError, owned.Distrusted), owned.opened(name, base) as within:
                yield from _judged(name, within, ended)


def _judged(name: str, within: int, ended: str) -> Iterator[tuple[str, Dead | None]]:
    """Judge one directory opened in our scratch. Yields nothing if it is no run's, or may be under construction."""
    try:
        owner = owned.read(OWNER_FILE, within)
    except FileNotFoundError:
        # Any other name is lost+found, or something of the user's.
        if not is_id(name) or time.time() - os.fstat(within).st_mtime <= GRACE_SECONDS:
            return
        owner = ""
    if lives(owner) and name != ended:
        yield name, None
    else:
        text = ""
        with contextlib.suppress(FileNotFoundError):
            text = owned.read(journal.FILE, within)
        yield name, Dead(scratch_base() / name, tuple(journal.read(text)))


def dead_notes() -> list[journal.Note]:
    """Notes of schemas on the user's servers whose runs are over. Raises UsageError."""
    with opened_base() as base:
        return [note for note in journal.notes(base) if not lives(note.owner)] if base is not None else []


@contextlib.contextmanager
def opened_base() -> Iterator[int | None]:
    """The base directory of all scratch, opened; None if there is none. Raises UsageError if others could write to it."""
    base = scratch_base()
    try:
        owned.check_above(base)
        descriptor = owned.open_directory(base)
    except FileNotFoundError:
        yield None
        return
    except (owned.Distrusted, OSError) as error:
        raise UsageError(
            f"can't trust the scratch directory {error}. Somebody else may have written its lists of what to remove, "
            "so nothing was removed. Inspect it and remove it yourself, or set CIPHERCOST_SCRATCH to the scratch "
            "directory of your own runs."
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def distrusted() -> list[str]:
    """Entries of our scratch that look like a run's but are not ours alone, so they are not removed: one line each."""
    lines = []
    with opened_base() as base:
        for name in sorted(os.listdir(base) if base is not None else []):  # noqa: PTH208 - of a descriptor
            try:
                with owned.opened(name, base) as within:
                    for note in (OWNER_FILE, journal.FILE):
                        with contextlib.suppress(FileNotFoundError):
                            owned.read(note, within)
            except owned.Distrusted as error:
                if is_id(name):
                    lines.append(f"left {scratch_base() / name}: {error}; inspect it and remove it yourself")
            except OSError:
                continue
    return lines
