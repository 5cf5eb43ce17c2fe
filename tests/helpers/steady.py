"""On a busy machine a run may correctly end with "no steady state"; a test then tries again, at most five times."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ciphercost.model.result import Result

TRIES = 5
T = TypeVar("T")


def tried(run: Callable[[Path], T], directory: Path, good: Callable[[T], bool]) -> tuple[T, Path]:
    """(outcome of `run(own)`, `own`): calls it with a new directory in `directory` for each try, until the outcome is `good`."""
    for number in range(TRIES):
        own = directory / f"run-{number}"
        outcome = run(own)
        if good(outcome):
            break
    return outcome, own


def measured(measure: Callable[[Path], Result], directory: Path) -> tuple[Result, Path]:
    """(result of `measure(directory)`, directory): calls it with a new directory for each try."""
    return tried(measure, directory, lambda result: all(cell.status != "no-steady-state" for cell in result.cells))


def command(
    run: Callable[[], subprocess.CompletedProcess[str]], cwd: Path, output: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The last try of `run`, which runs a command in `cwd`. Before another try, the run's directory is removed: `output`, or what is new
    in `runs`.
    """
    runs = cwd / "runs"
    before = _entries(runs)
    for _ in range(TRIES - 1):
        done = run()
        # A traceback is never an outcome of a busy machine.
        if "NO STEADY STATE" not in done.stdout or "Traceback" in done.stderr:
            return done
        for each in (_entries(runs) - before) | ({output} if output else set()):
            shutil.rmtree(each)
    return run()


def _entries(directory: Path) -> set[Path]:
    return set(directory.iterdir()) if directory.is_dir() else set()


def printed(run: Callable[[Path], tuple[int, str]], directory: Path) -> tuple[int, str, Path]:
    """(exit status, output, its directory) of a command: calls `run` with a new directory for each try."""
    (status, output), own = tried(run, directory, lambda done: "NO STEADY STATE" not in done[1])
    return status, output, own
