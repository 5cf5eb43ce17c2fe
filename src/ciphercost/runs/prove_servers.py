"""prove_servers: examines each server that one connection string names. I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ciphercost.model.errors import RunError
from ciphercost.model.proof_row import ProofRow
from ciphercost.report.layout import wrap
from ciphercost.runs import prove_facts


class NamedServer(NamedTuple):
    """A server that a string names."""

    place: str
    url: str
    """A string that names it alone."""
    examine: Callable[[ProofRow], tuple[bool, str]]
    """Returns (proven, text to print) and fills in its row. Raises CiphercostError."""


def examine_each(servers: Sequence[NamedServer], row: ProofRow | None) -> list[tuple[bool, str]]:
    """(proven, text to print) of each server. `row`: takes the facts of the worst.

    A server that can't be reached is not proven, if there are others. Raises CiphercostError.
    """
    outcomes: list[tuple[bool, str]] = []
    rows: list[tuple[str, ProofRow]] = []
    for server in servers:
        server_row = ProofRow(target=server.url)
        rows.append((server.place, server_row))
        try:
            server_row.ok, text = server.examine(server_row)
        except RunError as error:
            if len(servers) == 1:
                raise
            text = "\n".join(wrap(f"NOT PROVEN: {error}", "  ", "    "))
            prove_facts.failed(server_row, error)
        outcomes.append((server_row.ok, text))
    if row is not None:
        prove_facts.worst(row, rows)
    return outcomes
