"""compare: `ciphercost compare`."""

from __future__ import annotations

from pathlib import Path

import click

from ciphercost.commands._measure import write


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|latest…")
@click.option(
    "--fail-over", metavar="SHARE", help="Gate: the most that encryption may cost, by the interval's upper bound: 10%."
)
@click.option("--strict", is_flag=True, help="Exit status 4 where a verdict is unresolved.")
@click.option(
    "--margin", metavar="SHARE", help="Costs that differ by less are equivalent. [default: the runs' own margin, 1%]"
)
@click.option(
    "--format", "format_", default="terminal", metavar="FORMAT", help="terminal, md, csv or json. [default: terminal]"
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
def compare(
    runs: tuple[str, ...], fail_over: str | None, strict: bool, margin: str | None, format_: str, output: Path | None
) -> None:
    """Do the costs of runs differ? The first is the reference.

    One run with --fail-over is a gate. Exit status: 0 done, or the gate is passed · 1 a cell has no number · 3 the budget is exceeded
    for sure · 4 unresolved, with --strict.
    """
    from ciphercost.estimate import results
    from ciphercost.load import units
    from ciphercost.model import run_directory
    from ciphercost.report import comparison, comparison_formats, comparison_types

    render = comparison_formats.get(format_)
    limit = units.budget(fail_over) if fail_over is not None else None
    within = units.share(margin, "--margin") if margin is not None else None
    read = [comparison_types.Run(name, *results.with_intervals(run_directory.find(name))) for name in runs]
    found = comparison.compare(read, limit=limit, strict=strict, margin=within)
    if output:
        write(output, render(found) + "\n")
    else:
        click.echo(render(found))
    raise click.exceptions.Exit(found.exit_status)
