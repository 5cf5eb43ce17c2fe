"""resume: a run that was cut off, or whose cells failed -> the rest of it, in the same directory. I/O.

Sessions are the unit: those that went to their end are kept, the unfinished one is thrown away whole, so that no session is half of
one server pair and half of another. Seed, spec and order are the run's own, so what is run is what would have been.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec

from ciphercost.estimate import results
from ciphercost.host import leftovers, procfs
from ciphercost.load.agent import find as find_agent
from ciphercost.load.jdbc import options
from ciphercost.measure.progress import Display
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts, unmeasured
from ciphercost.model.result import Result, Warning_
from ciphercost.model.run_directory import (
    Record,
    check_ours,
    new_id,
    open_alone,
    read_facts,
    read_imported,
    read_slices,
    read_study,
)
from ciphercost.plan import facts as plan_facts
from ciphercost.plan import specs
from ciphercost.runs import pipeline

PATIENCE_SECONDS = 60.0
"""For the supervisor of a run that was killed."""


def finished(directory: Path) -> bool:
    """Whether nothing is left to be done: every cell has its number, and the published procedure, where there is one, ran to its end."""
    facts, study = read_facts(directory), read_study(directory)
    return bool(facts.ended) and all(cell.status == "ok" for cell in facts.cells) and (study is None or study.complete)


def run_in(directory: Path, display: Display | None = None) -> tuple[Result, Path]:
    """Go on with the run. Raises UsageError, before anything is changed, where it lives, is finished, or could not be the same run."""
    check_ours(directory)  # the plan names programs, which are run
    if read_imported(directory) is not None:
        raise UsageError(
            f"{directory} holds what was imported: there is nothing to resume. `ciphercost report {directory}` shows it, and "
            "`ciphercost import` reads files anew"
        )
    open_alone(directory).close()
    if finished(directory):
        raise UsageError(f"{directory} is finished; `ciphercost report {directory}` shows it")
    facts = as_it_was(directory)
    refuse_elsewhere(directory, facts)
    cells = specs.plan(facts.spec)
    before = published(directory, facts)
    find_agent()
    options.fetch(each.client.driver for each in cells if each.client)
    await_supervisor(facts.id)
    dropped = thrown_away(directory, facts)
    for number, cell in enumerate(facts.cells):
        if cell.status != "ok" and (cell.whole_sessions or dropped[number]):
            cell.resumed, cell.thrown_away = cell.resumed + 1, cell.thrown_away + dropped[number]
            cell.warnings = [*(each for each in cell.warnings if each.code != "resumed"), told(cell, pipeline.now())]
    facts.resumed, facts.ended = [*facts.resumed, pipeline.now()], ""
    record = Record(directory, facts, partial(stays, facts))
    # A run's own id may still stand on something that a killed controller has left.
    return pipeline.carry_out(cells, record, new_id(), display or Display(), before)


def as_it_was(directory: Path) -> RunFacts:
    """The facts as they were when each cell's last whole session had ended."""
    if (kept := plan_facts.checkpoint(directory)) is not None:
        return kept
    facts = plan_facts.read(directory)
    cells = [cell if cell.status == "ok" else unmeasured(cell) for cell in facts.cells]
    return msgspec.structs.replace(facts, cells=cells)


def stays(facts: RunFacts, cell: int, session: int) -> bool:
    """Whether what is recorded of a cell's session is kept. Pure."""
    return facts.cells[cell].status == "ok" or session in facts.cells[cell].whole_sessions


def thrown_away(directory: Path, facts: RunFacts) -> Counter[int]:
    """How many slices of each cell are of a session that did not go to its end."""
    return Counter(each.cell for each in read_slices(directory) if not stays(facts, each.cell, each.session))


def told(cell: CellFacts, when: str) -> Warning_:
    """What the result says of it. Pure."""
    kept, slices = len(cell.whole_sessions), cell.thrown_away
    often = "" if cell.resumed == 1 else f" {cell.resumed} times"
    return Warning_(
        "resumed",
        f"the run was cut off and resumed{often}, {'last ' * bool(often)}at {when}: {kept} whole session{'s' * (kept != 1)} of "
        f"this cell {'was' if kept == 1 else 'were'} kept, {slices} slice{'s' * (slices != 1)} of unfinished ones thrown away",
    )


def refuse_elsewhere(directory: Path, facts: RunFacts) -> None:
    """Raises UsageError where this is another tool or another machine than the run's first part had."""
    anew = f"start it anew: {facts.command}" if facts.command else "start it anew"
    if (now := results.tool()) != facts.tool:
        theirs, ours = (" ".join(each.values()) for each in (facts.tool, now))
        raise UsageError(
            f"{directory} was begun by {theirs}, and this is {ours}: install {theirs} to resume it, or {anew}"
        )
    here = procfs.machine()
    for name, was in facts.machine.items():
        if name in here and not procfs.alike(name, was, here[name]):
            raise UsageError(
                f"{directory} was begun where {name} is {was}, and here it is {here[name]}: one run is never of two "
                f"machines. Resume it there, or {anew}"
            )


def published(directory: Path, facts: RunFacts) -> pipeline.Before | None:
    """A study's published procedure, where it is still to be run: it is one thing, and so it is run again from its start."""
    kept = read_study(directory)
    if (kept is None and not facts.study) or (kept is not None and kept.complete):
        return None
    from ciphercost import studies
    from ciphercost.runs import replicate

    if not facts.study:
        raise UsageError(f"{directory} does not say how its study was begun: start it anew: {facts.command}")
    return replicate.before(studies.get(facts.study).configured(facts.study_options), facts.spec)


def await_supervisor(run: str) -> None:
    """What a killed controller had started is taken down by its supervisor, and would be in our way. Raises UsageError."""
    until = time.monotonic() + PATIENCE_SECONDS
    while leftovers.supervised(run):
        if time.monotonic() > until:
            raise UsageError(f"what run {run} had started is still being taken down: try again in a minute")
        time.sleep(0.1)
