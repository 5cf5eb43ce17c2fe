"""Detects imported runs that are copies of one run, and counts them once. Pure."""

from __future__ import annotations

import math

import numpy as np

from ciphercost.estimate.imported_costs import IMPORTED, values
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_
from ciphercost.model.spec import ARMS, Arm

SAME = 1e-9
"""Logs of a figure that scatter less than this are equal except for rounding."""
SURE_DIGITS, COARSE_DIGITS = 6, 5
"""Significant digits from which two equal runs are copies; COARSE_DIGITS if the scatter of runs is unknown."""
EXPECTED = 0.05
"""Share of the pairs of equal runs that chance may explain."""


def printed(reading: Reading) -> tuple[object, ...]:
    """Everything printed about a run. Equal values with enough digits mean a copy."""
    series = tuple((name, tuple(values)) for name, values in sorted(reading.series.items()))
    return (tuple(sorted(reading.figures.items())), reading.operations, reading.seconds, reading.started, series)


def digits(reading: Reading) -> int:
    """Significant digits of the run's most precise printed figure."""
    if reading.digits:
        return reading.digits
    return max((significant(value) for value in reading.figures.values()), default=0)


def significant(value: float) -> int:
    """Significant digits of a number as printed."""
    return len(repr(value).partition("e")[0].replace(".", "").strip("-").strip("0"))


def place(reading: Reading) -> str:
    return f"{reading.file}, line {reading.line}"


def once(by_arm: dict[Arm, list[Reading]]) -> tuple[dict[Arm, list[Reading]], list[Warning_]]:
    """(each arm's runs without copies, warnings). A copy has the same figures, with more digits than chance explains."""
    kept: dict[Arm, list[Reading]] = {}
    minded = []
    for arm in ARMS:
        first: dict[tuple[object, ...], Reading] = {}
        copies = []
        for run in by_arm[arm]:
            original = first.setdefault(printed(run), run)
            if original is not run:
                copies.append((original, run))
        if not copies or not by_copying(by_arm[arm], list(first.values()), len(copies)):
            kept[arm] = by_arm[arm]
            continue
        kept[arm] = list(first.values())
        original, run = copies[0]
        text = (
            f"{len(copies)} of {len(by_arm[arm])} {arm} runs equal another run to the last digit ({place(run)} equals "
            f"{place(original)}): copies of one run, counted once"
        )
        minded.append(Warning_("copied-runs", text))
    known = {printed(run): run for run in kept["plain"] if digits(run) >= SURE_DIGITS}
    if both := [(known[printed(run)], run) for run in kept["encrypted"] if printed(run) in known]:
        text = f"{place(both[0][1])} equals {place(both[0][0])} to the last digit: one run can't belong to both arms"
        minded.append(Warning_("same-in-both-arms", text))
    return kept, minded


def by_copying(runs: list[Reading], different: list[Reading], copies: int) -> bool:
    """Whether there are more equal runs than chance explains.

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
    # A figure that is equal in every run (a set rate) does not show how much runs scatter.
    spread = next((deviation for deviation in scatter if deviation > SAME), 0.0)
    if not spread:
        return least >= COARSE_DIGITS
    step = 10.0 ** (1 - least)  # at most: for a figure that begins with 1
    chance = step / (2 * math.sqrt(math.pi) * spread)
    return len(runs) * (len(runs) - 1) / 2 * chance < EXPECTED * copies
