"""Parquet: every raw slice of a run, with the columns of `frames.slices`."""

from __future__ import annotations

from pathlib import Path

from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.report import frames


def write(result: Result, directory: Path, output: Path, budget: float | None = None) -> None:  # noqa: ARG001 - the signature of all writers
    """Write the file. Raises UsageError without polars, or if the file can't be written."""
    table = frames.slices(directory)
    try:
        with output.open("wb") as file:
            table.write_parquet(file)
    except OSError as error:
        raise UsageError(f"can't write {output}: {error.strerror}") from None
