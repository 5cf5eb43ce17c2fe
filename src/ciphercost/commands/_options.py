"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._script_options import SCRIPTS, SENDING
from ciphercost.model.errors import UsageError


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine option decorators into one, in the order of the help."""

    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


WHAT, LOAD, COMMANDS = "What to measure", "Load", "Your own command as the load"
YOURS, CONDITIONS, RESULT = "Your own server", "Conditions, in both arms", "Output"
SECTIONS = (WHAT, LOAD, COMMANDS, YOURS, CONDITIONS, RESULT)
"""Groups of the help of commands with many options, in this order."""
Decorator = Callable[[Any], Any]


def section(title: str, *decorators: Decorator) -> tuple[Decorator, ...]:
    """The same options, listed below this title in the help of a `Sectioned` command."""

    def titled(decorator: Decorator) -> Decorator:
        def apply(function: Any) -> Any:
            decorated = decorator(function)
            decorated.__click_params__[-1].section = title
            return decorated

        return apply

    return tuple(map(titled, decorators))


class Sectioned(click.Command):
    """A command whose help lists its options by section. What has none is listed last, below Output."""

    def sections(self, ctx: click.Context) -> dict[str, list[click.Parameter]]:
        """The options by title, each in the order of the command."""
        listed: dict[str, list[click.Parameter]] = {title: [] for title in SECTIONS}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option):
                listed[getattr(param, "section", RESULT)].append(param)
        return {title: params for title, params in listed.items() if params}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, params in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl([record for param in params if (record := param.get_help_record(ctx))])


def time_option(help_: str) -> Callable[[Any], Any]:
    """`--time`, with the help of the command: its meaning and its default differ."""
    return click.option("--time", "time_", metavar="DURATION", help=help_)


CELL_TIME = time_option(
    "Load time of each cell, e.g. 90s or 3m. [default: 90s; 240s if a cell encrypts at rest] [with an objective: 240s; 360s at rest]"
)


def seed(text: str | int) -> int:
    """The value of --seed. A function, because the help would print the whole range of click.IntRange. Raises UsageError."""
    if not re.fullmatch(r"[0-9]{1,19}", str(text)) or int(text) >= 2**63:
        raise UsageError(f"--seed {text}: must be a whole number from 0 to {2**63 - 1}")
    return int(text)


SEED = click.option(
    "--seed",
    type=seed,
    metavar="N",
    default=0,
    help="Seed of every random choice; 0 draws one and prints it. [default: 0]",
)
DIRECTORY = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the run; must be new or empty. [default: ./runs/<id>]",
)
JSON = click.option(
    "--json",
    "json_",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the result as JSON; - prints only the JSON.",
)
NO_PROGRESS = click.option("--no-progress", is_flag=True, help="Print no progress.")
PRICE = click.option(
    "--price",
    metavar="PRICE",
    help="What one vCPU costs, e.g. 0.04/vcpu-hour or '$29/vcpu-month': also prints what encryption's CPU time costs.",
)
OUTPUT = (SEED, DIRECTORY, JSON, NO_PROGRESS)


IV_OPTION = click.option(
    "--iv",
    type=click.Choice(["random", "fixed"]),
    help="Column encryption: a random IV for each value, or one fixed IV for all values, as published studies use. "
    "Short for --set iv=…. [default: random]",
)
CA_OPTION = click.option(
    "--ca",
    metavar="FILE",
    help="PEM file of the certificate authority that signed your server's certificate; it may also hold revocation lists.",
    shell_complete=_completers.files,
)
CERT_OPTION = click.option(
    "--cert",
    metavar="FILE",
    help="Your own certificate, for a server that asks for one: a PEM file with the chain above it, or a PKCS#12 file with the key.",
    shell_complete=_completers.files,
)
KEY_OPTION = click.option(
    "--key",
    metavar="FILE",
    help="Private key of --cert, unless that file holds it. The passphrase of an encrypted one comes from CIPHERCOST_KEY_PASSPHRASE, or "
    "ciphercost asks for it.",
    shell_complete=_completers.files,
)
SERVER_NAME_OPTION = click.option(
    "--server-name",
    metavar="NAME",
    help="Name that your server's certificate has, and that is sent to it (SNI), if the URL names another address.",
)
EVERY = "ciphercost.password-every"


def _keep_every(context: click.Context, _: click.Parameter, every: str | None) -> None:
    """Keep it for `_use_password_command`."""
    context.meta[EVERY] = every


def _use_password_command(context: click.Context, _: click.Parameter, command: str | None) -> None:
    """Let every login to a server of the user's take its password from this command."""
    every = context.meta.get(EVERY)
    if context.resilient_parsing or (command is None and not every):  # while the shell completes words
        return
    from ciphercost.load import password_command, units

    if every and not command:
        raise UsageError(f"{password_command.EVERY} {every} has no effect without {password_command.OPTION}; remove it")
    if command is not None:
        if not command.strip():
            raise UsageError(f"{password_command.OPTION} is empty; give the command that prints the password")
        password_command.use(command, units.duration(every, password_command.EVERY) if every else 0.0)


