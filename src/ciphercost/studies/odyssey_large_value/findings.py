"""What the issue could not show, and how the time grows with the value here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import Arm
from ciphercost.studies.odyssey_large_value import ways

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[tuple[str, str], Cell]
"""Our cells, by the label of their size and the title of their pooler."""


def findings(study: Study, size: int, ours: Ours) -> list[str]:
    """Findings of a few sentences each. The last says what would tell more."""
    return [
        study.finding("one-run"),
        study.finding("not-tls"),
        cause(study, size, ours),
        *map(study.finding, ("not-here", "would-tell")),
    ]


def cause(study: Study, size: int, ours: Ours) -> str:
    """The finding, and how many times as long the large value takes here as its quarter."""
    text = study.finding("cause")
    small, large = ways.sizes(size)
    grown = []
    for title in ways.POOLERS.values():
        of_both = [milliseconds(ours.get((ways.label(each), title)), "encrypted") for each in (small, large)]
        if of_both[0] and of_both[1]:
            grown.append(f"{of_both[1] / of_both[0]:.2g} times as long with {title}")
    if grown:
        text += f" Here {ways.label(large)} over TLS took {' and '.join(grown)} as {ways.label(small)}."
    return text


def milliseconds(cell: Cell | None, arm: Arm) -> float | None:
    """Time of one value by our method; None if it was not measured."""
    if cell is None or "throughput" not in cell.overhead:
        return None
    rate = level(cell, arm, "throughput")
    return cell.clients * 1e3 / rate if rate else None
