"""What it does to a cell that other processes or the hypervisor took the CPU in some of its slices. Pure.

Simulated (METHODOLOGY.md, Disturbed slices): where both arms are hit alike, the 95 % interval gets wider and still covers, however many slices are hit. Where
one arm is hit more, the ratio moves, and coverage falls below 93 % from a difference of 5 to 10 points on. So what counts is the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from ciphercost.estimate.totals import coin
from ciphercost.model.result import Cell, Disturbance, Warning_
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS

MARKS = ("steal", "foreign-cpu")
"""Marks of slices in which other processes or the hypervisor took the CPU."""
GAP = 0.05
"""Difference of the arms' shares of disturbed slices from which coverage is too low."""
ALPHA = 0.05
"""Level of the test that they differ. At 1 % a quick run would miss a fifth of 40 slices in 55 % of runs."""
MOST = 0.5
"""From this share of its slices on, a cell's usual slice is a disturbed one, and so are its levels."""
UNEVEN = "disturbed-unevenly"
"""Code of a warning."""
State = Literal["", "uneven", "mostly"]


def disturbed(record: SliceRecord) -> bool:
    return any(mark in MARKS for mark in record.marks)


def count(counts: Counter[str], records: Sequence[SliceRecord]) -> None:
    """Add a complete block of four counted slices."""
    hit = Counter(record.arm for record in records if disturbed(record))
    for arm in ARMS:
        counts[f"disturbed {arm}"] += hit[arm]
        counts[f"slices {arm}"] += len(records) // 2
    counts["disturbed more"] += hit["encrypted"] > hit["plain"]
    counts["disturbed less"] += hit["encrypted"] < hit["plain"]


def total(counts: Counter[str]) -> Disturbance | None:
    """How many slices of each arm were disturbed, with the p-value of a fair coin over blocks; None: none was."""
    hit = [counts[f"disturbed {arm}"] for arm in ARMS]
    if not sum(hit):
        return None
    slices = [counts[f"slices {arm}"] for arm in ARMS]
    return Disturbance(hit[0], slices[0], hit[1], slices[1], coin(counts["disturbed more"], counts["disturbed less"]))


def uneven(of: Disturbance) -> bool:
    """Whether one arm was disturbed more than the other, by more than chance."""
    gap = abs(of.encrypted / of.encrypted_slices - of.plain / of.plain_slices)
    return gap >= GAP and of.p_value < ALPHA


def state(cell: Cell) -> State:
    """`uneven`: one arm was disturbed more, so the interval can't be relied on. `mostly`: most slices were, in both arms alike."""
    of = cell.disturbance
    if of is None:
        return "mostly" if cell.disturbed else ""
    if uneven(of):
        return "uneven"
    return "mostly" if of.plain + of.encrypted >= MOST * (of.plain_slices + of.encrypted_slices) else ""


def counted(of: Disturbance | None) -> str:
    """`248 of 256 slices`; if one arm was disturbed more `30 of 128 encrypted and 4 of 128 plain slices`."""
    if of is None:
        return "every slice"
    if uneven(of):
        return f"{of.encrypted} of {of.encrypted_slices} encrypted and {of.plain} of {of.plain_slices} plain slices"
    return f"{of.plain + of.encrypted} of {of.plain_slices + of.encrypted_slices} slices"


def warnings(of: Disturbance | None) -> list[Warning_]:
    """The warning that one arm was disturbed more than the other."""
    if of is None or not uneven(of):
        return []
    text = (
        f"one arm was disturbed more than the other: other processes or the hypervisor took more than 5 % of the CPU in {counted(of)} "
        f"(p = {of.p_value:.2g} if chance decided). The ratio contains that, and its interval does not"
    )
    return [Warning_(UNEVEN, text)]
