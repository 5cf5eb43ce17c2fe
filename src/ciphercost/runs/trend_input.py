"""Read the runs that `trend` is given: directories, ids, directories of runs, and results as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ciphercost.estimate import results
from ciphercost.estimate.intervals_of_result import of_result
from ciphercost.model import checked, run_directory
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.report.comparison_types import Run


def read(names: Iterable[str]) -> list[Run]:
    """Every run of these names, estimated again from its record if there is one. Raises UsageError for what is no run."""
    return [run for name in names for run in _of(name)]


def _of(name: str) -> list[Run]:
    path = Path(name)
    if path.is_file():
        return [_of_json(path)]
    if path.is_dir() and not (path / "plan.json").is_file():
        if below := run_directory.runs(path):
            return [_of_directory(str(directory), directory) for directory in below]
        if results_ := sorted(path.glob("*.json")):
            return [_of_json(file) for file in results_]
        raise UsageError(
            f"{name}: holds no run; give runs (each has a plan.json), a directory of runs, or results that "
            "`ciphercost report RUN --format json` wrote"
        )
    return [_of_directory(name, run_directory.find(name))]


def _of_directory(name: str, directory: Path) -> Run:
    return Run(name, *results.with_intervals(directory))


def _of_json(path: Path) -> Run:
    content = checked.read(path)
    try:
        newest = checked.decode(content, msgspec.json.Decoder(checked.Versioned), path).format
        result = checked.decode(content, run_directory.ResultDecoder(), path) if newest <= FORMAT else None
    except UsageError:
        raise UsageError(
            f"{path}: not a result of ciphercost; give a run's directory, or what `ciphercost report RUN --format json` wrote"
        ) from None
    if result is None:
        raise UsageError(f"{path}: written by a newer version of ciphercost; update ciphercost to read it")
    return Run(str(path), result, of_result(result))
