"""Finds the files to import in paths and folders, with the folder names that may state their arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers.formats import clean
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm


class Source(NamedTuple):
    """A file, and the folders whose names may describe it."""

    path: Path
    folders: tuple[Path, ...]
    """The nearest folder first."""
    arm: Arm | None
    named: bool
    """The user named the file itself, not a folder that contains it."""

    @property
    def names(self) -> tuple[str, ...]:
        return (clean(self.path.name), *(clean(folder.name) for folder in self.folders))

    @property
    def label(self) -> str:
        """Its path in printable form."""
        return clean(str(self.path))


def sources_in(path: Path, arm: Arm | None) -> Iterator[Source]:
    """Yield the file, or every file of the folder that is not hidden. Raises UsageError."""
    try:
        if path.is_dir():
            inside = sorted(
                entry for entry in path.rglob("*") if entry.is_file() and not hidden(entry.relative_to(path))
            )
            if not inside:
                raise UsageError(f"{clean(str(path))}: the folder has no files")
            for file in inside:
                yield Source(
                    file, tuple(folder for folder in file.parents if folder.is_relative_to(path)), arm, named=False
                )
        elif path.is_file():
            yield Source(path, tuple(path.parents), arm, named=True)
        elif path.exists():
            raise UsageError(
                f"{clean(str(path))} is not a regular file; save the tool's output to a file and import that"
            )
        else:
            raise UsageError(f"{clean(str(path))}: no such file")
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {clean(str(path))}: {getattr(error, 'strerror', None) or error}") from None


def identity(path: Path) -> tuple[int, int]:
    """Identify a file, whatever path names it. Raises UsageError."""
    try:
        known = path.stat()
    except OSError as error:
        raise UsageError(f"can't read {clean(str(path))}: {error.strerror}") from None
    return known.st_dev, known.st_ino


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
