"""Start, resume and report a run over machines."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ciphercost.commands._measure import COST_OF_FAILURE, command_line, write, write_or_print
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.runs.spread import Nodes


def start(spec: Any, given: dict[str, Any]) -> NoReturn:
    """Measure a spec on the machines of its cluster, and print the result over machines."""
    from ciphercost.runs import ray_tasks, spread

    if given["price"] is not None:
        raise UsageError(
            "--price isn't shown over machines; `ciphercost report RUN/machines/node-1 --price …` shows it for one"
        )
    nodes = ray_tasks.RayNodes(spec.cluster)
    finish(spread.begin(spec, nodes, given["output"], command_line()), nodes, given)


def resume(directory: Path, given: dict[str, Any]) -> NoReturn:
    """Measure the parts that are missing."""
    from ciphercost.runs import ray_tasks, spread

    if spread.finished(directory):
        click.echo(f"{directory} is finished; `ciphercost report {directory}` prints it")
        raise click.exceptions.Exit(0)
    finish(directory, ray_tasks.RayNodes(spread.read(directory).spec.cluster), given)


def finish(directory: Path, nodes: Nodes, given: dict[str, Any]) -> NoReturn:
    """Measure every part that is missing, print the result, and exit with 1 if a machine has no number for one of its cells."""
    from ciphercost.report import machines_formats
    from ciphercost.runs import html_page, spread

    say = (lambda _: None) if given["no_progress"] else partial(click.echo, err=True)
    found = spread.run_remaining(directory, nodes, say)
    as_json = machines_formats.get("json")(found)
    if str(given["json_"]) == "-":
        click.echo(as_json)
    else:
        click.echo(machines_formats.get("terminal")(found))
        click.echo(f"saved in {directory}; to print this report again:\n  ciphercost report {directory}")
        if (page := directory / html_page.NAME).is_file():
            click.echo(f"as a web page:\n  {page}")
        if given["json_"]:
            write(given["json_"], as_json + "\n")
    raise click.exceptions.Exit(COST_OF_FAILURE if any(each.lost for each in found.run.cells) else 0)


def report(directory: Path, format_: str, output: Path | None) -> None:
    """Print or write the result over machines, estimated again from the machines' records."""
    from ciphercost.report import machines_formats
    from ciphercost.runs import spread

    if format_ == "html" and output is None:
        raise UsageError("--format html needs a file: add -o FILE")
    write_or_print(machines_formats.get(format_)(spread.conclude(directory)), output)
