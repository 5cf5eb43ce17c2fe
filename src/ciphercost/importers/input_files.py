"""input_files: paths and folders -> the files in them, with the folders whose names may tell their arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers.formats import clean
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm


class Source(NamedTuple):
    """A file, and the folders whose names may tell of what it is."""

    path: Path
    folders: tuple[Path, ...]
    """The nearest first."""
    arm: Arm | None
    named: bool
    """Given by name, and not found in a folder."""

    @property
    def names(self) -> tuple[str, ...]:
        return (clean(self.path.name), *(clean(folder.name) for folder in self.folders))

    @property
    def label(self) -> str:
        """Its path as it can be written down."""
        return clean(str(self.path))


def found(path: Path, arm: Arm | None) -> Iterator[Source]:
    """The file, or every file of the folder that is not hidden. Raises UsageError."""
    try:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.is_file() and not hidden(each.relative_to(path)))
            if not inside:
                raise UsageError(f"{clean(str(path))}: the folder has no files")
            for each in inside:
                yield Source(
                    each, tuple(folder for folder in each.parents if folder.is_relative_to(path)), arm, named=False
                )
        elif path.is_file():
            yield Source(path, tuple(path.parents), arm, named=True)
        elif path.exists():
            raise UsageError(f"{clean(str(path))} is no file: save the tool's output in one, and import that")
        else:
            raise UsageError(f"{clean(str(path))}: there is no such file")
    except (OSError, ValueError) as error:
        raise UsageError(f"{clean(str(path))} can't be read: {getattr(error, 'strerror', None) or error}") from None


def identity(path: Path) -> tuple[int, int]:
    """The same for one file, by whatever path. Raises UsageError."""
    try:
        known = path.stat()
    except OSError as error:
        raise UsageError(f"{clean(str(path))} can't be read: {error.strerror}") from None
    return known.st_dev, known.st_ino


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
