"""clean: `ciphercost clean`."""

from __future__ import annotations

import click

from ciphercost.commands._measure import COST_OF_FAILURE
from ciphercost.commands._options import options
from ciphercost.model.errors import UsageError


@click.command()
@options(
    click.option("--url", help="Not this machine but a server of yours: schemas that killed runs left there."),
    click.option("--engine", help="Of that server, where its URL does not tell."),
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM: asked by TLS."),
    click.option(
        "--schema", "wanted", multiple=True, metavar="NAME", help="This one, though its run can't be seen from here."
    ),
)
def clean(url: str | None, engine: str | None, ca: str | None, wanted: tuple[str, ...]) -> None:
    """Remove what a killed run has left.

    Nothing of a run that lives is touched, and nothing that does not bear our mark.
    """
    from ciphercost.host import leftovers
    from ciphercost.provision import leftover_schemas

    if url is None and (engine or ca or wanted):
        raise UsageError("--engine, --ca and --schema say more of a server: give its --url too")
    text, worked = leftover_schemas.sweep(url, engine or "", ca or "", wanted) if url else leftovers.sweep()
    click.echo(text)
    raise click.exceptions.Exit(0 if worked else COST_OF_FAILURE)
