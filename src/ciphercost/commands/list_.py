"""`ciphercost list`."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.commands._say import say


@click.command("list")
@click.argument(
    "what",
    required=False,
    metavar="[engines|mechanisms|workloads|drivers|studies|runs|grants]",
    shell_complete=_completers.lists,
)
@click.argument("only", required=False, metavar="[NAME]", shell_complete=_completers.listed)
def list_(what: str | None, only: str | None) -> None:
    """List engines, mechanisms, workloads, drivers, studies or runs.

    With NAME, only that one. `ciphercost list grants` prints the rights that a user needs on the server of --url.
    """
    from ciphercost.report import inventory

    say(inventory.show(what, only))
