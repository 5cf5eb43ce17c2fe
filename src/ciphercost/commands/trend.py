"""`ciphercost trend`."""

from __future__ import annotations

from pathlib import Path

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import write_or_print
from ciphercost.model.errors import UsageError

SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".json": "json"}
"""Format of an output file by its suffix."""


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|DIR|FILE.json…", shell_complete=_completers.runs)
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    help="Output format: terminal, md, csv, json; with -o also html. [default: by the suffix of -o, otherwise terminal]",
    shell_complete=_completers.formats,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file instead of the terminal; FILE.html is a page with plots.",
)
@click.option("--fail-on-rise", is_flag=True, help="Exit with status 3 if the last change of a cost is a rise.")
def trend(runs: tuple[str, ...], format_: str | None, output: Path | None, fail_on_rise: bool) -> None:
    """Show the costs of several runs over time.

    Reports where a cost changed, and what else changed there: versions of server, libraries, kernel and ciphercost, and
    the machine. Give runs, directories of runs, or results as JSON, in any order; they are sorted by the time at which
    they began. A change needs 8 runs to show, more for several cells; `ciphercost compare` compares two.

    \b
    Exit status:
      0  done, whether or not a cost changed
      2  bad usage
      3  the last change of a cost is a rise (only with --fail-on-rise)
    """
    from ciphercost.report import trend_analysis, trend_formats
    from ciphercost.report.words import trend_text
    from ciphercost.runs import trend_input

    name = format_ or (SUFFIXES.get(output.suffix.lower(), "terminal") if output else "terminal")
    render = trend_formats.get(name)
    if name == "html" and output is None:
        raise UsageError("--format html needs a file: add -o FILE.html")
    analysis = trend_analysis.trend(trend_input.read(runs), fail_on_rise=fail_on_rise)
    write_or_print(render(analysis), output, trend_text.headline(analysis))
    raise click.exceptions.Exit(analysis.exit_status)
