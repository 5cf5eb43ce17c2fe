"""Compute the result of a run from its record, with the published study if the run repeats one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ciphercost.estimate import results
from ciphercost.model import checked
from ciphercost.model.result import Cell, Result
from ciphercost.model.run_directory import read_study
from ciphercost.model.study import StudyResult


def result_of(directory: Path) -> Result:
    """The result of a run's directory, finished or not. Raises UsageError if the record is damaged."""
    result = results.conclude(directory)
    with checked.computing(directory):
        if (repeated := study(directory, result.cells)) is None:
            return result
        checked.finite(repeated, directory)  # `results.conclude` has checked the rest
    return msgspec.structs.replace(result, study=repeated)


def study(directory: Path, cells: list[Cell]) -> StudyResult | None:
    """The published study beside its repetition here; None unless this is a `replicate` run. Leaves out unproven arms."""
    if (record := read_study(directory)) is None:
        return None
    from ciphercost import studies

    result = studies.get(record.study).compare(record, cells)
    ours = {cell.conditions["idle"] for cell in cells if "idle" in cell.conditions}
    if not record.idle or not ours - {record.idle}:
        return result
    modes = f"idle cores {record.idle} in the published procedure here and {' and '.join(sorted(ours))} in ciphercost's method"
    apart = f"{modes}, so their CPU figures and rates are not comparable (METHODOLOGY.md, Idle cores)"
    return msgspec.structs.replace(result, findings=[*result.findings, apart])
