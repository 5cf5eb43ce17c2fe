"""`ciphercost replicate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE, answer, command_line, measure
from ciphercost.commands._options import OUTPUT, options, time_option
from ciphercost.commands._say import note, say

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
    "bandwidth",
    "delay",
    "size",
)
"""Options that only some studies have."""


@click.command()
@click.argument(
    "study",
    metavar="STUDY|all",
    shell_complete=_completers.studies,
)
@options(
    click.option(
        "--engine",
        metavar="ENGINE[@VERSION]",
        help="Run on this server instead of the study's. For studies of several servers: a selection A,B@VERSION. [default: the study's]",
        shell_complete=_completers.engines,
    ),
    time_option("Load time of each operation by ciphercost's method. [default: the study's, 14s to 60s]"),
    click.option(
        "--quick",
        is_flag=True,
        help="One session for each cell of ciphercost's method: a trial, whose intervals hold for these server pairs only.",
    ),
    click.option(
        "--scale", type=int, metavar="N", help="Scale of the data, if the study has one. [default: the study's]"
    ),
    click.option(
        "--duration", metavar="DURATION", help="Length of a published run, if it is timed. [default: the study's]"
    ),
    click.option(
        "--rows",
        metavar="N,N…",
        help="postgres-tde: rows of the largest table; several numbers make a sweep, with fio at matching sizes "
        "[default: 5000000]. mysql-tls: rows of the table [default: 10000]. turso-encryption: rows of the table at first [default: 1000000].",
    ),
    click.option("--clients", metavar="N,N…", help="postgres-tde: numbers of connections. [default: 10,50]"),
    click.option(
        "--bindir",
        multiple=True,
        metavar="[NAME=]DIR",
        help="postgres-tde: directory with the binaries of a server that has TDE. Repeat it with names to put several "
        "servers into one table.",
        shell_complete=_completers.directories,
    ),
    click.option(
        "--mechanism",
        metavar="NAME,NAME…",
        help="postgres-tde: what encrypts if the server has no TDE; volume-encryption: what stands in for LUKS. [default: fscrypt,gocryptfs]",
        shell_complete=_completers.mechanisms,
    ),
    click.option("--select-only", is_flag=True, help="postgres-tde: also run pgbench -S (SELECT only)."),
    click.option(
        "--loads",
        metavar="N,N…",
        help="column-functions: records of each load; the study used 1000,2000,4000,8000. [default: 1000,2000]",
    ),
    click.option(
        "--runs",
        type=int,
        metavar="N",
        help="column-functions: published runs of each load [default: 3]. jdbc-tls: starts of Java [default: 5]. pq-tls: fetches "
        "of each file [default: 20]. valkey-tls, valkey-storm, mysql-openssl, fips-haproxy, driver-tls, cybertec-tde-cost, pg-tde-small-cost, "
        "turso-encryption, volume-encryption: published runs of each arm "
        "[default: 3, volume-encryption 2]. direct-tls: starts of psql in each way [default: 300]. "
        "odyssey-large-value: starts of psql through each pooler [default: 3].",
    ),
    click.option(
        "--csv",
        metavar="FILE",
        help="column-functions: file of the original register. [default: generated records]",
        shell_complete=_completers.files,
    ),
    click.option(
        "--loop",
        metavar="LOOP",
        help="jdbc-tls: captured (the statement and transaction of the post) or insert-loop. [default: captured]",
        shell_complete=_completers.words("captured", "insert-loop"),
    ),
    click.option(
        "--iterations", type=int, metavar="N", help="mysql-tls: iterations of each operation and arm. [default: 5]"
    ),
    click.option(
        "--queries",
        type=int,
        metavar="N",
        help="mysql-tls: queries of each iteration; fewer if --time is short. [default: 10000]",
    ),
    click.option(
        "--order",
        metavar="ORDER",
        help="mysql-tls: operations (each with TLS, then unencrypted, as in the paper) or arms (all unencrypted, then all "
        "with TLS). [default: operations]",
        shell_complete=_completers.words("operations", "arms"),
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="mysql-tls: memory limit of server and client together; the study used 2GB. [default: no limit]",
    ),
    click.option(
        "--cpu-crypto",
        type=click.Choice(["on", "off"]),
        help="column-functions: off hides the CPU's AES instructions from both arms. [default: on]",
    ),
    click.option(
        "--bandwidth", metavar="RATE", help="pq-tls: bandwidth of its slow link, e.g. 1mbit. [default: 2mbit]"
    ),
    click.option(
        "--delay",
        metavar="DURATION",
        help="pq-tls: delay of its slow link, e.g. 200ms [default: 50ms]. direct-tls: delay of its link [default: 10ms].",
    ),
    click.option(
        "--size",
        metavar="SIZE",
        help="odyssey-large-value: bytes of its large value, 4KB to 250MB [default: 40MB].",
    ),
    *OUTPUT,
)
def replicate(study: str, engine: str | None, **given: Any) -> None:
    """Repeat a published study.

    Prints three figures side by side: as published, the published procedure on this machine, and ciphercost's method.
    `ciphercost list studies` lists the studies; `all` runs every study and prints one page.

    Each published run takes --duration. If the study does not time its runs, the published procedure takes about two thirds
    of the time that --time gives to ciphercost's method.
    """
    from ciphercost.load import units
    from ciphercost.model.errors import UsageError
    from ciphercost.runs import replicate

    if given["duration"]:
        given["duration"] = units.duration(given["duration"], "--duration")
    given["bindir"], given["select_only"] = list(given["bindir"]) or None, given["select_only"] or None
    options_ = {name: given[name] for name in STUDY_OPTIONS if given[name] is not None}
    seconds = units.duration(given["time_"]) if given["time_"] else 0.0
    if study == "all" and given["quick"]:
        raise UsageError("--quick is for one study; name it, or leave --quick out")
    if study == "all":
        from ciphercost.runs import replicate_all

        asked = replicate_all.new_record(seconds, given["seed"], engine or "", options_, command_line())
        all_studies(replicate_all.begin(given["output"], asked), given)
    (chosen,) = replicate.chosen(study, options_)
    spec = replicate.spec_of(chosen, engine or chosen.engine, seconds or chosen.seconds, given["seed"])
    if given["quick"]:
        spec = replicate.quick(spec)
    failed = measure(given, partial(replicate.run_in, chosen, spec, options=options_), replicate.failed)
    raise click.exceptions.Exit(COST_OF_FAILURE if failed else 0)


def all_studies(directory: Path, given: dict[str, Any]) -> NoReturn:
    """Run the studies that are not finished, and print the page of all."""
    from ciphercost.report import progress, together
    from ciphercost.runs import replicate_all

    shown = not given["no_progress"]
    tell = note if shown else lambda _: None
    outcomes = replicate_all.run_remaining(directory, lambda: progress.pick(shown), tell)
    answer(given["json_"], lambda: replicate_all.as_json(directory, outcomes), lambda: say(together.page(outcomes)))
    raise click.exceptions.Exit(COST_OF_FAILURE if replicate_all.failed(outcomes) else 0)
