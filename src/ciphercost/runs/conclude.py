"""conclude: a run's record -> its result, with the published study beside it where the run repeats one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ciphercost import studies
from ciphercost.estimate import results
from ciphercost.model import checked
from ciphercost.model.result import Cell, Result
from ciphercost.model.run_directory import read_study
from ciphercost.model.study import StudyResult


def result_of(directory: Path) -> Result:
    """The result of a run's directory, finished or cut off. Raises UsageError where the record is damaged."""
    result = results.conclude(directory)
    with checked.computing(directory):
        if (repeated := study(directory, result.cells)) is None:
            return result
        checked.finite(repeated, directory)  # the rest has been checked
    return msgspec.structs.replace(result, study=repeated)


def study(directory: Path, cells: list[Cell]) -> StudyResult | None:
    """The published study beside its repetition here, in a run of `replicate`. Nothing of an arm that was not proven."""
    if (found := read_study(directory)) is None:
        return None
    made = studies.get(found.study).compare(found, cells)
    ours = {cell.conditions["idle"] for cell in cells if "idle" in cell.conditions}
    if not found.idle or not ours - {found.idle}:
        return made
    modes = f"idle cores {found.idle} in the published procedure and {' and '.join(sorted(ours))} in ours"
    apart = f"{modes}, so that CPU figures and rates of the two are not of one kind (METHODOLOGY.md, Idle cores)"
    return msgspec.structs.replace(made, findings=[*made.findings, apart])