PASSWORD_OPTIONS = (
    click.option(
        "--password-every",
        metavar="DURATION",
        is_eager=True,
        callback=_keep_every,
        help="Run --password-command again for connections that open after this time, e.g. 10m. [default: when a login is refused]",
        expose_value=False,
    ),
    click.option(
        "--password-command",
        metavar="COMMAND",
        help="Command that prints your server's password on one line, e.g. for tokens that expire. It runs again when a login is refused. "
        "No record holds it.",
        callback=_use_password_command,
        expose_value=False,
    ),
)
OWN_TLS_OPTIONS = (CA_OPTION, CERT_OPTION, KEY_OPTION, SERVER_NAME_OPTION)
BINDIR_OPTION = click.option(
    "--bindir",
    metavar="DIR",
    help="Directory with the binaries of the server that ciphercost starts.",
    shell_complete=_completers.directories,
)
DRIVER_OPTION = click.option(
    "--driver",
    metavar="FILE.jar",
    help="JDBC driver of your application; append the jars it depends on, separated by ':'.",
    shell_complete=_completers.files,
)


OBJECTIVE = click.option(
    "--objective",
    metavar="QUANTILE=LATENCY",
    help="Also find the highest rate that keeps this latency in each arm, e.g. p99=5ms (p50, p90, p99 or p99.9), and what encryption costs "
    "in rate. Takes the place of the latency phase.",
)


CLUSTER = (
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Let the nodes of a Ray cluster make the load, or measure (--spread): auto (the cluster that this machine belongs to), "
        "HOST:PORT or ray://HOST:PORT. Needs ciphercost[ray].",
    ),
    click.option(
        "--agents",
        type=int,
        metavar="N",
        help="Nodes of the cluster that make the load; they share --clients. [default: all, but at most --clients]",
    ),
    click.option(
        "--min-agents",
        type=int,
        metavar="N",
        help="End a cell when fewer agents are left. [default: all but one]",
    ),
    click.option(
        "--placement",
        type=click.Choice(["spread", "near-server"]),
        help="spread: one agent on each node. near-server: all agents on the server's node. [default: spread]",
    ),
)
"""Load from many machines."""
OVER_MACHINES = (
    click.option(
        "--spread",
        is_flag=True,
        help="Measure the cells on each machine of --cluster, and estimate the cost over machines.",
    ),
    click.option(
        "--machines",
        type=int,
        metavar="N",
        default=0,
        help="With --spread: machines that measure each cell. [default: all]",
    ),
)
"""Costs over many machines."""


HEADER_OPTION = click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE' | @FILE",
    help="Web server: a header of every request, in both arms, e.g. 'Accept-Encoding: gzip'. @FILE: a file with one a line, so that a Cookie "
    "or a password stays out of the process list. No record holds a value. Repeatable.",
    shell_complete=_completers.files,
)


