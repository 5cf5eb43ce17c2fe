"""`ciphercost report`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print
from ciphercost.commands._options import PRICE
from ciphercost.model.errors import UsageError

SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".csv": "csv",
    ".json": "json",
    ".tex": "latex",
    ".svg": "svg",
    ".png": "png",
    ".parquet": "parquet",
}
"""Formats by the suffix of the file to write. Any other file gets the terminal's text."""


@click.command()
@click.argument(
    "run_",
    metavar="RUN|latest",
    shell_complete=_completers.runs,
)
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    help="Output format: terminal, md, csv, latex or json; for CI and dashboards junit, openmetrics, bencher or "
    "github-action-benchmark; with -o also html, svg or png (all plots), parquet (raw slices). [default: by FILE's suffix, else terminal]",
    shell_complete=_completers.formats,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file. svg and png: a directory, or a file that ends in .svg or .png if the run has one cell.",
)
@click.option(
    "--need",
    metavar="WORD,WORD…",
    help="Advise the cheapest proven mechanism of the run that meets these requirements.",
    shell_complete=_completers.needs,
)
@click.option(
    "--max-cost",
    metavar="PERCENT",
    help="Advise only mechanisms that cost at most this, e.g. 5%. junit: a cell that certainly costs more is a failure.",
)
@PRICE
def report(
    run_: str, format_: str | None, output: Path | None, need: str | None, max_cost: str | None, price: str | None
) -> None:
    """Print or export the report of a run.

    Estimates the run again from its recorded slices. With --need or --max-cost it also prints advice.

    \b
    Words of --need:
      in-transit, tls1.2, tls1.3, verified, forward-secrecy, post-quantum,
      at-rest, nothing-in-clear, column, key-off-server, authenticated

    \b
    Exit status with --need or --max-cost:
      0  a mechanism meets your requirements
      3  none does, within the budget
      4  unresolved

    \b
    Of junit with --max-cost, which checks each cell on its own:
      0  every cell is within the budget
      1  a cell has no number
      3  a cell certainly costs more
      4  unresolved
    """
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import advice, formats, money
    from ciphercost.runs import conclude, replicate_all, spread

    format_ = format_ or (SUFFIXES.get(output.suffix.lower(), "terminal") if output else "terminal")
    if (several := replicate_all.find(run_)) is not None:
        if format_ not in ("terminal", "json", "html") or (need, max_cost, price) != (None, None, None):
            raise UsageError(
                f"{several} holds several studies; their common page has the formats terminal, json and html. For one study: "
                f"ciphercost report {shlex.quote(str(several))}/STUDY"
            )
        _report_all(several, format_, output)
        return
    if (over := spread.find(run_)) is not None:
        if (need, max_cost, price) != (None, None, None):
            raise UsageError(
                f"{over} is a run over machines, which has no --need, --max-cost or --price; give one machine's run: {over}/machines/node-1"
            )
        from ciphercost.commands import _machines

        _machines.report(over, format_, output)
        return
    wanted = advice.needs(need) if need is not None else []
    limit = units.budget(max_cost, "--max-cost") if max_cost is not None else None
    to_file = formats.writer(format_)
    gate = formats.gate(format_) if limit is not None else None
    if need is not None and (to_file or gate):
        raise UsageError(f"--need can't be written as {format_}; use terminal, md or json")
    priced = units.price(price) if price is not None else None
    if priced and (format_ not in formats.with_price()):
        raise UsageError(f"--price isn't shown in {format_}; use {', '.join(formats.with_price())}")
    if to_file:
        if output is None:
            raise UsageError(f"--format {format_} needs a file: add -o FILE, or -o DIR for svg and png")
        directory = run_directory.find(run_)
        result = money.at_price(conclude.result_of(directory), priced)
        to_file(result, directory, output, limit)
        if limit is not None:
            raise click.exceptions.Exit(advice.advise(result, wanted, limit).exit_status)
    elif gate and limit is not None:
        text, status = gate(conclude.result_of(run_directory.find(run_)), limit)
        write_or_print(text, output)
        raise click.exceptions.Exit(status)
    else:
        render = formats.get(format_)
        if priced and (need is not None or limit is not None):
            raise UsageError(
                "--need and --max-cost print advice without money; remove --price, or use --format html -o FILE"
            )
        result = money.at_price(conclude.result_of(run_directory.find(run_)), priced)
        advised = advice.advise(result, wanted, limit) if need is not None or max_cost is not None else None
        text = formats.with_advice(format_, result, advised) if advised else render(result)
        write_or_print(text, output)
        if advised:
            raise click.exceptions.Exit(advised.exit_status)


def _report_all(directory: Path, format_: str, output: Path | None) -> None:
    """Print or write the page of `replicate all`, as text, JSON or HTML."""
    from ciphercost.report import together
    from ciphercost.runs import replicate_all

    if format_ == "html" and output is None:
        raise UsageError("--format html needs a file: add -o FILE")
    outcomes = replicate_all.outcomes(directory)
    if format_ == "html" and output is not None:
        from ciphercost.report.formats import html

        html.write_all(replicate_all.as_page(directory, outcomes), output)
        return
    write_or_print(replicate_all.as_json(directory, outcomes) if format_ == "json" else together.page(outcomes), output)
