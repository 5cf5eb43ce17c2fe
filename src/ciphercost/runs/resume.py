"""Resume a run that was interrupted or whose cells failed, in the same directory. I/O.

Resuming keeps complete sessions and discards an incomplete one, so that no session mixes two server pairs. Seed, spec and
order are those of the run, so the resumed run does exactly what the interrupted one would have done.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec

from ciphercost.estimate import results
from ciphercost.host import leftovers, procfs
from ciphercost.load import clients
from ciphercost.load.agent import find as find_agent
from ciphercost.load.fleet import clusters
from ciphercost.measure.progress import Display
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts, unmeasured
from ciphercost.model.result import Result, Warning_
from ciphercost.model.run_directory import (
    Record,
    new_id,
    open_locked,
    read_facts,
    read_imported,
    read_slices,
    read_study,
)
from ciphercost.plan import registry_facts, specs
from ciphercost.runs import own_records, pipeline, user_files

PATIENCE_SECONDS = 60.0
"""Longest wait for the supervisor of a killed run."""


def finished(directory: Path) -> bool:
    """Whether every cell has its number, and the published procedure, if there is one, is complete."""
    facts, study = read_facts(directory), read_study(directory)
    return bool(facts.ended) and all(cell.status == "ok" for cell in facts.cells) and (study is None or study.complete)


def run_in(directory: Path, display: Display | None = None, *, trusted: bool = False) -> tuple[Result, Path]:
    """Resume the run. `trusted`: although somebody else may have written its record (`own_records`).

    Raises UsageError, before it changes anything, if the run is active or finished, or can't continue here.
    """
    own_records.check(
        directory, own_records.of_run(directory), trusted=trusted
    )  # the plan names programs that ciphercost will run
    if read_imported(directory) is not None:
        raise UsageError(
            f"{directory}: holds imported results, so there is nothing to resume; `ciphercost report {shlex.quote(str(directory))}` prints them, and "
            "`ciphercost import` reads files again"
        )
    open_locked(directory).close()
    if finished(directory):
        raise UsageError(f"{directory} is finished; `ciphercost report {shlex.quote(str(directory))}` prints it")
    facts = last_checkpoint(directory)
    check_same_place(directory, facts)
    user_files.check(facts.files, _start_again(facts))
    if any(cell.command and cell.command.hidden for cell in facts.spec.cells):
        raise UsageError(
            f"{directory}: its commands had secrets, which the record does not hold, so it can't run them again; put the secrets into the environment, "
            "and start a new run"
        )
    cells = specs.plan(facts.spec).cells
    before = published(directory, facts)
    find_agent()
    clients.fetch(cell.client.driver for cell in cells if cell.client)
    await_supervisor(facts.id)
    dropped = discarded(directory, facts)
    for number, cell in enumerate(facts.cells):
        if cell.status != "ok" and (cell.whole_sessions or dropped[number]):
            cell.resumed, cell.thrown_away = cell.resumed + 1, cell.thrown_away + dropped[number]
            cell.warnings = [
                *(warning for warning in cell.warnings if warning.code != "resumed"),
                resumed_warning(cell, pipeline.now()),
            ]
    facts.resumed, facts.ended, facts.hashes = [*facts.resumed, pipeline.now()], "", {}
    record = Record(directory, facts, partial(is_kept, facts))
    # Leftovers of a killed controller may still carry the run's own id, so use a new one as mark.
    with clusters.joined(facts.spec) as cluster:
        return pipeline.carry_out(cells, record, new_id(), display or Display(), cluster, before)


def last_checkpoint(directory: Path) -> RunFacts:
    """The facts as of each cell's last complete session."""
    if (kept := registry_facts.checkpoint(directory)) is not None:
        return kept
    facts = registry_facts.read(directory)
    cells = [cell if cell.status == "ok" else unmeasured(cell) for cell in facts.cells]
    return msgspec.structs.replace(facts, cells=cells)


def is_kept(facts: RunFacts, cell: int, session: int) -> bool:
    """Whether to keep the records of a cell's session. Pure."""
    return facts.cells[cell].status == "ok" or session in facts.cells[cell].whole_sessions


def discarded(directory: Path, facts: RunFacts) -> Counter[int]:
    """Number of slices of each cell in incomplete sessions."""
    return Counter(record.cell for record in read_slices(directory) if not is_kept(facts, record.cell, record.session))


def resumed_warning(cell: CellFacts, when: str) -> Warning_:
    """The warning about it in the result. Pure."""
    kept, slices = len(cell.whole_sessions), cell.thrown_away
    often = "" if cell.resumed == 1 else f" {cell.resumed} times"
    return Warning_(
        "resumed",
        f"the run was interrupted and resumed{often}, {'last ' * bool(often)}at {when}: it kept {kept} complete session{'s' * (kept != 1)} of "
        f"this cell and discarded {slices} slice{'s' * (slices != 1)} of incomplete sessions",
    )


def check_same_place(directory: Path, facts: RunFacts) -> None:
    """Raises UsageError if the run's first part used another version of ciphercost or another machine."""
    again = _start_again(facts)
    if (now := results.tool()) != facts.tool:
        theirs, ours = (" ".join(versions.values()) for versions in (facts.tool, now))
        raise UsageError(
            f"{directory}: started by {theirs}, but this is {ours}; install {theirs} to resume it, or {again}"
        )
    here = procfs.machine()
    if unknown := [name for name in here if name not in facts.machine and not name.startswith("disk")]:
        raise UsageError(
            f"{directory}: does not record the machine that it was started on ({', '.join(unknown)}), so it can't be resumed here; {again}"
        )
    for name, was in facts.machine.items():
        if name in here and not procfs.alike(name, was, here[name]):
            raise UsageError(
                f"{directory}: started on a machine where {name} is {was}, but here it is {here[name]}; a run can't combine two "
                f"machines, so resume it there, or {again}"
            )


def _start_again(facts: RunFacts) -> str:
    return f"start it again: {facts.command}" if facts.command else "start it again"


def published(directory: Path, facts: RunFacts) -> pipeline.Before | None:
    """A study's published procedure if it is not complete; it then runs again from its start."""
    kept = read_study(directory)
    if (kept is None and not facts.study) or (kept is not None and kept.complete):
        return None
    from ciphercost import studies
    from ciphercost.runs import replicate

    if not facts.study:
        raise UsageError(f"{directory}: does not record how its study was started; start it again: {facts.command}")
    return replicate.before(studies.get(facts.study).configured(facts.study_options), facts.spec)


def await_supervisor(run: str) -> None:
    """Wait until the supervisor of a killed controller has stopped everything. Raises UsageError after PATIENCE_SECONDS."""
    until = time.monotonic() + PATIENCE_SECONDS
    while leftovers.supervised(run):
        if time.monotonic() > until:
            raise UsageError(f"run {run} was killed and its processes are still stopping; try again in a minute")
        time.sleep(0.1)
