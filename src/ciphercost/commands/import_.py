"""`ciphercost import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import command_line, show
from ciphercost.commands._options import DIRECTORY, JSON, options
from ciphercost.commands._say import note


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE…")
@options(
    click.option(
        "--plain",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File or folder with results of the plain arm. Repeatable.",
    ),
    click.option(
        "--encrypted",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File or folder with results of the encrypted arm. Repeatable.",
    ),
    click.option(
        "--arm",
        "arm_words",
        multiple=True,
        metavar="ARM[=WORD]",
        help="Assign files to an arm by a word in their names: plain=before. plain without a word: all files. Repeatable.",
    ),
    click.option(
        "--columns",
        metavar="MAP",
        help="Meaning of a table's columns, e.g. throughput=tps,arm=mode. Roles: throughput (per second), time (of a row) and "
        "latency (s, ms or us: latency=p95:us), operations (in a row's time), cpu (% or share), arm, clients, workload, factor "
        "(repeatable: sets cells apart; several columns of one figure are workloads), run (a run's name; run=row: each row is one run), "
        "at (seconds since 1970), decimal (point or comma).",
    ),
    click.option(
        "--no-header",
        is_flag=True,
        help="The first line of a table is a row; --columns names column1, column2 …",
    ),
    click.option(
        "--engine",
        default="",
        metavar="ENGINE",
        help="The server that was measured. [default: as the tool reports it]",
        shell_complete=_completers.engines,
    ),
    click.option(
        "--mechanism",
        default="",
        metavar="MECHANISM",
        help="How it was encrypted: tls, innodb-tde, … [default: encryption]",
        shell_complete=_completers.mechanisms,
    ),
    DIRECTORY,
    JSON,
)
def import_(files: tuple[Path, ...], **given: Any) -> None:
    """Import results of other tools and estimate costs from them.

    Reads output of pgbench, mysqlslap, sysbench, go-tpc, HammerDB, BenchBase, YCSB, cassandra-stress, redis-benchmark,
    valkey-benchmark, memtier_benchmark, ab, wrk, wrk2, h2load, hey, oha, k6, vegeta, fortio, siege, autocannon, JMeter,
    Locust, Gatling, kafka-producer-perf-test, kafka-consumer-perf-test, rabbitmq-perf-test, nats-bench, etcd-benchmark,
    fio, JMH, Go's benchmarks, criterion, hyperfine, sar, sadf, atop, times of a script, and any table (CSV, .xlsx,
    Markdown, psql, mysql). FILE is a file or a folder. The content shows the tool; words in the file name show the arm
    (plain, off, notls, … or tls, ssl, on, …).
    """
    from ciphercost.runs import import_run

    result, directory, notes = import_run.run(files, given, command_line())
    note("\n".join(notes) + "\n")
    show(result, directory, given["json_"])
