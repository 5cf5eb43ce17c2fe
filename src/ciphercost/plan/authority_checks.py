"""What the user names for both sides to prove who they are is used, or refused: nothing else would keep a login from going out in clear."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.load import password_command
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.planned import PlannedCell

WHOSE = {
    "--ca": "names the authority of",
    "--cert": "is the certificate of a client of",
    "--key": "is the key of a client of",
    "--server-name": "is the name of",
}
"""By option: what it is."""


def check(cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError for a cell with an authority, a certificate or a server's name if no cell of the run uses TLS with that server."""
    if password_command.found() and not any(
        cell.spec.url and cell.engine.language not in ("http", "command") for cell in cells
    ):
        raise UsageError(
            f"{password_command.OPTION}: no login of this run takes that password; remove it, or name your server with --url"
        )
    for planned in cells:
        cell = planned.spec
        for option, value in cell.own_tls.options.items():
            if not (cell.url or planned.engine.foreign):
                instead = ", or write --set client-cert=on" if option in ("--cert", "--key") else ""
                raise UsageError(
                    f"{option} {value}: {WHOSE[option]} a server that you run, but ciphercost starts this {planned.engine.title} and makes "
                    f"its certificate; remove {option}{instead}, or name your server with --url"
                )
        if not cell.own_tls.options:
            continue
        if not any(other.mechanism.name == "tls" and other.spec.url == cell.url for other in cells):
            option, value = next(iter(cell.own_tls.options.items()))
            no_use = {"--ca": "verify no certificate"}.get(option, "have no use")
            raise UsageError(
                f"{option} {value}: {_what(cell)}, so it would {no_use}, and every login would go unencrypted; remove {option} "
                f"if the network to your server may see that, or measure {cell.engine}:tls"
            )


def _what(cell: CellSpec) -> str:
    if cell.mechanism == "none":
        return "both arms are unencrypted connections (plain against plain)"
    return f"{cell.engine}:{cell.mechanism} is measured over unencrypted connections"
