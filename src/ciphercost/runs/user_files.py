"""user_files: what the files with the user's statements and rows held when a run began, so that a resumed run uses the same. I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ciphercost.host import kept_dumps
from ciphercost.load import own_scripts
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import UserFile
from ciphercost.model.spec import CellSpec


def of(cells: Iterable[CellSpec]) -> list[UserFile]:
    """The files that the cells name, each once. Raises UsageError for one that can't be read."""
    return [UserFile(path, _hash(path)) for path in dict.fromkeys(path for cell in cells for path in _paths(cell))]


def _paths(cell: CellSpec) -> Iterator[str]:
    yield from (own_scripts.of_file(script).name for script in cell.scripts)
    yield from filter(None, (cell.csv, cell.dump, cell.workload_file))


def _hash(path: str) -> str:
    try:
        return kept_dumps.content_hash(Path(path))
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from None


def check(files: Sequence[UserFile], again: str) -> None:
    """Raises UsageError if one of the files holds something else now, or is gone. `again`: what the user can do instead of resuming."""
    for file in files:
        if not Path(file.path).exists():
            raise UsageError(f"{file.path}, which the run reads, is gone; put it back, or {again}")
        if _hash(file.path) != file.sha256:
            raise UsageError(
                f"{file.path} has changed since the run began, and a run can't combine two contents of it; put the old one back, or {again}"
            )
