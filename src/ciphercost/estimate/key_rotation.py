"""What a new key takes in the encrypted arm, and what it costs running traffic, from the recorded rotations. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from ciphercost.estimate.sessions_or_blocks import by_session, interval, typical
from ciphercost.estimate.statistics import Floats
from ciphercost.estimate.to_estimate import PAIR_ONLY, to_estimate
from ciphercost.model.key_rotation import KeyRotation, KeyRotationSlice
from ciphercost.model.result import Cell, Part
from ciphercost.model.spec import Mode

GB = 1e9
Figure = Callable[[KeyRotationSlice], float]


def result(slices: Sequence[KeyRotationSlice], mode: Mode) -> KeyRotation | None:
    """The rotations of a cell, without each session's first; None with fewer than two. Means are geometric, intervals those of logs."""
    counted = [one for one in slices if one.number and one.seconds]
    took = interval(_logs(counted, lambda one: one.seconds), mode)
    if took is None:
        return None
    seconds, last = _level(counted, lambda one: one.seconds, mode), counted[-1]
    assert seconds is not None
    method = took.method().replace("blocks", "rotations") + (f"; {PAIR_ONLY}" if mode == "quick" else "")
    found = KeyRotation(
        reach=last.reach,
        how=last.how,
        rotations=len(counted),
        sessions=len({one.session for one in counted}),
        seconds=seconds,
        method=method,
        bytes=last.bytes,
    )
    if all(one.bytes for one in counted):
        found = msgspec.structs.replace(
            found, seconds_per_gb=_level(counted, lambda one: one.seconds / (one.bytes / GB), mode)
        )
    if all(one.quiet and one.meanwhile for one in counted):
        slower = interval(_logs(counted, lambda one: one.meanwhile / one.quiet), mode)
        assert slower is not None
        found = msgspec.structs.replace(
            found,
            quiet=math.exp(typical(_logs(counted, lambda one: one.quiet), mode)),
            meanwhile=to_estimate(slower, mode, "operations/s"),
            meanwhile_s=math.exp(typical(_logs(counted, lambda one: one.meanwhile_s), mode)),
        )
    return found


def _level(slices: Sequence[KeyRotationSlice], figure: Figure, mode: Mode) -> Part | None:
    """A figure's typical value with its interval."""
    found = interval(_logs(slices, figure), mode)
    if found is None:
        return None
    low, high = found.bounds()
    return Part(math.exp(found.centre), math.exp(low), math.exp(high))


def _logs(slices: Sequence[KeyRotationSlice], figure: Figure) -> list[Floats]:
    """Logs of a figure, by session."""
    return by_session({(one.session, one.number): math.log(figure(one)) for one in slices})


def with_rotation(cell: Cell, slices: Sequence[KeyRotationSlice], mode: Mode) -> Cell:
    """The cell with its rotations of keys, if it had any and may have numbers. Pure."""
    if cell.status != "ok" or not slices:
        return cell
    return msgspec.structs.replace(cell, key_rotation=result(slices, mode))
