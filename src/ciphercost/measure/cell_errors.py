"""What an error of one cell means for the others, and why a cell has nothing to estimate from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ciphercost.model.errors import CiphercostError, RefusedSetting, UsageError
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import COUNTED, CellSpec


def ends_all(error: CiphercostError, cells: Sequence[CellSpec]) -> bool:
    """Whether every cell fails by this usage error: there is one cell, or all have the server that refuses a setting. Pure."""
    alike = all(
        (cell.engine, cell.version, cell.settings) == (cells[0].engine, cells[0].version, cells[0].settings)
        for cell in cells
    )
    return isinstance(error, UsageError) and (len(cells) == 1 or (isinstance(error, RefusedSetting) and alike))


def without_block(slices: Iterable[SliceRecord], seconds: float) -> str:
    """Why a cell has no complete block of slices that count. `seconds`: the length of a slice. Pure."""
    errors = [record.error for record in slices if record.phase in COUNTED and record.error]
    if not errors:
        return f"no operation finished within a slice of {seconds:g} s; use a longer --time"
    return f"no block is complete: {len(errors)} slices of {seconds:g} s failed, the last one: {errors[-1]}; use a longer --time"
