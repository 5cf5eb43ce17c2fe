"""Figures for tools that track benchmarks over time: those of proven cells, under names that stay the same from run to run. Pure.

Trackers have no place for doubts. So where one arm fails more often, operations/s are those with failed slices as slices without work, and
there is no latency: an alarm on the series then goes off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ciphercost.estimate import failures, plausible
from ciphercost.model.pair import place
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS
from ciphercost.report import cell_ids
from ciphercost.report.words import figure_text


class Tracked(NamedTuple):
    """One figure of a proven cell."""

    id: str
    """The cell's name; see `cell_ids`."""
    cell: Cell
    row: figure_text.Row


def figures(result: Result) -> Iterator[Tracked]:
    """Every figure that reports print, cell by cell. Cells that are not ok, or whose figures are not what encryption costs, are left out."""
    for name, cell in zip(cell_ids.ids(result), result.cells, strict=True):
        if has_cost(cell):
            yield from (Tracked(name, cell, row) for row in figure_text.rows(with_failures(cell)))


def has_cost(cell: Cell) -> bool:
    """Whether a tracker gets its figures: a series has no word for those that are not what encryption costs, such as a fixed wait."""
    return cell.status == "ok" and not plausible.is_no_cost(cell)


def with_failures(cell: Cell) -> Cell:
    """The cell with the costs that a tracker gets; see the module."""
    of = cell.failures
    if of is None or not failures.differ(of):
        return cell
    kept = {name: estimate for name, estimate in cell.overhead.items() if not name.startswith("latency_")}
    if "throughput" in kept and of.throughput is not None:
        kept["throughput"] = of.throughput
    return msgspec.structs.replace(cell, overhead=kept)


def failed(cell: Cell) -> dict[str, float]:
    """Share of failed slices by arm; of the arms of a cell in which any failed."""
    of = cell.failures
    if of is None or not of.plain + of.encrypted:
        return {}
    plain, encrypted = (place(cell.pair, arm) for arm in ARMS)
    return {plain: of.plain / of.plain_slices, encrypted: of.encrypted / of.encrypted_slices}