MEASURE = (
    *section(
        WHAT,
        click.option(
            "--workload",
            metavar="NAME|FILE.toml",
            help="What one operation is: a name of `ciphercost list workloads`, or a file that `ciphercost workload` made from your logs. "
            "[default: the engine's, e.g. point-select]",
            shell_complete=_completers.workloads,
        ),
        *SCRIPTS,
        click.option(
            "--csv",
            metavar="FILE",
            help="Your own rows: runs mixed-crud on a table made from this file. Its first line names the columns.",
            shell_complete=_completers.files,
        ),
        click.option(
            "--secret",
            metavar="COLUMN,…",
            help="Columns to encrypt: of --csv, or TABLE.COLUMN,… of --dump. Without --workload: a cell for each operation, search among them.",
        ),
        click.option(
            "--no-header",
            is_flag=True,
            help="The first line of --csv is a row; the columns are named column1, column2 …",
        ),
        click.option(
            "--dump",
            metavar="FILE",
            help="Your own database, for --sql or --secret: a dump of pg_dump (any form), mysqldump, mariadb-dump or gbak, or a SQLite file.",
            shell_complete=_completers.files,
        ),
        click.option(
            "--set",
            "factors",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set an option of the mechanism (version=1.2) or of the workload (size=64KB). Repeatable.",
            shell_complete=_completers.settings,
        ),
        click.option(
            "--versus",
            multiple=True,
            metavar="NAME=VALUE",
            help="Compare with the same encryption in another setting (version=1.2), instead of with none: both arms are encrypted. Repeatable.",
            shell_complete=_completers.settings,
        ),
        IV_OPTION,
    ),
    *section(
        LOAD,
        click.option("--clients", type=int, metavar="N", help="Number of connections. [default: the workload's]"),
        click.option("--rows", type=int, metavar="N", help="Rows of the main table. [default: the workload's]"),
        click.option(
            "--regime",
            type=click.Choice(["capacity", "one-core", "latency"]),
            help="capacity: keep the server's cores busy. one-core: client and server share one core, which shows CPU cost "
            "most precisely. latency: send operations at a fixed rate. [default: capacity]",
        ),
        click.option(
            "--pooled/--per-request",
            default=None,
            help="Keep connections open, or open one for each operation. [default: the workload's choice]",
        ),
        click.option(
            "--rate",
            type=float,
            metavar="RATE",
            help="Operations per second of the latency phase. "
            "[default: 60 % of the plain arm's capacity, at most 75 % of the encrypted arm's]",
        ),
        *SENDING,
        click.option("--no-latency", is_flag=True, help="Skip the latency phase; spend all time on capacity."),
        click.option(
            "--precision", metavar="PERCENT", help="Stop a cell once its 95 % interval is within ± this, e.g. 1%."
        ),
        click.option(
            "--sessions",
            type=int,
            metavar="N",
            help="Sessions of each cell, which are fresh starts of the server; the interval covers their differences. [default: 8]",
        ),
        click.option(
            "--quick",
            "quick_mode",
            is_flag=True,
            help="One session only: faster, but the interval holds for this one start of the server.",
        ),
        click.option(
            "--client",
            metavar="CLIENT",
            help="What makes the load: rust, jdbc or jdbc:9.7.0, or a driver of `list drivers`: psycopg, psycopg@3.2. [default: rust]",
            shell_complete=_completers.clients,
        ),
        DRIVER_OPTION,
        *CLUSTER,
    ),
    *section(
        YOURS,
        click.option(
            "--url",
            "urls",
            multiple=True,
            metavar="URL",
            help="Measure a server you already run: mysql://user@host:port/db. For a web server give it twice: http://… "
            "and https://…; so for Valkey, Redis and memcached: redis://… and rediss://…. socket=FILE in MySQL's: the plain arm by its Unix "
            "socket. Leave the password out: ciphercost reads "
            "PGPASSWORD, MYSQL_PWD, ISC_PASSWORD, REDISCLI_AUTH, MEMCACHED_PASSWORD, ~/.pgpass or ~/.my.cnf, or asks for it. `ciphercost list grants` "
            "prints the rights that the user needs.",
        ),
        HEADER_OPTION,
        click.option(
            "--max-rate",
            type=float,
            metavar="RATE",
            help="Never more than this many operations per second, also while warming up. Uses --regime latency, so it measures "
            "latency and CPU, not capacity.",
        ),
        click.option(
            "--max-connections",
            type=int,
            metavar="N",
            help="Refuse to start if more connections to the server are needed; both arms' stay open.",
        ),
        click.option(
            "--max-errors",
            metavar="PERCENT",
            help="Stop the load if more than this share of a slice's operations fail. [default with --url: 10%]",
        ),
        click.option(
            "--max-latency",
            metavar="DURATION",
            help="Stop the load if the 99th percentile of a slice is above this, e.g. 50ms.",
        ),
        *OWN_TLS_OPTIONS,
        *PASSWORD_OPTIONS,
    ),
    *section(
        CONDITIONS,
        BINDIR_OPTION,
        click.option(
            "--setting",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Setting of the server that ciphercost starts, in both arms, e.g. shared_buffers=1GB. Repeatable.",
        ),
        click.option(
            "--cpu-crypto",
            type=click.Choice(["on", "off"]),
            help="off hides the CPU's AES instructions from both arms. [default: on]",
        ),
        click.option(
            "--bandwidth",
            metavar="RATE",
            help="Bandwidth of the link in each direction, in both arms, e.g. 100mbit. Needs root.",
        ),
        click.option("--delay", metavar="DURATION", help="Delay added to each round trip, in both arms, e.g. 10ms."),
        click.option("--mtu", type=int, metavar="BYTES", help="MTU of the link, in both arms, e.g. 1500. Needs root."),
        click.option(
            "--loss",
            metavar="SHARE",
            help="Share of packets that the link loses in each direction, in both arms, e.g. 1%. With it, --delay delays "
            "packets, so a lost one costs round trips. Needs root.",
        ),
        click.option(
            "--listen",
            metavar="ADDRESS",
            help="Address of this machine on which the server that ciphercost starts listens, so that other machines can load "
            "it; only for a network that you trust. [default: 127.0.0.1]",
        ),
        click.option(
            "--idle",
            type=click.Choice(["poll", "halt"]),
            help="What idle cores do under load, in both arms. poll needs root. [default: poll if possible]",
        ),
        click.option(
            "--cache",
            type=click.Choice(["warm", "cold", "small"]),
            help="Encryption at rest, both arms. warm: the server's default cache. cold: all caches emptied before each "
            "session. small: a cache of a tenth of the data. [default: warm]",
        ),
    ),
)
"""What `run` and `calibrate` share."""
