"""disturbed: cells whose every slice was disturbed -> the warning that stands above their figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.result import Cell, Result
from ciphercost.report import words

MOST_NAMED = 4
"""Cells named in the warning; of more it gives only the number."""
ADVICE = "Do not rely on these figures: stop the other processes or use a quieter machine, and run again."


def warning(cells: Sequence[Cell]) -> str:
    """One sentence on the cells that were disturbed throughout and what to do; empty where there are none."""
    labels = words.names(cells)
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
    return " ".join(filter(None, (warning(result.cells), words.answer(result))))
