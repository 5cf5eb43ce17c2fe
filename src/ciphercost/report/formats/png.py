"""png: every plot of a run as a file of its own, PNG at twice a screen's fineness."""

from __future__ import annotations

from pathlib import Path

from ciphercost.estimate import trace
from ciphercost.model.result import Result
from ciphercost.report import plots


def write(result: Result, directory: Path, output: Path, budget: float | None = None) -> None:
    """Into the directory `output`, which is made. Prints how many plots a single file leaves out.

    Raises UsageError where it can't be written, or where the record is damaged.
    """
    plots.report(plots.Subject(result, trace.read(directory), budget), output, "png")
