"""replicate: `ciphercost replicate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from ciphercost.commands._measure import COST_OF_FAILURE, command_line, measure, write
from ciphercost.commands._options import OUTPUT, options

STUDY_OPTIONS = (
    "scale",
    "rows",
    "duration",
    "clients",
    "bindir",
    "mechanism",
    "select_only",
    "loads",
    "runs",
    "csv",
    "iterations",
    "queries",
    "order",
    "memory",
    "loop",
    "cpu_crypto",
)
"""Of `replicate`: what only some studies have."""


@click.command()
@click.argument("study", metavar="STUDY|all")
@options(
    click.option(
        "--engine",
        metavar="ENGINE",
        help="Another server than the study's own; of several, those named: A,B. [default: the study's]",
    ),
    click.option("--time", "time_", metavar="DURATION", help="Load of each operation by our method. [default: 60s]"),
    click.option("--scale", type=int, metavar="N", help="Of the data, where the study has one. [default: the study's]"),
    click.option(
        "--duration", metavar="DURATION", help="Of a run as published, where it is timed. [default: the study's]"
    ),
    click.option(
        "--rows",
        metavar="N,N…",
        help="postgres-tde: of the largest table; several: a sweep, with fio at matching sizes. mysql-tls: people in the table. "
        "[default: 5000000; 10000]",
    ),
    click.option("--clients", metavar="N,N…", help="postgres-tde: connections. [default: the study's, 10,50]"),
    click.option(
        "--bindir",
        multiple=True,
        metavar="[NAME=]DIR",
        help="postgres-tde: binaries of a server that has TDE. Repeatable, with names: all servers in one table.",
    ),
    click.option(
        "--mechanism",
        metavar="NAME,NAME…",
        help="postgres-tde: what encrypts where the server has no TDE of its own. [default: fscrypt,gocryptfs]",
    ),
    click.option("--select-only", is_flag=True, help="postgres-tde: run pgbench -S (SELECT only) as well."),
    click.option(
        "--loads",
        metavar="N,N…",
        help="column-functions: records of each load; the study's: 1000,2000,4000,8000. [default: 1000,2000]",
    ),
    click.option(
        "--runs",
        type=int,
        help="column-functions: of each load as published; jdbc-tls: starts of Java. [default: 3; 5]",
    ),
    click.option("--csv", metavar="FILE", help="column-functions: the register's own file. [default: made-up records]"),
    click.option(
        "--loop",
        metavar="LOOP",
        help="jdbc-tls: captured, the post's own statement and transaction, or insert-loop. [default: captured]",
    ),
    click.option("--iterations", type=int, metavar="N", help="mysql-tls: of each operation and arm. [default: 5]"),
    click.option(
        "--queries",
        type=int,
        metavar="N",
        help="mysql-tls: of each iteration; fewer where --time is short. [default: 10000]",
    ),
    click.option(
        "--order",
        metavar="ORDER",
        help="mysql-tls: operations (each with TLS, then in clear: the paper's) or arms (all in clear, then all with TLS). "
        "[default: operations]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="mysql-tls: of server and client together; the study's: 2GB. [default: no limit]",
    ),
    click.option(
        "--cpu-crypto",
        type=click.Choice(["on", "off"]),
        help="column-functions: off runs both arms without the CPU's AES instructions, as the study did. [default: on]",
    ),
    *OUTPUT[1:],
)
def replicate(study: str, engine: str | None, **given: Any) -> None:
    """Run a published study again.

    As it was published, and by our method; three columns side by side. The published procedure takes --duration for each of its
    runs; where it is not timed, two thirds of --time beside it. `all`: every study, each in a run of its own below one
    directory, and one page at the end.
    """
    from ciphercost.load import units
    from ciphercost.runs import replicate

    if given["duration"]:
        given["duration"] = units.duration(given["duration"], "--duration")
    given["bindir"], given["select_only"] = list(given["bindir"]) or None, given["select_only"] or None
    options_ = {name: given[name] for name in STUDY_OPTIONS if given[name] is not None}
    seconds = units.duration(given["time_"]) if given["time_"] else 0.0
    if study == "all":
        from ciphercost.runs import replicate_all

        asked = replicate_all.ask(seconds, given["seed"], engine or "", options_, command_line())
        all_studies(replicate_all.begin(given["output"], asked), given)
    (chosen,) = replicate.chosen(study, options_)
    made = chosen.spec(engine or chosen.engine, seconds or chosen.seconds, given["seed"])
    failed = measure(given, partial(replicate.run_in, chosen, made, options=options_), replicate.failed)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


def all_studies(directory: Path, given: dict[str, Any]) -> NoReturn:
    """Run what is left of all studies, and print their page."""
    from ciphercost.report import progress, together
    from ciphercost.runs import replicate_all

    shown = not given["no_progress"]
    say = partial(click.echo, err=True) if shown else lambda _: None
    found = replicate_all.go_on(directory, lambda: progress.pick(shown), say)
    text = replicate_all.as_json(directory, found)
    click.echo(text if str(given["json_"]) == "-" else together.page(found))
    if given["json_"] and str(given["json_"]) != "-":
        write(given["json_"], text + "\n")
    raise click.exceptions.Exit(COST_OF_FAILURE if replicate_all.failed(found) else 0)
