"""A machine that other work shakes is rightly refused ("no steady state"); then a test asks again, at most three times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ciphercost.model.result import Result

TRIES = 3


def measured(measure: Callable[[Path], Result], directory: Path) -> tuple[Result, Path]:
    """What `measure(directory)` gives, each time into a new one, and which one it was."""
    for number in range(TRIES):
        own = directory / f"run-{number}"
        result = measure(own)
        if all(cell.status != "no-steady-state" for cell in result.cells):
            break
    return result, own
