"""sessions_or_blocks: the interval and the typical value of figures that have one value for each block. In full mode sessions are the unit, if
there are two; else blocks are. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import Floats, Interval
from ciphercost.model.spec import Mode


def by_session(figure: Mapping[tuple[int, int], float]) -> list[Floats]:
    """The values of each session, in the order of sessions. `figure`: one value for each (session, block)."""
    sessions: defaultdict[int, list[float]] = defaultdict(list)
    for (session, _), value in figure.items():
        sessions[session].append(value)
    return [np.array(values) for _, values in sorted(sessions.items())]


def interval(sessions: Sequence[Floats], mode: Mode, most_nu: int | None = None) -> Interval | None:
    """The interval over each session's values of its blocks; None with fewer than two blocks. `most_nu`: as in `session_interval`."""
    if mode == "full" and len(sessions) >= 2:
        centres = np.array([statistics.hodges_lehmann(values) for values in sessions])
        return statistics.session_interval(centres, most_nu=most_nu)
    if sum(map(len, sessions)) >= 2:
        return statistics.block_interval(np.concatenate(sessions))
    return None


def typical(sessions: Sequence[Floats], mode: Mode) -> float:
    """The mean of the sessions' Hodges–Lehmann centres, in quick mode the centre of all blocks together."""
    groups = sessions if mode == "full" else [np.concatenate(sessions)]
    return float(np.mean([statistics.hodges_lehmann(values) for values in groups]))
