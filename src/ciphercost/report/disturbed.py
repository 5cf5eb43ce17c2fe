"""The warning above the figures if other processes disturbed every slice of a cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.result import Cell, Result
from ciphercost.report.words import cell_text, verdict_text

MOST_NAMED = 4
"""Cells that the warning names at most; if there are more, it gives only their number."""
ADVICE = "Do not rely on these figures: stop the other processes or use a quieter machine, and run again."


def warning(cells: Sequence[Cell]) -> str:
    """Which cells were disturbed in every slice, and what to do about it; empty if there are none."""
    labels = cell_text.names(cells)
    hit = [label for cell, label in zip(cells, labels, strict=True) if cell.disturbed]
    if not hit:
        return ""
    which = "" if len(cells) == 1 else f" of {len(hit)} of {len(cells)} cells"
    if len(hit) < len(cells) and len(hit) <= MOST_NAMED:
        which += f" ({'; '.join(hit)})"
    if len(hit) == len(cells) > 1:
        which = f" of all {len(cells)} cells"
    return (
        f"Every slice{which} was disturbed: other processes or the hypervisor took more than 5 % of the CPU. {ADVICE}"
    )


def answer(result: Result) -> str:
    """The answer of a run in one paragraph, behind the warning if there is one."""
    return " ".join(filter(None, (warning(result.cells), verdict_text.answer(result))))
