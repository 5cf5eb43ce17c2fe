"""`ciphercost run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._command_options import COMMAND
from ciphercost.commands._connection_options import CONNECTIONS
from ciphercost.commands._measure import run_plan
from ciphercost.commands._options import (
    CELL_TIME,
    COMMANDS,
    LOAD,
    MEASURE,
    OBJECTIVE,
    OUTPUT,
    OVER_MACHINES,
    PRICE,
    WHAT,
    Sectioned,
    options,
    section,
)
from ciphercost.commands._say import Loading, say_data
from ciphercost.commands._spec import cell_of, plan_of, refuse_beside_a_file, where
from ciphercost.model.errors import UsageError

EXAMPLES = """\b
Examples:
  # What does TLS add to a statement?
  ciphercost run postgresql:tls
  # … to a new connection, in one minute?
  ciphercost run mysql:tls --workload connect --quick --time 60s
  # … with another cipher, in one experiment?
  ciphercost run nginx:tls --workload file --matrix cipher=aes256-gcm,chacha20
  # What does encryption at rest add where the data does not fit into memory?
  ciphercost run mariadb:mariadb-tde --cache small -o at-rest
  # … on a server of your own, with at most 200 operations per second?
  ciphercost run postgresql:tls --url postgresql://me@db/shop --max-rate 200
"""


@click.command(cls=Sectioned, epilog=EXAMPLES)
@click.argument(
    "targets",
    nargs=-1,
    required=True,
    metavar="ENGINE[@VERSION]:MECHANISM… | FILE.toml",
    shell_complete=_completers.targets,
)
@options(
    *MEASURE,
    *section(
        WHAT,
        click.option(
            "--matrix",
            multiple=True,
            metavar="NAME=A,B…",
            help="One experiment with a cell for each value. The first values are the reference; each other cell changes one "
            "of them. Repeatable.",
            shell_complete=_completers.dimensions,
        ),
        click.option(
            "--split",
            "split_",
            is_flag=True,
            help="Split the cost into handshake, request and byte, with workloads of its own.",
        ),
        click.option(
            "--hop",
            metavar="NAME",
            help="Send both arms through haproxy, envoy, two-envoys, pgbouncer, odyssey or stunnel. One experiment: what the hop costs alone, and what "
            "TLS costs that ends at the hop or at the server.",
            shell_complete=_completers.hops,
        ),
        click.option(
            "--profile",
            is_flag=True,
            help="Also sample both arms' CPU time with Linux perf, in slices of its own, and show which functions the added CPU time goes to. "
            "Takes a quarter longer.",
        ),
    ),
    *section(LOAD, OBJECTIVE, CELL_TIME, *CONNECTIONS, *OVER_MACHINES),
    *section(COMMANDS, *COMMAND),
    *OUTPUT,
    PRICE,
    click.option("--print-spec", is_flag=True, help="Print the run as a TOML file and exit."),
)
def run(targets: tuple[str, ...], print_spec: bool, **given: Any) -> None:
    """Measure what a mechanism costs an engine.

    Each target is one cell, e.g. postgresql:tls. ciphercost alternates load between its two arms, plain and encrypted, in
    eight sessions. Each session starts everything afresh, so the interval covers restarts. FILE.toml is a spec with many
    cells, as --print-spec writes it.
    """

    from ciphercost.load import command_secrets, password_command
    from ciphercost.load.clients import settled
    from ciphercost.plan import matrix, toml
    from ciphercost.provision import dump_tables
    from ciphercost.runs import command_readers

    loading = Loading()
    click.get_current_context().with_resource(dump_tables.available(loading.say, loading.show))

    if len(targets) == 1 and targets[0].endswith(".toml"):
        refuse_beside_a_file(targets[0])
        plan = toml.plan(Path(targets[0]), where(given))
    else:
        several = [option for option in ("split_", "matrix", "hop") if given[option]]
        if len(several) > 1:
            first, second = (f"--{option.rstrip('_')}" for option in several[:2])
            raise UsageError(f"{first} and {second} are two experiments; run one after the other")
        if given["split_"] and (
            wrong := [option for option in ("workload", "sql", "builtin", "csv", "dump", "rows") if given[option]]
        ):
            raise UsageError(f"--split has its own workloads; remove --{wrong[0]}")
        if given["versus"] and (other := next((option for option in ("split_", "hop") if given[option]), "")):
            raise UsageError(
                f"--{other.rstrip('_')} tells what encryption adds to none, and --versus compares two encrypted settings; remove one of them"
            )
        cells = [cell_of(target, given) for target in targets]
        if any(cell.command for cell in cells) and (
            other := next((name for name in ("split_", "hop") if given[name]), "")
        ):
            raise UsageError(
                f"--{other.rstrip('_')}: ciphercost chooses its load and its server, and a command brings its own; remove --{other.rstrip('_')}"
            )
        grouped = [expanded(cell, number, given) for number, cell in enumerate(cells)]
        plan = plan_of(settled(matrix.with_controls([cell for cells in grouped for cell in cells])), given)
    command_readers.check(plan.spec.cells)
    if print_spec:
        if any(cell.headers for cell in plan.spec.cells):
            raise UsageError(
                "--print-spec: a spec holds no header's value; put the headers into a file, one a line, and name it with --header @FILE"
            )
        if command_secrets.recorded_spec(plan.spec) != plan.spec:
            raise UsageError(
                "--print-spec: a command holds a secret, and a spec file would keep it; put the secret into the environment"
            )
        if password_command.found():
            raise UsageError(
                f"--print-spec: a spec holds no {password_command.OPTION}; remove it here, and give it again with the file"
            )
        say_data(toml.dump(plan.spec), nl=False)
        return
    if plan.spec.spread:
        from ciphercost.commands import _machines

        _machines.start(plan, given)
    run_plan(plan, given)


def expanded(cell: Any, number: int, given: dict[str, Any]) -> list[Any]:
    """The cells that --split, --hop or --matrix make of one."""
    from ciphercost.plan import matrix

    if given["split_"]:
        return matrix.split(cell, number)
    if given["hop"]:
        return matrix.through(cell, given["hop"], number)
    if cell.secret and (cell.csv or cell.dump_rows) and not given["workload"] and not given["matrix"]:
        return matrix.operations(cell, number)
    return matrix.matrix(cell, given["matrix"], number)
