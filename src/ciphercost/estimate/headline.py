"""The headline over sessions: the typical block's ratio, inside the interval of what a user pays. Pure.

A user pays for every operation, so stalls and collections of garbage that encryption causes, and steal that hits it harder, are part of
its cost. The Hodges–Lehmann values of the sessions resist all of these. They are the better estimate as long as a disturbance hits both arms alike,
and they are off, with a narrow interval, where it does not; which of both it is can't be tested with the few disturbances of a run. So the
interval is that of the ratio of totals, widened where necessary to contain the typical ratio, as in quick mode. METHODOLOGY.md has the coverage
and the price in width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import Floats, Interval


class Sessions(NamedTuple):
    """What each session says of throughput; every array has the shape (sessions,)."""

    typical: Floats
    """Hodges–Lehmann value of its blocks' log ratios."""
    plain: tuple[Floats, Floats]
    """Operations and seconds of the plain arm."""
    encrypted: tuple[Floats, Floats]

    def parts(self) -> tuple[float, Floats]:
        """The log ratio of totals, and each session's part in it: `cost_ratios.parts_of_totals` for two or more sessions."""
        log_ratio, parts = 0.0, np.zeros(len(self.typical))
        for arm, sign in ((self.plain, -1), (self.encrypted, 1)):
            for sums, side in zip(arm, (1, -1), strict=True):
                total = float(sums.sum())
                log_ratio += sign * side * math.log(total)
                parts += sign * side * (len(sums) * sums / total - 1)
        return log_ratio, parts + log_ratio


def over_sessions(sessions: Sessions, most_nu: int | None = None) -> Interval:
    """The log ratio of throughput over two or more sessions, encrypted − plain."""
    log_ratio, parts = sessions.parts()
    interval = statistics.session_interval(parts, log_ratio, most_nu)
    return interval._replace(centre=float(sessions.typical.mean()), mean=log_ratio)


def typically_within(sessions: Sessions, margin: float, most_nu: int | None = None) -> bool:
    """Whether the typical block is equivalent within ± log(1 + `margin`), whatever all slices together show."""
    return statistics.session_interval(sessions.typical, most_nu=most_nu).tost(math.log1p(margin)) < statistics.ALPHA


def difference(reference: Sessions, other: Sessions, most_nu: int | None = None) -> Interval:
    """other − reference of two cells over the same sessions; what a session does to both cancels."""
    (first, before), (second, after) = reference.parts(), other.parts()
    interval = statistics.session_interval(after - before, second - first, most_nu)
    return interval._replace(centre=float((other.typical - reference.typical).mean()), mean=second - first)
