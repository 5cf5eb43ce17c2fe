"""Start a run and print its result."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciphercost.commands._complain import complain
from ciphercost.commands._say import note, say, say_data, say_saved
from ciphercost.model import system_error
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.model.result import Result
    from ciphercost.plan.planned import Plan


COST_OF_FAILURE = 1
"""Exit status if a cell or a proof failed."""


def run_plan(plan: Plan, given: dict[str, Any]) -> None:
    from ciphercost.load import units
    from ciphercost.report import money
    from ciphercost.runs import pipeline

    price = units.price(given["price"]) if given["price"] is not None else None
    banner(plan)

    def run_in(*args: Any) -> tuple[Any, Path]:
        result, directory = pipeline.run_in(plan, *args)
        return money.at_price(result, price), directory

    failed = measure(given, run_in, has_failed)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


def measure(
    given: dict[str, Any],
    run_in: Callable[..., Any],
    failed: Callable[[Any], bool],
    render: Callable[[Result], str] | None = None,
) -> bool:
    """Run, print the result, and return whether anything failed. `render` replaces the terminal report."""
    from ciphercost.report import progress

    display = progress.pick(not given["no_progress"])
    result, directory = run_in(given["output"], display, command_line())
    show(result, directory, given["json_"], render)
    return failed(result)


def show(result: Result, directory: Path, json_: Path | None, render: Callable[[Result], str] | None = None) -> None:
    """Print what a command that made a run's directory prints at its end.

    `json_`: a file for the JSON result as well; `-` prints the JSON instead of the report, and failures on standard error.
    """
    from ciphercost.report import formats
    from ciphercost.runs import html_page

    def shown() -> None:
        say((render or formats.get("terminal"))(result))
        say_saved(directory, directory / html_page.NAME)

    answer(json_, lambda: formats.get("json")(result), shown)
    if str(json_) == "-":
        for reason in dict.fromkeys(f"{cell.status}: {cell.reason}" for cell in result.cells if cell.reason):
            complain(reason)


def answer(json_: Path | None, as_json: Callable[[], str], shown: Callable[[], None]) -> None:
    """Print JSON alone if `--json -` asks for it; else write it, if asked, and show the report."""
    if str(json_) == "-":
        say_data(as_json())
        return
    try:
        if json_:  # first: nobody may read the terminal any more
            write(json_, as_json() + "\n")
    finally:
        shown()


def command_line() -> str:
    """The command as typed, for the record. It holds no secret: no argument takes a password, and a header's value is left out."""
    from ciphercost.load import headers

    return shlex.join(["ciphercost", *headers.without_values(sys.argv[1:])])


def has_failed(result: Any) -> bool:
    """Whether a cell has no number, or ciphercost left a schema on the user's server. Pure."""
    left = any(warning.code == "schema-left" for cell in result.cells for warning in cell.warnings)
    return left or any(cell.status != "ok" for cell in result.cells)


def banner(plan: Plan) -> None:
    """Print what ciphercost does to servers that the user already runs, who can reach its own, and what it read in the user's rows."""
    from ciphercost.commands import _banner, _dump_read, _rows_read

    for line in (*_banner.lines(plan.cells), *_rows_read.lines(plan.cells), *_dump_read.lines(plan.cells)):
        note(line)


def write_or_print(text: str, output: Path | None, answer: str = "") -> None:
    """Write a report to `output` and print only its one-line `answer`; print the report if there is no output.

    Raises UsageError if the file can't be written.
    """
    if output:
        write(output, text + "\n")
        if answer:
            say(answer)
    else:
        say_data(text)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"can't write {path}: {system_error.words(error, named=True)}") from None
