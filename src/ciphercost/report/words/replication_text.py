"""Text on replication over an encrypted link. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate.notation import interval, number, worded
from ciphercost.model.replication import ReplicationResult
from ciphercost.model.result import Cell
from ciphercost.model.sizes import size
from ciphercost.model.spec import ARMS

FASTER, LONGER = ("higher", "lower"), ("longer", "shorter")
ROWS = {
    "lag": ("lag of the replica", LONGER, "ms"),
    "catch_up": ("backlog, changes applied", FASTER, "/s"),
    "copy": ("full copy", LONGER, "s"),
}
"""Labels, directions and units of the figures, in their order."""
MOST_SENTENCES = 3
"""Cells that the first screen speaks of at most."""
Row = tuple[str, str, str, str]


def head(of: ReplicationResult) -> str:  # noqa: ARG001
    """What the rows are."""
    return "replication over the encrypted link"


def rows(cell: Cell) -> Iterator[Row]:
    """(`full copy`, `12 % longer`, its interval, both levels)."""
    if cell.replication is None:
        return
    for key, (label, direction, unit) in ROWS.items():
        if (estimate := cell.replication.ratios.get(key)) is None:
            continue
        both = " → ".join(number(cell.replication.arms[arm][key]) for arm in ARMS)
        space = "" if unit.startswith("/") else " "
        yield label, worded(estimate, *direction), interval(estimate, *direction), f"{both}{space}{unit}"


def lines(cell: Cell) -> Iterator[str]:
    """What was measured, and how."""
    if (of := cell.replication) is None:
        return
    yield (
        "each arm has a primary and a replica, whose CPU time counts together; the clients' connections are unencrypted in both arms, and each of "
        "their commits waits for the replica"
    )
    parts = []
    if "lag" in of.ratios:
        parts.append(
            f"lag: from a write on the primary until the replica shows it, median, at {number(of.rate)} operations/s"
        )
    if "catch_up" in of.ratios:
        parts.append(f"backlog: the replica stood still while clients made {of.rows:,} changes")
    if "copy" in of.ratios:
        made = f" of {size(of.bytes)}" if of.bytes else ""
        parts.append(f"full copy{made} by {of.copied_by}")
    yield f"{'; '.join(parts)}; {of.blocks} block{'s' * (of.blocks != 1)}"


def sentences(cells: Sequence[Cell]) -> Iterator[str]:
    """What the first screen says of replication."""
    told = [cell for cell in cells if cell.replication][:MOST_SENTENCES]
    for cell in told:
        assert cell.replication is not None
        whose = f"{', '.join(filter(None, (cell.engine, cell.variant)))}: " if len(told) > 1 else ""
        parts = [f"{label} {change} (95 % CI {bounds})" for label, change, bounds, _ in rows(cell)]
        yield f"{whose}With {cell.mechanism} on the link: {', '.join(parts)}."
