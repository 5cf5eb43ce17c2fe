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
    names = {(pair.reference.name, pair.compared.name) for pair in pairs}
    if not pairs or any(pair is OFF_ON for pair in pairs):
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
    renamed: object = texts
    if isinstance(texts, str):
        renamed = pair.worded(texts)
    elif isinstance(texts, tuple):
        parts = [worded(text, pair) for text in texts]
        renamed = type(texts)(*parts) if hasattr(texts, "_fields") else tuple(parts)
    elif isinstance(texts, list):
        renamed = [worded(text, pair) for text in texts]
    elif isinstance(texts, dict):
        renamed = {worded(key, pair): worded(value, pair) for key, value in texts.items()}
    return renamed  # type: ignore[return-value]
