"""list: `ciphercost list`."""

from __future__ import annotations

import click


@click.command("list")
@click.argument("what", required=False, metavar="[engines|mechanisms|workloads|studies|runs|grants]")
def list_(what: str | None) -> None:
    """What there is: engines, mechanisms, workloads, studies, runs; and the grants that --url needs."""
    from ciphercost.report import inventory

    click.echo(inventory.show(what))
