"""The warning above the figures of a run that other processes disturbed: most slices, or one arm more than the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.estimate import disturbance, notation
from ciphercost.model.result import Cell, Result
from ciphercost.report.words import cell_text, verdict_text

MOST_NAMED = 4
"""Cells that the warning names at most; if there are more, it gives only their number."""
TOOK = "other processes or the hypervisor took more than 5 % of the CPU"
UNEVEN = "Do not rely on these figures: stop the other processes or use a quieter machine, and run again."
MOSTLY = (
    "The intervals include that and are wider for it, but operations/s and latencies are those of a busy machine. For those of a quiet one, stop "
    "the other processes, and run again."
)


def warning(cells: Sequence[Cell]) -> str:
    """Which cells were disturbed, how, and what to do about it; empty if there are none."""
    labels = cell_text.names(cells)
    sentences = []
    for how, advice in (("uneven", UNEVEN), ("mostly", MOSTLY)):
        hit = [number for number, cell in enumerate(cells) if disturbance.state(cell) == how]
        if not hit:
            continue
        disturbed_cells = [cells[number] for number in hit]
        which = _which([labels[number] for number in hit], len(cells))
        if how == "uneven":
            counted = f": {disturbance.counted(disturbed_cells[0].disturbance)}" if len(disturbed_cells) == 1 else ""
            sentences.append(
                f"One arm{which} was disturbed more than the other: {TOOK}{' in' + counted[1:] if counted else ''}. {advice}"
            )
        elif all(cell.disturbed for cell in disturbed_cells):
            sentences.append(f"Every slice{which} was disturbed: {TOOK}. {advice}")
        else:
            counted = (
                f" ({disturbance.counted(disturbed_cells[0].disturbance)}, both arms alike)"
                if len(disturbed_cells) == 1
                else ""
            )
            sentences.append(f"Most slices{which} were disturbed{counted}: {TOOK}. {advice}")
    return " ".join(sentences)


def _which(hit: Sequence[str], all_: int) -> str:
    """` of 2 of 7 cells (NAME; NAME)`; empty for the only cell."""
    if all_ == 1:
        return ""
    if len(hit) == all_:
        return f" of {notation.every(all_, 'cells')}"
    return f" of {len(hit)} of {all_} cells" + (f" ({'; '.join(hit)})" if len(hit) <= MOST_NAMED else "")


def answer(result: Result) -> str:
    """The answer of a run in one paragraph, behind the warning if there is one."""
    return " ".join(filter(None, (warning(result.cells), verdict_text.answer(result))))
