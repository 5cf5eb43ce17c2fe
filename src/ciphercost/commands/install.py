"""install: `ciphercost install`."""

from __future__ import annotations

import click


@click.command()
@click.argument("target", metavar="ENGINE[@VERSION]")
@click.option(
    "--source", type=click.Choice(["debian", "apt", "maven"]), help="Where from. [default: what this machine can use]"
)
def install(target: str, source: str | None) -> None:
    """Fetch a server into a private root.

    Nothing is installed on the host.
    """
    from ciphercost import engines

    engine, _, version = target.partition("@")
    found = engines.get(engine).install(version, source or "")
    click.echo(f"{found.engine} {found.version} from {found.source}: {found.location}")
