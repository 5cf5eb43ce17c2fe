"""Calls the arms of a cell by their own names if both are encrypted. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.model.facts import CellFacts
from ciphercost.model.pair import Pair
from ciphercost.model.result import Cell, Warning_


def with_encryption(facts: CellFacts) -> Pair | None:
    """The cell's pair; its compared arm negotiated what the cell's `encryption` says."""
    if facts.pair is None:
        return None
    compared = msgspec.structs.replace(facts.pair.compared, encryption=facts.encryption)
    return msgspec.structs.replace(facts.pair, compared=compared)


def named(cell: Cell) -> Cell:
    """The cell, whose warnings and reason say `TLS 1.2 arm` instead of `plain arm`; unchanged if one arm is plain."""
    if cell.pair is None:
        return cell
    worded = cell.pair.worded
    warnings = [Warning_(warning.code, worded(warning.text)) for warning in cell.warnings]
    return msgspec.structs.replace(cell, reason=worded(cell.reason), warnings=warnings)
