"""What reports call the arms of cells: plain and encrypted, or by their settings if both are encrypted. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ciphercost.model.pair import OFF_ON, Pair, PairArm
from ciphercost.model.result import Cell
from ciphercost.model.spec import Arm

T = TypeVar("T")
SEVERAL = Pair("versus", PairArm("reference"), PairArm("compared"))
"""Of cells that compare different pairs of encrypted settings."""


def of(cells: Iterable[Cell]) -> Pair:
    """The pair of all these cells. A cell with a plain arm among them decides for plain and encrypted."""
    pairs = [cell.pair or OFF_ON for cell in cells]
    names = {(each.reference.name, each.compared.name) for each in pairs}
    if not pairs or any(each is OFF_ON for each in pairs):
        return OFF_ON
    return pairs[0] if len(names) == 1 else SEVERAL


def name(cell: Cell, arm: Arm) -> str:
    """What this arm of the cell is called: `plain`, `TLS 1.2`."""
    return (cell.pair or OFF_ON).of(arm).name


def arrow(pair: Pair) -> str:
    """`plain → encrypted`, `TLS 1.2 → TLS 1.3`: the head of both arms' levels."""
    return f"{pair.reference.name} → {pair.compared.name}"


def worded(texts: T, pair: Pair | None) -> T:
    """The same texts, in whatever tuples and lists they stand, with the arms called by their own names; unchanged without a pair."""
    if pair is None or pair.kind == "off-on":
        return texts
    made: object = texts
    if isinstance(texts, str):
        made = pair.worded(texts)
    elif isinstance(texts, tuple):
        parts = [worded(each, pair) for each in texts]
        made = type(texts)(*parts) if hasattr(texts, "_fields") else tuple(parts)
    elif isinstance(texts, list):
        made = [worded(each, pair) for each in texts]
    elif isinstance(texts, dict):
        made = {worded(key, pair): worded(each, pair) for key, each in texts.items()}
    return made  # type: ignore[return-value]
