"""import: `ciphercost import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ciphercost.commands._measure import command_line, show
from ciphercost.commands._options import OUTPUT, options


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE…")
@options(
    click.option(
        "--plain",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file or folder of the plain arm.",
    ),
    click.option(
        "--encrypted",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file or folder of the other.",
    ),
    click.option(
        "--arm",
        "arm_words",
        multiple=True,
        metavar="ARM[=WORD]",
        help="plain=before: files with this word in their names are of this arm; plain alone: all are.",
    ),
    click.option(
        "--columns",
        metavar="MAP",
        help="What the columns of a table are: time=elapsed_ms,arm=mode,operations=n,latency=p50:us,factor=dbms; "
        "run=NAME or run=row (each row is a run), decimal=point or comma.",
    ),
    click.option("--engine", default="", metavar="ENGINE", help="What server it was. [default: what the tool tells]"),
    click.option(
        "--mechanism", default="", metavar="MECHANISM", help="What encrypted: tls, innodb-tde, … [default: encryption]"
    ),
    OUTPUT[2],
    OUTPUT[3],
)
def import_(files: tuple[Path, ...], **given: Any) -> None:
    """Other tools' results: what can they tell?

    pgbench, mysqlslap, sysbench, sar, sadf, atop, wrk, h2load, hyperfine, or any table; files or folders of them. Each is known by its
    content, its arm by its name (plain, off, notls, … or tls, ssl, on, …).
    """
    from ciphercost.runs import import_run

    result, directory, said = import_run.run(files, given, command_line())
    click.echo("\n".join(said) + "\n", err=True)
    show(result, directory, given["json_"])
