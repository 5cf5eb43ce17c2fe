"""parquet: every raw slice of a run as one file of columns: those of `frames.slices`."""

from __future__ import annotations

from pathlib import Path

from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.report import frames


def write(result: Result, directory: Path, output: Path, budget: float | None = None) -> None:  # noqa: ARG001 - what every such format takes
    """Raises UsageError without polars, or where the file can't be written."""
    table = frames.slices(directory)
    try:
        with output.open("wb") as file:
            table.write_parquet(file)
    except OSError as error:
        raise UsageError(f"can't write {output}: {error.strerror}") from None
