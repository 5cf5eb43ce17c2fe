"""`ciphercost clean`."""

from __future__ import annotations

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE
from ciphercost.commands._options import OWN_TLS_OPTIONS, PASSWORD_OPTIONS, options
from ciphercost.commands._say import say
from ciphercost.model.errors import UsageError


@click.command()
@options(
    click.option(
        "--url", metavar="URL", help="Clean a server you already run: drop the schemas that killed runs left there."
    ),
    click.option(
        "--engine",
        metavar="ENGINE",
        help="Engine of that server, if its URL does not show it.",
        shell_complete=_completers.engines,
    ),
    *OWN_TLS_OPTIONS,
    *PASSWORD_OPTIONS,
    click.option(
        "--schema",
        "wanted",
        multiple=True,
        metavar="NAME",
        help="Also drop this schema, although this machine can't check that its run has ended. Repeatable.",
    ),
)
def clean(
    url: str | None,
    engine: str | None,
    ca: str | None,
    cert: str | None,
    key: str | None,
    server_name: str | None,
    wanted: tuple[str, ...],
) -> None:
    """Remove what killed runs left, and copies of dumps.

    Removes only what carries ciphercost's mark, and nothing that belongs to a run that is still alive. Copies that --dump keeps for
    later runs are removed too.
    """
    from ciphercost.host import kept_dumps, leftovers
    from ciphercost.load.connection_string.keywords import as_url
    from ciphercost.model.own_tls import OwnTls
    from ciphercost.provision import leftover_schemas

    own_tls = OwnTls(ca or "", cert or "", key or "", server_name or "")
    if url is None and (engine or own_tls.options or wanted):
        raise UsageError(
            "--engine, --ca, --cert, --key, --server-name and --schema describe a server: give its --url too"
        )
    text, worked = leftover_schemas.sweep(as_url(url), engine or "", own_tls, wanted) if url else leftovers.sweep()
    say(text)
    if url is None:
        lines, gone = kept_dumps.sweep()
        worked = worked and gone
        for line in lines:
            say(line)
    raise click.exceptions.Exit(0 if worked else COST_OF_FAILURE)
