"""PNG: every plot of a run as a file of its own, at twice the resolution of a screen."""

from __future__ import annotations

from pathlib import Path

from ciphercost.estimate import trace
from ciphercost.model.result import Result
from ciphercost.report import plots


def write(result: Result, directory: Path, output: Path, budget: float | None = None) -> None:
    """Write into the directory `output`, created if necessary. For a single file, print how many plots it leaves out.

    Raises UsageError if it can't be written, or if the record is damaged.
    """
    plots.report(plots.Subject(result, trace.read(directory), budget), output, "png")
