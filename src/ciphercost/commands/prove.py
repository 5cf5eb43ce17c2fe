"""`ciphercost prove`."""

from __future__ import annotations

from typing import Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE
from ciphercost.commands._options import (
    BINDIR_OPTION,
    DRIVER_OPTION,
    HEADER_OPTION,
    IV_OPTION,
    OWN_TLS_OPTIONS,
    options,
)
from ciphercost.commands._say import say
from ciphercost.commands._spec import cell_of
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import OwnTls


@click.command()
@click.argument(
    "targets",
    nargs=-1,
    required=True,
    metavar="ENGINE:MECHANISM | URL | http://… https://… | jdbc:…",
    shell_complete=_completers.proof_targets,
)
@options(
    click.option(
        "--set",
        "factors",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set an option of the mechanism, e.g. version=1.2. Repeatable.",
        shell_complete=_completers.settings,
    ),
    IV_OPTION,
    *OWN_TLS_OPTIONS,
    HEADER_OPTION,
    BINDIR_OPTION,
    click.option(
        "--client",
        metavar="CLIENT",
        help="What connects: rust, jdbc or jdbc:9.7.0. [default: rust]",
        shell_complete=_completers.words("rust", "jdbc"),
    ),
    DRIVER_OPTION,
)
def prove(
    targets: tuple[str, ...],
    factors: tuple[str, ...],
    iv: str | None,
    ca: str | None,
    cert: str | None,
    key: str | None,
    server_name: str | None,
    headers: tuple[str, ...],
    bindir: str | None,
    client: str | None,
    driver: str | None,
) -> None:
    """Check whether a target is really encrypted, without load.

    The witnesses check independently: the server, the client, and a packet capture or disk scan. The exit
    status is 0 only if every witness confirms the encryption. For jdbc:…, the connection string of your application, it also
    checks whether the driver verifies the server. A web site whose http and https addresses differ by more than the usual ports
    has both checked if you give both, and so has a key-value store with its two ports.
    """
    from ciphercost.load.connection_string.keywords import as_url
    from ciphercost.plan.targets import target_of_url, two_addresses
    from ciphercost.runs import prove_url

    targets = tuple(map(as_url, targets))
    target, *more = targets
    if more and not all(map(two_addresses, targets)):
        raise UsageError(
            f"{' '.join(targets)}: prove checks one target; only a web site and a key-value store have two addresses, "
            "http://… https://… and redis://… rediss://…"
        )
    if target.startswith("jdbc:"):
        from ciphercost.runs import prove_jdbc_url

        if given := [
            name
            for name, value in (
                ("--set", factors),
                ("--iv", iv),
                ("--ca", ca),
                ("--server-name", server_name),
                ("--header", headers),
                ("--bindir", bindir),
            )
            if value
        ]:
            raise UsageError(f"{given[0]} has no effect with a JDBC URL; remove it")
        proven, text = prove_jdbc_url.examine(
            target, driver or "", client or "", OwnTls(cert=cert or "", key=key or "")
        )
        say(text)
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
            "loss",
            "cache",
            "idle",
        )
    )
    blank["urls"] = targets if "://" in target else ()
    url = target if "://" in target else None
    name = target_of_url(target) if url else target
    cell = cell_of(
        name,
        {
            **blank,
            "headers": headers,
            "factors": factors,
            "iv": iv,
            "ca": ca,
            "cert": cert,
            "key": key,
            "server_name": server_name,
            "bindir": bindir,
            "client": client,
            "driver": driver,
        },
    )
    proven, text = prove_url.examine(cell)
    say(text)
    raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)
