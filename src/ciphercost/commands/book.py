"""`ciphercost book`."""

from __future__ import annotations

from pathlib import Path

import click

from ciphercost.commands._say import note, say
from ciphercost.model.errors import UsageError


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|FILE|DIR…")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the site, or of the packed runs with --pack.",
)
@click.option("--check", "check_", is_flag=True, help="Only check the runs, and print what is wrong with each.")
@click.option("--pack", is_flag=True, help="Write each run as one file that you can publish: DIR/<id>.tar.xz.")
@click.option(
    "--condense",
    is_flag=True,
    help="With --pack: leave out latency histograms that no estimate reads. All figures stay the same.",
)
@click.option("--skip-bad", is_flag=True, help="Build the book without the runs that are refused, and print why.")
def book(runs: tuple[str, ...], output: Path | None, check_: bool, pack: bool, condense: bool, skip_bad: bool) -> None:
    """Build a results book, a static web site, from many runs.

    Each argument is a run's directory, a packed run, or a directory that holds some. Every run is checked before it
    enters: its files, their hashes, and whether its result follows from its slices.

    \b
    Exit status:
      0  done
      2  bad usage, or a run is refused
    """
    from ciphercost.book import find, site

    if check_ and pack:
        raise UsageError("--check and --pack are two things; --pack checks as well")
    if condense and not pack:
        raise UsageError("--condense belongs to --pack")
    if output is None and not check_:
        raise UsageError("name a directory with -o, e.g. -o site")
    paths = find.runs(runs)
    if check_ or pack:
        raise click.exceptions.Exit(site.check_each(paths, output if pack else None, say, condense=condense))
    assert output is not None
    built = site.build(paths, output, say, skip_bad=skip_bad)
    for reason in built.refused:
        note(f"left out: {reason}")
    counts = f"{built.cells} cell{'s' * (built.cells != 1)} of {built.runs} run{'s' * (built.runs != 1)}"
    say(f"{counts}:\n  {built.output / 'index.html'}")
