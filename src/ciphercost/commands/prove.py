"""`ciphercost prove`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciphercost.commands import _completers
from ciphercost.commands._measure import COST_OF_FAILURE, write_or_print
from ciphercost.commands._options import (
    BINDIR_OPTION,
    DRIVER_OPTION,
    HEADER_OPTION,
    IV_OPTION,
    OWN_TLS_OPTIONS,
    PASSWORD_OPTIONS,
    options,
)
from ciphercost.commands._say import say
from ciphercost.commands._spec import cell_of
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.model.proof_row import ProofRow

BLANK = (
    *("workload", "clients", "rows", "regime", "pooled", "rate", "sql", "csv", "cpu_crypto", "bandwidth", "delay", "mtu", "loss"),
    *("cache", "idle"),
)  # fmt: skip
"""What other commands take of a cell."""


@click.command()
@click.argument(
    "targets",
    nargs=-1,
    metavar="ENGINE:MECHANISM | URL | http://… https://… | jdbc:…",
    shell_complete=_completers.proof_targets,
)
@options(
    click.option(
        "-f",
        "--file",
        "file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Check every target of this file, a URL a line, at the same time. A line may end with options of its own; # begins a comment.",
        shell_complete=_completers.files,
    ),
    click.option(
        "--format",
        "format_",
        metavar="FORMAT",
        help="With -f: terminal, json, csv, junit or md. [default: terminal]",
        shell_complete=_completers.words("terminal", "json", "csv", "junit", "md"),
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With -f: write to this file instead of the terminal.",
    ),
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
    *PASSWORD_OPTIONS,
    HEADER_OPTION,
    BINDIR_OPTION,
    click.option(
        "--client",
        metavar="CLIENT",
        help="What connects: rust, jdbc or jdbc:9.7.0, or a driver of `list drivers`: psycopg, psycopg@3.2. [default: rust]",
        shell_complete=_completers.clients,
    ),
    DRIVER_OPTION,
)
def prove(targets: tuple[str, ...], file: Path | None, format_: str | None, output: Path | None, **given: Any) -> None:
    """Check whether a target is really encrypted, without load.

    The witnesses check independently: the server, the client, and a packet capture or disk scan. The exit
    status is 0 only if every witness confirms the encryption. For jdbc:…, the connection string of your application, it also
    checks whether the driver verifies the server; so for a URL with --client, e.g. psycopg. A web site whose http and https
    addresses differ by more than the usual ports has both checked if you give both, and so has a key-value store with its two
    ports. -f checks many servers at once, and its exit status is 0 only if that of each is.
    """
    if file is not None:
        _inventory(targets, file, format_ or "terminal", output, given)
    for option, value in (("--format", format_), ("-o", output)):
        if value:
            raise UsageError(f"{option} {value} is for the table of -f FILE; remove it")
    if not targets:
        raise UsageError(
            "name a target, e.g. postgresql:tls or postgresql://HOST:PORT/…, or a file of targets with -f FILE"
        )
    proven, text = _examined(targets, given)
    say(text)
    raise click.exceptions.Exit(0 if proven else COST_OF_FAILURE)


def _examined(targets: Sequence[str], given: dict[str, Any], row: ProofRow | None = None) -> tuple[bool, str]:
    """(proven, text to print) of a target. `row`: takes the facts. Raises CiphercostError."""
    from ciphercost.load import drivers
    from ciphercost.load.connection_string.keywords import as_url
    from ciphercost.plan.targets import target_of_url, two_addresses
    from ciphercost.runs import prove_url

    written, targets = targets, tuple(map(as_url, targets))
    target, *more = targets
    if more and not all(map(two_addresses, targets)):
        raise UsageError(
            f"{' '.join(targets)}: prove checks one target; only a web site and a key-value store have two addresses, "
            "http://… https://… and redis://… rediss://…; -f FILE checks the targets of a file"
        )
    by_driver = "://" in target and (given["client"] or "").partition("@")[0] in drivers.names()
    if target.startswith("jdbc:") or by_driver:
        from ciphercost.model.own_tls import OwnTls
        from ciphercost.runs import prove_driver_url, prove_jdbc_url

        for option, name in (
            ("--set", "factors"),
            ("--iv", "iv"),
            ("--ca", "ca"),
            ("--server-name", "server_name"),
            ("--header", "headers"),
            ("--bindir", "bindir"),
            *([("--driver", "driver")] if by_driver else []),
        ):
            if given[name]:
                what = f"--client {given['client']} and a URL" if by_driver else "a JDBC URL"
                raise UsageError(f"{option} has no effect with {what}; remove it")
        own_tls = OwnTls(cert=given["cert"] or "", key=given["key"] or "")
        if by_driver:
            return prove_driver_url.examine(written[0], given["client"], own_tls, row)
        return prove_jdbc_url.examine(target, given["driver"] or "", given["client"] or "", own_tls, row)
    is_url = "://" in target
    cell = cell_of(
        target_of_url(target) if is_url else target,
        {**dict.fromkeys(BLANK), "urls": targets if is_url else (), **given},
    )
    return prove_url.examine(cell, row)


def _inventory(targets: Sequence[str], file: Path, name: str, output: Path | None, given: dict[str, Any]) -> None:
    """Check every target of a file, and end with its exit status. Raises UsageError."""
    from ciphercost.report import proof_formats
    from ciphercost.runs import prove_inventory

    if targets:
        raise UsageError(f"-f {file} names the targets; remove {targets[0]}, or add it to the file")
    render = proof_formats.get(name)

    def one(words: Sequence[str], row: ProofRow) -> bool:
        try:
            context = prove.make_context("prove", list(words))
        except click.ClickException as error:
            raise UsageError(error.format_message()) from None
        line_options = context.params
        for extra in ("file", "format_", "output"):
            if line_options.pop(extra):
                raise UsageError(
                    "a line of a file names a target and its own options; -f, --format and -o are for all of them"
                )
        named = line_options.pop("targets")
        if not named or not ("://" in named[0] or named[0].startswith("jdbc:") or "=" in named[0]):
            raise UsageError(
                f"{' '.join(named) or 'nothing'}: not the URL of a server that you run; -f takes URLs only"
            )
        proven, row.details = _examined(
            named, {option: value or given[option] for option, value in line_options.items()}, row
        )
        return proven

    rows = prove_inventory.examine(prove_inventory.read(file), one)
    write_or_print(render(rows), output)
    raise click.exceptions.Exit(0 if all(row.ok for row in rows) else COST_OF_FAILURE)
