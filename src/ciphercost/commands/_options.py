"""options: options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


OUTPUT = (
    click.option(
        "--time",
        "time_",
        metavar="DURATION",
        help="Load time of each cell: 90s, 3m. [default: 90s; with a cell at rest 240s]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        help="Of every random choice; 0 draws one and prints it.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The run's directory. [default: ./runs/<id>]",
    ),
    click.option(
        "--json",
        "json_",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Also write result.json here; - is standard output.",
    ),
    click.option("--no-progress", is_flag=True, help="Say nothing while it runs."),
)


IV_OPTION = click.option(
    "--iv",
    type=click.Choice(["random", "fixed"]),
    help="In columns: an IV of its own for each value, or one for all, as published studies have it. Short for --set iv=…. "
    "[default: random]",
)


MEASURE = (
    click.option("--workload", metavar="W", help="See `ciphercost list workloads`. [default: point-select]"),
    click.option(
        "--set", "factors", multiple=True, metavar="NAME=VALUE", help="A mechanism's factor or a workload's parameter."
    ),
    IV_OPTION,
    click.option("--clients", type=int, help="Connections. [default: the workload's]"),
    click.option("--rows", type=int, help="Rows of the main table."),
    click.option("--precision", metavar="SHARE", help="Stop once the interval is ± this: 1%."),
    click.option("--sessions", type=int, help="Fresh server pairs; the interval's unit. [default: 8]"),
    click.option("--quick", "quick_mode", is_flag=True, help="One session: faster, for this server pair only."),
    click.option(
        "--regime",
        type=click.Choice(["capacity", "one-core", "latency"]),
        help="Where processes run and how busy they are.",
    ),
    click.option("--pooled/--per-request", default=None, help="Keep connections, or open one for each operation."),
    click.option(
        "--rate",
        type=float,
        help="Open loop: operations a second. [default: 60 % of the plain arm's capacity, at most 75 % of the encrypted one's]",
    ),
    click.option("--no-latency", is_flag=True, help="Spend all time on capacity."),
    click.option(
        "--url",
        "urls",
        multiple=True,
        help="A server of yours: mysql://user@host:port/db; of the web a pair: http://… and https://…. The password is never "
        "in it: PGPASSWORD, MYSQL_PWD, ISC_PASSWORD, ~/.pgpass, ~/.my.cnf, or it is asked for. `ciphercost list grants` prints the rights that the user needs.",
    ),
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM."),
    click.option("--bindir", metavar="DIR", help="Binaries of the server to start."),
    click.option("--sql", metavar="FILE", help="Your own statements: pgbench's script language."),
    click.option(
        "--client",
        metavar="CLIENT",
        help="Who makes the load: rust, jdbc (the newest driver), jdbc:9.7.0. [default: rust]",
    ),
    click.option(
        "--driver", metavar="FILE.jar", help="A JDBC driver of yours; what it needs behind it, separated by ':'."
    ),
    click.option(
        "--setting",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Of the server that is started, in both arms.",
    ),
    click.option("--csv", metavar="FILE", help="Your own rows: mixed-crud on a table made from this file."),
    click.option(
        "--cpu-crypto",
        type=click.Choice(["on", "off"]),
        help="off: both arms without the CPU's AES instructions. [default: on]",
    ),
    click.option("--bandwidth", metavar="RATE", help="Both arms over a link this fast each way: 100mbit. Needs root."),
    click.option("--delay", metavar="DURATION", help="Both arms with this much added to each round trip: 10ms."),
    click.option("--mtu", type=int, help="Both arms over a link of this MTU: 1500. Needs root."),
    click.option(
        "--idle",
        type=click.Choice(["poll", "halt"]),
        help="What idle cores do while load is made, in both arms. [default: poll where possible, which needs root]",
    ),
    click.option(
        "--cache",
        type=click.Choice(["warm", "cold", "small"]),
        help="At rest, both arms: the server's own cache as it comes; emptied before each session; a tenth of the data. [default: warm]",
    ),
)
