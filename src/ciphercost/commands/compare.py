"""`ciphercost compare`."""

from __future__ import annotations

from pathlib import Path

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print


@click.command()
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    metavar="RUN|latest…",
    shell_complete=_completers.runs,
)
@click.option(
    "--fail-over",
    metavar="PERCENT",
    help="Gate: the most that encryption may cost in operations per second, or in median latency where those were not measured, e.g. 10%. "
    "A cost fails if the lower bound of its interval is above it.",
)
@click.option("--strict", is_flag=True, help="Exit with status 4 if a verdict is unresolved.")
@click.option(
    "--margin",
    metavar="PERCENT",
    help="Costs that differ by less than this are equivalent. [default: the margin of the runs, usually 1%]",
)
@click.option(
    "--format",
    "format_",
    default="terminal",
    metavar="FORMAT",
    help="Output format: terminal, md, csv or json. [default: terminal]",
    shell_complete=_completers.formats,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file instead of the terminal.",
)
def compare(
    runs: tuple[str, ...], fail_over: str | None, strict: bool, margin: str | None, format_: str, output: Path | None
) -> None:
    """Compare the costs of runs, or check one run against a budget.

    The first run is the reference. One run with --fail-over is a gate for CI. Runs over machines are compared by CPU model; one such
    run alone compares its models with each other.

    \b
    Exit status:
      0  done, and no cost is certainly above the budget
      1  a cell has no number
      2  bad usage
      3  a cost is certainly above the budget
      4  unresolved (only with --strict)
    """
    from ciphercost.estimate import results
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import comparison, comparison_formats, comparison_types
    from ciphercost.report.words import comparison_text
    from ciphercost.runs import spread

    render = comparison_formats.get(format_)
    limit = units.budget(fail_over) if fail_over is not None else None
    within = units.share(margin, "--margin") if margin is not None else None
    if any(spread.find(name) for name in runs):
        from ciphercost.commands import _machines

        _machines.compare(runs, format_, output, limit=limit, strict=strict, margin=within)
    read = [comparison_types.Run(name, *results.with_intervals(run_directory.find(name))) for name in runs]
    compared = comparison.compare(read, limit=limit, strict=strict, margin=within)
    write_or_print(render(compared), output, comparison_text.headline(compared))
    raise click.exceptions.Exit(compared.exit_status)
