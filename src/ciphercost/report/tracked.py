"""Figures for tools that track benchmarks over time: those of proven cells, under names that stay the same from run to run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.model.result import Cell, Result
from ciphercost.report import cell_ids
from ciphercost.report.words import figure_text


class Tracked(NamedTuple):
    """One figure of a proven cell."""

    id: str
    """The cell's name; see `cell_ids`."""
    cell: Cell
    row: figure_text.Row


def figures(result: Result) -> Iterator[Tracked]:
    """Every figure that reports print, cell by cell. Trackers have no place for doubts, so cells that are not ok are left out."""
    for name, cell in zip(cell_ids.ids(result), result.cells, strict=True):
        if cell.status == "ok":
            yield from (Tracked(name, cell, row) for row in figure_text.rows(cell))
