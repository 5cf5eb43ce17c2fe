"""An authority that the user names is used to verify a server, or refused: nothing else would keep a login from going out in clear."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.planned import PlannedCell


def check(cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError for a cell with an authority (`ca`) if no cell of the run verifies a certificate of that server."""
    for planned in cells:
        cell = planned.spec
        if not cell.ca:
            continue
        if not (cell.url or planned.engine.foreign):
            raise UsageError(
                f"--ca {cell.ca}: names the authority of a server that you run, but ciphercost starts this {planned.engine.title} and makes "
                "its certificate; remove --ca, or name your server with --url"
            )
        if not any(each.mechanism.name == "tls" and each.spec.url == cell.url for each in cells):
            raise UsageError(
                f"--ca {cell.ca}: {_what(cell)}, so it would verify no certificate, and every login would go unencrypted; remove --ca "
                f"if the network to your server may see that, or measure {cell.engine}:tls"
            )


def _what(cell: CellSpec) -> str:
    if cell.mechanism == "none":
        return "both arms are unencrypted connections (plain against plain)"
    return f"{cell.engine}:{cell.mechanism} is measured over unencrypted connections"
