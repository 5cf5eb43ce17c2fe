"""What the publications could not show, and what each driver's client pays here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.studies.driver_tls import ways

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[str, Cell]
"""Our cells, by driver and workload."""


def findings(study: Study, ours: Ours) -> list[str]:
    """Findings of a few sentences each. The last says what would tell more."""
    return [
        study.finding("noise"),
        who_pays(study, ours),
        *map(study.finding, ("proxy", "not-here", "would-tell")),
    ]


def who_pays(study: Study, ours: Ours) -> str:
    """The finding, and each driver's share of what TLS adds to reading a large result here."""
    text = study.finding("who-pays")
    clauses = []
    for driver in ways.DRIVERS:
        cell = ours.get(ways.name_of(driver, ways.BULK.workload))
        client, server = (added(cell, end) if cell else None for end in ("client", "server"))
        if client is not None and server is not None and share(client, server) != "-":
            clauses.append(f"{driver} {share(client, server)}")
    if clauses:
        text += f" Here the client's share of the CPU time that TLS adds to 1 MB is: {', '.join(clauses)}."
    return text


def added(cell: Cell, end: str) -> float | None:
    """Microseconds that TLS adds to an operation at one end; None if its CPU time is unknown."""
    before, after = (cell.arms.get(arm, {}).get(f"{end}_cpu_us_per_op") for arm in ("plain", "encrypted"))
    return float(after - before) if before is not None and after is not None else None


def share(client: float, server: float) -> str:
    """The client's share of what both ends add; `-` if one of them adds nothing."""
    return f"{100 * client / (client + server):.0f} %" if client > 0 and server > 0 else "-"
