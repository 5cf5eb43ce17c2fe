"""imported_copies: runs that share all their figures -> whether they are copies of one run, which counts once. Pure."""

from __future__ import annotations

import math

import numpy as np

from ciphercost.estimate.imported_costs import IMPORTED, values
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_
from ciphercost.model.spec import ARMS, Arm

SAME = 1e-9
"""Logs of a figure that scatter less are the same but for rounding."""
SURE_DIGITS, COARSE_DIGITS = 6, 5
"""Of a figure, at which two equal runs are one; and, where nothing is known of how runs scatter, for which they are taken for one."""
EXPECTED = 0.05
"""Of the pairs of equal runs, which chance may have made."""


def printed(reading: Reading) -> tuple[object, ...]:
    """What two runs share only if one is a copy of the other, where it has digits enough."""
    series = tuple((name, tuple(values)) for name, values in sorted(reading.series.items()))
    return (tuple(sorted(reading.figures.items())), reading.operations, reading.seconds, reading.started, series)


def digits(reading: Reading) -> int:
    """Significant digits of the most precise figure that was printed of it."""
    if reading.digits:
        return reading.digits
    return max((significant(value) for value in reading.figures.values()), default=0)


def significant(value: float) -> int:
    """Significant digits of a number as it is written. Pure."""
    return len(repr(value).partition("e")[0].replace(".", "").strip("-").strip("0"))


def place(reading: Reading) -> str:
    return f"{reading.file}, line {reading.line}"


def once(by_arm: dict[Arm, list[Reading]]) -> tuple[dict[Arm, list[Reading]], list[Warning_]]:
    """(each arm's runs without copies, what is to be minded of that). A copy has the same figures, by digits that chance doesn't give."""
    made: dict[Arm, list[Reading]] = {}
    minded = []
    for arm in ARMS:
        first: dict[tuple[object, ...], Reading] = {}
        copies = []
        for run in by_arm[arm]:
            own = first.setdefault(printed(run), run)
            if own is not run:
                copies.append((own, run))
        if not copies or not by_copying(by_arm[arm], list(first.values()), len(copies)):
            made[arm] = by_arm[arm]
            continue
        made[arm] = list(first.values())
        own, run = copies[0]
        text = (
            f"{len(copies)} of {len(by_arm[arm])} {arm} runs have the figures of another to the last digit ({place(run)} those of "
            f"{place(own)}): copies of one run, each counted once"
        )
        minded.append(Warning_("copied-runs", text))
    known = {printed(run): run for run in made["plain"] if digits(run) >= SURE_DIGITS}
    if both := [(known[printed(run)], run) for run in made["encrypted"] if printed(run) in known]:
        text = f"{place(both[0][1])} has the figures of {place(both[0][0])} to the last digit: one run can't be of both arms"
        minded.append(Warning_("same-in-both-arms", text))
    return made, minded


def by_copying(runs: list[Reading], different: list[Reading], copies: int) -> bool:
    """Whether so many equal runs are too many for chance.

    Two independent runs of standard deviation s, printed in steps of r, agree with probability about r/(2·√π·s).
    """
    least = min(digits(run) for run in runs)
    if least >= SURE_DIGITS:
        return True
    scatter = [
        float(np.std(values(name, different), ddof=1))
        for name in IMPORTED
        if len(different) >= 3 and all(run.figures.get(name, 0.0) > 0 for run in runs)
    ]
    # A figure that is the same in every run (a set rate) does not say how much runs scatter.
    spread = next((each for each in scatter if each > SAME), 0.0)
    if not spread:
        return least >= COARSE_DIGITS
    step = 10.0 ** (1 - least)  # at most, of a figure that begins with 1
    chance = step / (2 * math.sqrt(math.pi) * spread)
    return len(runs) * (len(runs) - 1) / 2 * chance < EXPECTED * copies
