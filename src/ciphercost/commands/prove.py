"""prove: `ciphercost prove`."""

from __future__ import annotations

from typing import Any

import click

from ciphercost.commands._measure import COST_OF_FAILURE
from ciphercost.commands._options import IV_OPTION, options
from ciphercost.commands._spec import cell_of
from ciphercost.model.errors import UsageError


@click.command()
@click.argument("target", metavar="ENGINE:MECHANISM | URL | jdbc:…")
@options(
    click.option("--set", "factors", multiple=True, metavar="NAME=VALUE", help="A factor of the mechanism."),
    IV_OPTION,
    click.option("--ca", metavar="FILE", help="Certificate authority of that server, PEM."),
    click.option("--bindir", metavar="DIR", help="Binaries of the server to start."),
    click.option("--client", metavar="CLIENT", help="Who asks: rust, jdbc, jdbc:9.7.0. [default: rust]"),
    click.option(
        "--driver",
        metavar="FILE.jar",
        help="The JDBC driver of your application; what it needs behind it, separated by ':'.",
    ),
)
def prove(
    target: str,
    factors: tuple[str, ...],
    iv: str | None,
    ca: str | None,
    bindir: str | None,
    client: str | None,
    driver: str | None,
) -> None:
    """Is it encrypted? No load, every witness.

    Exit status 0 only if every witness says so. jdbc:… is an application's own connection string: is it encrypted, is the server
    verified, and with what.
    """
    from ciphercost.plan.targets import target_of_url
    from ciphercost.runs import prove

    if target.startswith("jdbc:"):
        from ciphercost.runs import prove_jdbc_url

        if given := [
            name for name, value in (("--set", factors), ("--iv", iv), ("--ca", ca), ("--bindir", bindir)) if value
        ]:
            raise UsageError(f"{given[0]} has no effect on a JDBC URL, which says everything itself: leave it out")
        proven, text = prove_jdbc_url.examine(target, driver or "", client or "")
        click.echo(text)
        raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)

    blank: dict[str, Any] = dict.fromkeys(
        (
            "workload",
            "clients",
            "rows",
            "regime",
            "pooled",
            "rate",
            "sql",
            "csv",
            "cpu_crypto",
            "bandwidth",
            "delay",
            "mtu",
            "cache",
            "idle",
        )
    )
    blank["urls"] = (target,) if "://" in target else ()
    url = target if "://" in target else None
    name = target_of_url(target) if url else target
    cell = cell_of(
        name, {**blank, "factors": factors, "iv": iv, "ca": ca, "bindir": bindir, "client": client, "driver": driver}
    )
    proven, text = prove.examine(cell)
    click.echo(text)
    raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)
