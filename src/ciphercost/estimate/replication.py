"""What encryption of a replication link does to lag, catching up and full copies, from the recorded events. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ciphercost.estimate.sessions_or_blocks import by_session, interval, typical
from ciphercost.estimate.to_estimate import around, to_estimate
from ciphercost.model.estimate import Estimate
from ciphercost.model.replication import KINDS, ReplicationEvent, ReplicationKind, ReplicationResult
from ciphercost.model.result import Cell, Warning_
from ciphercost.model.spec import ARMS, Mode

FAILED, BEHIND = "replication-failed", "replica-falls-behind"
FIGURES: Mapping[ReplicationKind, tuple[str, str]] = {
    "lag": ("lag", "ms"),
    "catch-up": ("catch_up", "changes/s"),
    "copy": ("copy", "s"),
}
"""The figure's name and unit in the result."""
IN_A_BLOCK = 4


def result(events: Sequence[ReplicationEvent], mode: Mode) -> ReplicationResult | None:
    """The figures of a cell; None if no figure has two complete blocks."""
    ratios: dict[str, Estimate] = {}
    levels: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}
    counted: list[ReplicationEvent] = []
    blocks = 0
    for kind in KINDS:
        complete = _complete(event for event in events if event.kind == kind)
        both = {here: [_log(kind, four, arm) for arm in ARMS] for here, four in complete.items()}
        ratio = interval(by_session({here: encrypted - plain for here, (plain, encrypted) in both.items()}), mode)
        if ratio is None:
            continue
        name, unit = FIGURES[kind]
        level = typical(by_session({here: sum(logs) / 2 for here, logs in both.items()}), mode)
        ratios[name] = to_estimate(ratio, mode, unit)
        for arm, value in around(level, ratio.centre).items():
            levels[arm][name] = value
        counted += [event for four in complete.values() for event in four]
        blocks = max(blocks, len(complete))
    if not ratios:
        return None
    return ReplicationResult(
        ratios=ratios,
        arms=levels,
        blocks=blocks,
        rate=statistics.median([event.rate for event in counted if event.kind == "lag"] or [0.0]),
        rows=max((event.rows for event in counted), default=0),
        bytes=max((event.bytes for event in counted), default=0),
        copied_by=next((event.by for event in counted if event.by), ""),
    )


def _log(kind: ReplicationKind, four: Sequence[ReplicationEvent], arm: str) -> float:
    """The mean log of an arm's two events of a block: ms, changes/s or s."""
    scale = {"lag": 1e3, "catch-up": 1.0, "copy": 1.0}[kind]
    values = [
        event.rows / event.seconds if kind == "catch-up" else scale * event.seconds
        for event in four
        if event.arm == arm
    ]
    return sum(map(math.log, values)) / len(values)


def _complete(events: Iterable[ReplicationEvent]) -> dict[tuple[int, int], list[ReplicationEvent]]:
    """Complete blocks: (session, block) -> four good events, two of each arm."""
    grouped: defaultdict[tuple[int, int], dict[int, ReplicationEvent]] = defaultdict(dict)
    for event in events:
        if not event.error and event.seconds > 0:
            grouped[event.session, event.block][event.position] = event
    return {here: list(four.values()) for here, four in grouped.items() if len(four) == IN_A_BLOCK}


def with_replication(cell: Cell, events: Sequence[ReplicationEvent], mode: Mode) -> Cell:
    """The cell with what its replicas did, if it may have numbers. Pure."""
    if cell.status != "ok" or not events:
        return cell
    warnings, found = list(cell.warnings), result(events, mode)
    if failed := [event for event in events if event.error]:
        kinds = ", ".join(f"{kind} {count} times" for kind, count in Counter(event.kind for event in failed).items())
        text = f"{len(failed)} of {len(events)} measurements of the replicas failed ({kinds}), and their blocks do not count; the last one, "
        warnings.append(Warning_(FAILED, f"{text}{failed[-1].arm} arm: {failed[-1].error}"))
    if found is not None and "lag" in found.ratios and "catch_up" in found.ratios:
        slower = min(levels["catch_up"] for levels in found.arms.values())
        if found.rate > slower:
            text = f"the lag grew while it was measured: clients made {found.rate:,.0f} changes/s, and a replica applies {slower:,.0f}/s; use a lower --rate"
            warnings.append(Warning_(BEHIND, text))
    return msgspec.structs.replace(cell, replication=found, warnings=warnings)
