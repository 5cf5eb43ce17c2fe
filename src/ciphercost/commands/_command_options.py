"""Options of a command as the load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.model.command_load import CommandLoad

FIELDS = (
    "plain",
    "encrypted",
    "reads",
    "operations",
    "before",
    "after",
    "canary",
    "server_pid",
    "server_unit",
    "server_cgroup",
    "unproven",
)
COMMAND = (
    click.option(
        "--plain",
        metavar="CMD",
        help="Command that makes the plain arm's load in one slice; {seconds}, {seed}, {clients}, {host}, {port} and {ca} are filled in. It runs "
        "without a shell.",
    ),
    click.option("--encrypted", metavar="CMD", help="The same load over TLS."),
    click.option(
        "--reads",
        metavar="TOOL",
        help="Read the command's output as this tool's, e.g. pgbench, or as ciphercost's own JSON line (own). [default: found from the content]",
    ),
    click.option(
        "--operations",
        type=click.IntRange(min=1),
        metavar="N",
        help="Operations of one execution, for a command that prints no figures: its duration is then the figure.",
    ),
    click.option("--before", metavar="CMD", help="Command that runs before each session, e.g. to restart the server."),
    click.option("--after", metavar="CMD", help="Command that runs after each session, also after a failed one."),
    click.option(
        "--canary",
        metavar="TEXT",
        help="A text that the load sends or receives: it must be readable on the wire in the plain arm and absent in the encrypted one.",
    ),
    click.option(
        "--server-pid",
        metavar="PID | FILE",
        help="The server's process, or a file with its number, for its CPU time. [default: the process that listens on the port]",
    ),
    click.option("--server-unit", metavar="UNIT", help="The server's systemd unit, for its CPU time."),
    click.option(
        "--server-cgroup", metavar="DIR", help="The server's control group, e.g. of a container, for its CPU time."
    ),
    click.option(
        "--unproven",
        is_flag=True,
        help="Measure although ciphercost can't see what the command sends; the result is labelled unproven.",
    ),
)
"""What `run` has for engine `command`."""


def load_of(given: dict[str, Any]) -> CommandLoad | None:
    """The commands that were given; None: none was. Raises UsageError."""
    from ciphercost.model.command_load import CommandLoad  # loads what --help does not need

    named = {field: value for field in FIELDS if (value := given.get(field))}
    if not named:
        return None
    if "plain" not in named:
        option = f"--{next(iter(named)).replace('_', '-')}"
        raise UsageError(f"{option}: needs --plain too, the command that makes the plain arm's load (engine command)")
    return CommandLoad(**named)
