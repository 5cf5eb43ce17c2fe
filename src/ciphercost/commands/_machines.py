"""Start, resume and report a run over machines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ciphercost.commands._measure import COST_OF_FAILURE, answer, command_line, write_or_print
from ciphercost.commands._say import note, say, say_saved
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.plan.planned import Plan
    from ciphercost.runs.spread import Nodes

SEVERITY = (1, 3, 4)
"""Exit statuses of comparisons, the most severe first: no number, over the budget, unresolved."""


def start(plan: Plan, given: dict[str, Any]) -> NoReturn:
    """Measure a plan on the machines of its cluster, and print the result over machines."""
    from ciphercost.runs import ray_tasks, spread

    if given["price"] is not None:
        raise UsageError(
            "--price isn't shown over machines; `ciphercost report RUN/machines/node-1 --price …` shows it for one"
        )
    nodes = ray_tasks.RayNodes(plan.spec.cluster)
    finish(spread.begin(plan, nodes, given["output"], command_line()), nodes, given)


def resume(directory: Path, given: dict[str, Any]) -> NoReturn:
    """Measure the parts that are missing."""
    from ciphercost.runs import own_records, ray_tasks, spread

    if spread.finished(directory):
        say(f"{directory} is finished; `ciphercost report {shlex.quote(str(directory))}` prints it")
        raise click.exceptions.Exit(0)
    own_records.check(directory, spread.orders(directory), trusted=given.get("trust_record", False))
    finish(directory, ray_tasks.RayNodes(spread.read(directory).spec.cluster), given)


def finish(directory: Path, nodes: Nodes, given: dict[str, Any]) -> NoReturn:
    """Measure every part that is missing, print the result, and exit with 1 if a machine has no number for one of its cells."""
    from ciphercost.report import machines_formats
    from ciphercost.runs import html_page, spread

    tell = (lambda _: None) if given["no_progress"] else note
    concluded = spread.run_remaining(directory, nodes, tell)

    def shown() -> None:
        say(machines_formats.get("terminal")(concluded))
        say_saved(directory, directory / html_page.NAME)

    answer(given["json_"], lambda: machines_formats.get("json")(concluded), shown)
    raise click.exceptions.Exit(COST_OF_FAILURE if any(cell.lost for cell in concluded.run.cells) else 0)


def report(directory: Path, format_: str, output: Path | None) -> None:
    """Print or write the result over machines, estimated again from the machines' records."""
    from ciphercost.report import machines_formats
    from ciphercost.runs import spread

    if format_ == "html" and output is None:
        raise UsageError("--format html needs a file: add -o FILE")
    write_or_print(machines_formats.get(format_)(spread.conclude(directory)), output)


def compare(
    names: Sequence[str], format_: str, output: Path | None, *, limit: float | None, strict: bool, margin: float | None
) -> NoReturn:
    """Compare runs of which at least one is over machines, CPU model by CPU model."""
    import msgspec

    from ciphercost.estimate import results
    from ciphercost.model import run_directory
    from ciphercost.report import by_model, comparison, comparison_formats, comparison_types
    from ciphercost.report.words import comparison_text
    from ciphercost.runs import spread

    if format_ not in ("terminal", "md", "json"):
        raise UsageError(f"--format {format_}: runs over machines are compared as terminal, md or json")
    read = []
    for name in names:
        if (over := spread.find(name)) is not None:
            read.append(by_model.models(name, spread.conclude(over)))
        else:
            run = comparison_types.Run(name, *results.with_intervals(run_directory.find(name)))
            read.append([by_model.of_run(run)])
    groups = [
        by_model.Group(cpu, comparison.compare(runs, limit=limit, strict=strict, margin=margin))
        for cpu, runs in by_model.grouped(read, one=limit is not None)
    ]
    if format_ == "json":
        text = msgspec.json.format(msgspec.json.encode(groups), indent=2).decode()
    else:
        render, mark = comparison_formats.get(format_), "## " if format_ == "md" else ""
        text = "\n\n".join(f"{mark}{group.cpu}\n\n{render(group.comparison)}" for group in groups)
    answer = "; ".join(f"{group.cpu}: {comparison_text.headline(group.comparison)}" for group in groups)
    write_or_print(text, output, answer)
    statuses = {group.comparison.exit_status for group in groups}
    raise click.exceptions.Exit(next((status for status in SEVERITY if status in statuses), 0))
