"""pipeline: spec ─► plan ─► provision ─► prove ─► drive ─► record ─► estimate ─► report, on one screen.

It is `ciphercost.run` to those who import the package; a file of that name would hide the function.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from ciphercost import conclude, draw, guard, jdbc, plan, sample
from ciphercost import spec as specs
from ciphercost.agent import find as find_agent
from ciphercost.experiment import Run, experiment, title
from ciphercost.model import FORMAT, CellFacts, Result, RunFacts, Spec
from ciphercost.record import Record, directory_for, new_id
from ciphercost.watch import Watcher


def run(spec: Spec, directory: Path | None = None) -> Result:
    """Run every cell of a spec, silently. See `run_in`."""
    return run_in(spec, directory)[0]


def run_in(
    spec: Spec,
    directory: Path | None = None,
    watcher: Watcher | None = None,
    command: str = "",
    before: Callable[[Record, guard.Guard, Path, Watcher], None] | None = None,
) -> tuple[Result, Path]:
    """Run every cell of a spec. Returns the result and the directory that keeps it (`directory`, or ./runs/<id>).

    `before`: what the same run does first (a study's published procedure).

    A cell that fails or can't be proven has no number and says why; the others go on. Raises UsageError before anything is started.
    """
    spec, watcher, run_id = specs.check(spec), watcher or Watcher(), new_id()
    find_agent()
    jdbc.fetch(spec.cells)
    facts = RunFacts(
        format=FORMAT,
        id=run_id,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        tool=conclude.tool(),
        machine=sample.machine(),
        seed=spec.seed or secrets.randbits(32),
        spec=spec,
        cells=[CellFacts(spec=cell) for cell in spec.cells],
        command=command,
    )
    with Record(directory_for(run_id, directory), facts) as record, guard.Guard(run_id) as run_guard, watcher:
        scratch = guard.scratch(run_id, run_guard)
        loads = [plan.budget(spec, cell).total_s for cell in spec.cells]
        watcher.start([title(cell) for cell in facts.cells], loads, plan.time_estimate(spec))
        if before:
            before(record, run_guard, scratch, watcher)
        for numbers in plan.groups(spec):
            experiment(numbers, Run(record, run_guard, scratch, watcher))
        facts.ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record.save_facts()
        result = conclude.conclude(record.directory)
        record.save_result(result)
        draw.page(record.directory, run_guard, watcher.say)
    for problem in run_guard.problems:
        watcher.say(f"not undone: {problem}; `ciphercost clean` tries again")
    return result, record.directory
