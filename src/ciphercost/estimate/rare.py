"""Counters that few events decide: which have no ratio of totals, and why. Pure.

The interval of a ratio of totals linearises its logarithm (delta method), which holds if each arm's own total is known well. Where a few
events make up a total (a flush, a checkpoint, a fault that most blocks don't have), it isn't, and the scatter over units can even be 0: 10 bytes
of one block against 24 of the same block. METHODOLOGY.md has the coverage with and without this rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ciphercost.estimate.tally import COLUMN, Arms
from ciphercost.model.facts import PAGE
from ciphercost.model.spec import ARMS, Arm

LEAST_EVENTS = 8
"""Fewest independent events of the same size, per arm, that a total must be worth.

A total of N such events has a relative standard error of 1/√N. So N is 1 ÷ the square of the relative standard error of an arm's own figure,
which the scatter over blocks shows; clusters and large events make it smaller than their number."""
LEAST_COUNTED = 20
"""Fewest events per arm where they can be counted: the scatter of very few is 0 too often by chance."""
EVENT = {"faults": 1, "switches": 1, "segments": 1, "read_bytes": PAGE, "write_bytes": PAGE}
"""By field: how much of it is an event that can happen at any time. Other fields, such as
CPU time, grow with each operation: their ratio always has an interval, wide if they scatter."""


def too_few(arms: Arms, numerator: Sequence[str], denominator: str) -> str:
    """Why this ratio of totals has no interval that holds; empty: it has one, or there is nothing to divide.

    Blocks are judged in both modes: few sessions can't show how rare something is.
    """
    if not set(numerator) <= set(EVENT):
        return ""
    totals = [arms.total(arm, *numerator) for arm in ARMS]
    if max(totals) <= 0 or min(arms.total(arm, denominator) for arm in ARMS) <= 0 or len(arms.sessions) < 2:
        return ""
    if not min(totals):
        return seen(arms, numerator)
    counted = min(totals) / min(EVENT[field] for field in numerator)
    worth = min(events(arms, arm, numerator, denominator) for arm in ARMS)
    return seen(arms, numerator) if counted < LEAST_COUNTED or worth < LEAST_EVENTS else ""


def events(arms: Arms, arm: Arm, numerator: Sequence[str], denominator: str) -> float:
    """How many independent events of the same size an arm's total ÷ total is worth; infinite if every block has the same figure."""
    above, below = arms.by_block(arm, *numerator), arms.by_block(arm, denominator)
    parts = len(above) * (above / above.sum() - below / below.sum())
    variance = float(parts.var(ddof=1)) / len(parts)
    return 1 / variance if variance > 0 else math.inf


def seen(arms: Arms, numerator: Sequence[str]) -> str:
    """`1 of 16 plain slices and 1 of 16 encrypted slices had any`, or that a few blocks have most of it."""
    shares = []
    for arm in ARMS:
        slices = sum(arms.of(arm)[:, :, COLUMN[field]] for field in numerator)
        shares.append((int(np.count_nonzero(slices)), int(np.size(slices)), arm))
    if any(some < slices for some, slices, _ in shares):
        text = " and ".join(f"{some} of {slices} {arm} slices" for some, slices, arm in shares)
        return f"{text} had any"
    most = max(float(arms.by_block(arm, *numerator).max()) / arms.total(arm, *numerator) for arm in ARMS)
    if most * len(arms.sessions) > 2:
        return f"one block of {len(arms.sessions)} has {100 * most:.0f} % of all"
    return f"there were fewer than {LEAST_COUNTED}"
