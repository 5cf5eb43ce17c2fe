"""openings: how long each arm's server takes from its start to its first answer. Pure."""

from __future__ import annotations

import math

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import Estimate


def by_session(known: CellFacts) -> dict[int, tuple[float, float]]:
    """Seconds from start to first response (plain, encrypted), of each session that has both."""
    seconds: dict[int, dict[str, float]] = {}
    for opening in known.openings:
        seconds.setdefault(opening.session, {})[opening.arm] = opening.seconds
    return {
        session: (arms["plain"], arms["encrypted"])
        for session, arms in seconds.items()
        if len(arms) == 2 and min(arms.values()) > 0
    }


def ratio(known: CellFacts) -> Estimate | None:
    """What encryption does to the time from a server's start to its first answer. One value a session."""
    values = np.array([math.log(encrypted / plain) for plain, encrypted in by_session(known).values()])
    if len(values) < 2:
        return None
    interval = statistics.session_interval(values)
    low, high = interval.bounds()
    return Estimate(
        math.exp(interval.centre), math.exp(low), math.exp(high), n=len(values), method=interval.method(), unit="start"
    )
