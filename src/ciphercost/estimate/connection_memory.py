"""Memory per connection: slopes of the recorded levels, and what encryption adds, with intervals. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ciphercost.estimate import student_t
from ciphercost.model.connection_memory import HOLDERS, MOMENTS, ConnectionMemory, MemoryLevel, Slope
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, Mode

SHARE = 0.975
LEAST_LEVELS = 3
"""Levels of a ramp that a slope with an interval needs."""


class Line(NamedTuple):
    """A slope by least squares: bytes per connection."""

    slope: float
    variance: float
    """Of the slope, from the levels' scatter around the line."""
    nu: int


Ramps = Mapping[tuple[str, str], Mapping[str, Line]]
"""By (arm, moment) and holder, of one session."""


def line(connections: Sequence[float], level: Sequence[float]) -> Line:
    """The line through levels of at least three different numbers of connections."""
    x, y = np.asarray(connections, float), np.asarray(level, float)
    away = x - x.mean()
    spread = float(away @ away)
    slope = float(away @ y) / spread
    rest = y - y.mean() - slope * away
    nu = len(x) - 2
    return Line(slope, float(rest @ rest) / nu / spread, nu)


def result(levels: Iterable[MemoryLevel]) -> ConnectionMemory | None:
    """Memory per connection of a cell; None without a complete ramp in both arms.

    A moment's figure is the sum of the slopes up to it. Over two or more sessions the interval is Student's t over their figures; in one
    session it comes from the scatter around the lines, with the degrees of freedom of the shortest.
    """
    by_session: dict[int, list[MemoryLevel]] = defaultdict(list)
    for level in levels:
        by_session[level.session].append(level)
    sessions = [ramps for _, records in sorted(by_session.items()) if (ramps := _ramps(records))]
    if not sessions:
        return None
    moments = [moment for moment in MOMENTS if all((arm, moment) in ramps for ramps in sessions for arm in ARMS)]
    holders = [
        holder for holder in HOLDERS if holder != "hop" or any(level.hop for of in by_session.values() for level in of)
    ]
    arms: dict[str, dict[str, dict[str, Slope]]] = {arm: {} for arm in ARMS}
    added: dict[str, dict[str, Slope]] = {}
    for place, moment in enumerate(moments):
        until = moments[: place + 1]
        for arm in ARMS:
            arms[arm][moment] = {
                holder: slope([[ramps[arm, one][holder] for one in until] for ramps in sessions]) for holder in holders
            }
        added[moment] = {
            holder: slope(
                [
                    [
                        *(ramps["encrypted", one][holder] for one in until),
                        *(_minus(ramps["plain", one][holder]) for one in until),
                    ]
                    for ramps in sessions
                ]
            )
            for holder in holders
        }
    every = [level for of in by_session.values() for level in of if level.moment == "handshake"]
    return ConnectionMemory(
        connections=max(level.connections for level in every),
        steps=len({level.connections for level in every}) - 1,
        sessions=len(sessions),
        arms=arms,
        added=added,
        method="t over sessions" if len(sessions) > 1 else "least squares in one session; this server pair only",
    )


def slope(sessions: Sequence[Sequence[Line]]) -> Slope:
    """The sum of each session's lines, over sessions."""
    sums = np.array([sum(one.slope for one in lines) for lines in sessions])
    centre = float(sums.mean())
    if len(sums) > 1:
        nu, half = len(sums) - 1, float(sums.std(ddof=1)) / math.sqrt(len(sums))
    else:
        nu, half = min(one.nu for one in sessions[0]), math.sqrt(sum(one.variance for one in sessions[0]))
    half *= student_t.quantile(SHARE, nu)
    return Slope(centre, centre - half, centre + half)


def _minus(one: Line) -> Line:
    return one._replace(slope=-one.slope)


def _ramps(records: Sequence[MemoryLevel]) -> dict[tuple[str, str], dict[str, Line]]:
    """The lines of one session's ramps that have enough levels; {} unless both arms have that of the handshake."""
    grouped: dict[tuple[str, str], list[MemoryLevel]] = defaultdict(list)
    for record in records:
        grouped[record.arm, record.moment].append(record)
    ramps: dict[tuple[str, str], dict[str, Line]] = {
        key: {holder: line([one.connections for one in of], [getattr(one, holder) for one in of]) for holder in HOLDERS}
        for key, of in grouped.items()
        if len({one.connections for one in of}) >= LEAST_LEVELS
    }
    return ramps if all((arm, "handshake") in ramps for arm in ARMS) else {}


def with_memory(cell: Cell, levels: Sequence[MemoryLevel], mode: Mode) -> Cell:  # noqa: ARG001 - both have one method
    """The cell with its memory per connection, if it was measured and the cell may have numbers. Pure."""
    if cell.status != "ok" or not levels:
        return cell
    return msgspec.structs.replace(cell, connection_memory=result(levels))
