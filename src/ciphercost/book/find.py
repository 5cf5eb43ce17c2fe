"""The runs that arguments name: a run's directory, a packed run, or a directory that holds some of either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.runs.archive import is_packed


def runs(names: Sequence[str]) -> list[Path]:
    """Directories and packed files of all runs, in the order given. Raises UsageError for an argument that has none."""
    paths: list[Path] = []
    for name in names:
        paths += [path for path in _of(name) if path not in paths]
    return paths


def _of(name: str) -> list[Path]:
    path = Path(name)
    if path.is_file():
        if not is_packed(path):
            raise UsageError(f"{path}: is no packed run; its name must end in .tar.xz, .tar.gz or .zip")
        return [path]
    if path.is_dir() and not (path / "plan.json").is_file():
        inside = [entry for entry in path.iterdir() if entry.is_file() and is_packed(entry)]
        if below := sorted({*inside, *run_directory.runs(path)}, key=str):
            return below
        raise UsageError(f"{path}: holds no run: no plan.json in it or below it, and no packed run")
    return [run_directory.find(name)]
