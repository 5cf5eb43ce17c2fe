"""The whole run on one screen: spec ─► plan ─► provision ─► prove ─► measure ─► record ─► estimate ─► report.

The package exports it as `ciphercost.run`; a module named `run` would hide that function.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ciphercost.estimate import results, so_far
from ciphercost.host import procfs, supervisor
from ciphercost.host.deferred_signals import Termination
from ciphercost.load import clients, command_secrets
from ciphercost.load.agent import find as find_agent
from ciphercost.load.fleet import clusters
from ciphercost.load.fleet.agent_pool import Cluster
from ciphercost.measure.experiment import experiment, title
from ciphercost.measure.progress import Display
from ciphercost.measure.run_context import Run
from ciphercost.model.constrained_types import PLAN_FORMAT
from ciphercost.model.errors import Interrupted, MissingServer, RefusedDump, UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.result import Result
from ciphercost.model.run_directory import Record, directory_for, new_id
from ciphercost.model.spec import Spec
from ciphercost.plan import registry_facts, schedule, specs
from ciphercost.plan.planned import Plan, PlannedCell
from ciphercost.provision.servers import Servers
from ciphercost.runs import command_readers, conclude, html_page, own_records, user_files

Before = Callable[[Record, supervisor.Supervisor, Path, Display], None]


def run(spec: Spec, directory: Path | None = None) -> Result:
    """Plan a spec and run every cell of it without progress output. See `run_in`."""
    return run_in(specs.plan(spec), directory)[0]


def run_in(
    plan: Plan,
    directory: Path | None = None,
    display: Display | None = None,
    command: str = "",
    before: Before | None = None,
    study: tuple[str, dict[str, Any]] = ("", {}),
    place: Mapping[str, str] | None = None,
) -> tuple[Result, Path]:
    """Run every cell of a plan on this machine. Returns the result and the run's directory (`directory`, or ./runs/<id>).

    `before`: what the run does first (a study's published procedure). `study`: its name and options, for `resume`. `place`: what
    the record says of this machine beside what it detects, if it measures a part of a run over several (`runs.node_run`).

    A cell that fails or can't be proven has a reason instead of a number; the others continue. Raises UsageError before
    anything starts, and Interrupted on Ctrl-C.
    """
    spec = plan.spec
    if spec.spread:
        raise UsageError(
            "a run over machines starts with the command: ciphercost run FILE.toml --cluster ADDRESS --spread"
        )
    command_readers.check([cell.spec for cell in plan.cells])
    display, run_id = display or Display(), new_id()
    find_agent()
    clients.fetch(cell.client.driver for cell in plan.cells if cell.client)
    facts = RunFacts(
        format=PLAN_FORMAT,
        id=run_id,
        started=now(),
        tool=results.tool(),
        machine=procfs.machine() | dict(place or {}),
        seed=spec.seed or secrets.randbits(32),
        spec=command_secrets.recorded_spec(spec),
        cells=registry_facts.planned(plan.cells),
        command=command_secrets.shown(command) if any(cell.command for cell in spec.cells) else command,
        study=study[0],
        study_options=study[1],
        files=user_files.of(spec.cells),
    )
    # Joined first: a cluster that can't be used leaves no directory.
    with clusters.joined(spec) as cluster:
        record = Record(directory_for(run_id, directory), facts)
        own_records.mark(record.directory, own_records.of_run(record.directory))
        try:
            return carry_out(plan.cells, record, run_id, display, cluster, before)
        except (RefusedDump, MissingServer):
            if is_of_nothing(record):
                shutil.rmtree(record.directory)  # made a moment ago, and in the way of the next try
            raise


def is_of_nothing(record: Record) -> bool:
    """Whether a record has neither a slice nor a published procedure's run."""
    measured = (record.directory / name for name in ("slices.jsonl", "study.json"))
    return not any(path.exists() and path.stat().st_size for path in measured)


def carry_out(
    cells: Sequence[PlannedCell],
    record: Record,
    mark: str,
    display: Display,
    cluster: Cluster | None,
    before: Before | None = None,
) -> tuple[Result, Path]:
    """Measure what the record lacks, and compute the result.

    `mark`: the id that marks everything the run starts and creates. `cluster`: makes the load; None: this machine.
    """
    facts = record.facts
    try:
        with (
            record,
            supervisor.Supervisor(mark) as run_supervisor,
            display,
        ):
            scratch = supervisor.scratch(mark, run_supervisor)
            if cluster is not None:
                cluster.work_in(scratch / "wheels")
            announce(record.facts, display)
            if before:
                before(record, run_supervisor, scratch, display)
            whole = Run(
                cells,
                record,
                run_supervisor,
                scratch,
                display,
                so_far.watching,
                Servers(cells),
                command_readers.reader,
                cluster,
            )
            for numbers in schedule.groups(facts.spec):
                experiment(numbers, whole)
            facts.ended = now()
            with Termination() as termination:
                record.seal()
                result = conclude.result_of(record.directory)
                record.save_result(result)
                with termination.cuts() as came:
                    if not came:
                        html_page.page(record.directory, run_supervisor, display.say)
    except KeyboardInterrupt:
        raise Interrupted(record.directory) from None
    return result, record.directory


def announce(facts: RunFacts, display: Display) -> None:
    """Announce what the run will do, and what an earlier part of it has already done."""
    budgets = [schedule.budget(facts.spec, cell) for cell in facts.spec.cells]
    had = [len(cell.whole_sessions) - len(cell.void_sessions) for cell in facts.cells]
    left = [
        0 if cell.status == "ok" else max(0, budget.sessions - whole)
        for cell, budget, whole in zip(facts.cells, budgets, had, strict=True)
    ]
    loads = [
        budget.total_s * sessions_left / budget.sessions for budget, sessions_left in zip(budgets, left, strict=True)
    ]
    share = sum(loads) / (sum(budget.total_s for budget in budgets) or 1.0)
    display.start([title(cell) for cell in facts.cells], loads, schedule.time_estimate(facts.spec) * share, left)
    for number, cell in enumerate(facts.cells):
        display.kept(number, had[number], done=cell.status == "ok")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
