"""On a busy machine a run may correctly end with "no steady state"; a test then tries again, at most three times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ciphercost.model.result import Result

TRIES = 3


def measured(measure: Callable[[Path], Result], directory: Path) -> tuple[Result, Path]:
    """(result of `measure(directory)`, directory): calls it with a new directory for each try."""
    for number in range(TRIES):
        own = directory / f"run-{number}"
        result = measure(own)
        if all(cell.status != "no-steady-state" for cell in result.cells):
            break
    return result, own


def printed(run: Callable[[Path], tuple[int, str]], directory: Path) -> tuple[int, str, Path]:
    """(exit status, output, its directory) of a command: calls `run` with a new directory for each try."""
    for number in range(TRIES):
        own = directory / f"run-{number}"
        status, output = run(own)
        if "NO STEADY STATE" not in output:
            break
    return status, output, own
