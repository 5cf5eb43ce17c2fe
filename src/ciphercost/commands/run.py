"""`ciphercost run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import run_plan
from ciphercost.commands._options import (
    CELL_TIME,
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
from ciphercost.commands._say import say_data
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
            help="Send both arms through haproxy, envoy, two-envoys, pgbouncer or stunnel. One experiment: what the hop costs alone, and what "
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
    *section(LOAD, OBJECTIVE, CELL_TIME, *OVER_MACHINES),
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

    from ciphercost.load import password_command
    from ciphercost.load.jdbc.options import settled
    from ciphercost.plan import matrix, toml

    if len(targets) == 1 and targets[0].endswith(".toml"):
        refuse_beside_a_file(targets[0])
        made = toml.plan(Path(targets[0]), where(given))
    else:
        several = [each for each in ("split_", "matrix", "hop") if given[each]]
        if len(several) > 1:
            first, second = (f"--{each.rstrip('_')}" for each in several[:2])
            raise UsageError(f"{first} and {second} are two experiments; run one after the other")
        if given["split_"] and (wrong := [each for each in ("workload", "sql", "csv", "rows") if given[each]]):
            raise UsageError(f"--split has its own workloads; remove --{wrong[0]}")
        if given["versus"] and (other := next((each for each in ("split_", "hop") if given[each]), "")):
            raise UsageError(
                f"--{other.rstrip('_')} tells what encryption adds to none, and --versus compares two encrypted settings; remove one of them"
            )
        cells = [cell_of(target, given) for target in targets]
        grouped = [expanded(cell, number, given) for number, cell in enumerate(cells)]
        made = plan_of(settled(matrix.with_controls([each for cells in grouped for each in cells])), given)
    if print_spec:
        if any(cell.headers for cell in made.spec.cells):
            raise UsageError(
                "--print-spec: a spec holds no header's value; put the headers into a file, one a line, and name it with --header @FILE"
            )
        if password_command.found():
            raise UsageError(
                f"--print-spec: a spec holds no {password_command.OPTION}; remove it here, and give it again with the file"
            )
        say_data(toml.dump(made.spec), nl=False)
        return
    if made.spec.spread:
        from ciphercost.commands import _machines

        _machines.start(made, given)
    run_plan(made, given)


def expanded(cell: Any, number: int, given: dict[str, Any]) -> list[Any]:
    """The cells that --split, --hop or --matrix make of one."""
    from ciphercost.plan import matrix

    if given["split_"]:
        return matrix.split(cell, number)
    if given["hop"]:
        return matrix.through(cell, given["hop"], number)
    return matrix.matrix(cell, given["matrix"], number)
