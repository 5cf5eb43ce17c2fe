"""What storms do to the established connections of both arms, and how soon the new ones are back, from the storms' slices. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from ciphercost.estimate.histogram import bounds, quantiles
from ciphercost.estimate.sessions_or_blocks import by_session, interval, typical
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import kinds_of
from ciphercost.estimate.to_estimate import around, to_estimate
from ciphercost.model.estimate import Estimate
from ciphercost.model.histogram import decode
from ciphercost.model.result import Cell, Warning_
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.model.storms import StormArm, StormResult, StormSlice

REFUSED, FAILED, NOTHING = "connections-refused", "storms-failed", "storms-nothing-done"
PARTS = ("before", "during", "after")
QUANTILES = (("p50", 0.5), ("p99", 0.99))
LEAST_BEYOND = 10
"""Operations beyond a quantile, in each storm, that it needs."""
LEAST_BLOCKS = 2
UNITS = {"throughput": "operations/s"}
Figure = Mapping[tuple[int, int], float]
"""The log of a figure of one arm, by session and block."""


def result(slices: Sequence[StormSlice], mode: Mode) -> StormResult | None:
    """The storms of a cell; None with fewer than two complete blocks."""
    blocks = complete(slices)
    if len(blocks) < LEAST_BLOCKS:
        return None
    by_arm: dict[Arm, dict[str, dict[tuple[int, int], float]]] = {arm: defaultdict(dict) for arm in ARMS}
    for here, four in blocks.items():
        for arm in ARMS:
            for name, value in figures([record for record in four if record.arm == arm]).items():
                by_arm[arm][name][here] = value
    ratios, levels = {}, {arm: dict[str, float]() for arm in ARMS}
    for name in sorted(set(by_arm["plain"]) & set(by_arm["encrypted"])):
        plain, encrypted = (by_arm[arm][name] for arm in ARMS)
        if (ratio := _ratio(encrypted, plain, mode)) is None:
            continue
        level = typical(by_session({here: (plain[here] + encrypted[here]) / 2 for here in plain}), mode)
        ratios[name] = to_estimate(ratio, mode, UNITS.get(name.partition("_")[0], "ms"))
        for arm, value in around(level, ratio.centre).items():
            levels[arm][name] = value
    counted = [record for four in blocks.values() for record in four]
    arms: dict[str, StormArm] = {
        arm: _arm(by_arm[arm], levels[arm], [one for one in counted if one.arm == arm], mode) for arm in ARMS
    }
    return StormResult(
        kind=counted[0].kind,
        asked=counted[0].asked,
        rate=counted[0].rate,
        seconds=counted[0].length,
        wanted=counted[0].wanted,
        blocks=len(blocks),
        ratios=ratios,
        arms=arms,
        change=_changes(by_arm, [name for name in arms["plain"].change if name in arms["encrypted"].change], mode),
    )


def _arm(values: Mapping[str, Figure], levels: dict[str, float], slices: Sequence[StormSlice], mode: Mode) -> StormArm:
    """One arm: its levels, its own change against the part before, and what was refused."""
    change = {}
    for name in values:
        what, _, part = name.rpartition("_")
        if part not in PARTS[1:] or _before(name) not in values:
            continue
        if (over := _ratio(values[name], values[_before(name)], mode)) is not None:
            change[name] = to_estimate(over, mode, UNITS.get(what, "ms"))
    kinds: Counter[str] = Counter()
    for one in slices:
        kinds.update(kinds_of(one.back, f"storm.jsonl: session {one.session}, block {one.block}"))
    return StormArm(
        levels=levels,
        change=change,
        wanted=sum(one.wanted for one in slices),
        refused=sum(one.back.errors for one in slices if one.back),
        reasons=" ".join(f"{code}={count}" for code, count in kinds.most_common()),
    )


def _changes(by_arm: Mapping[Arm, Mapping[str, Figure]], names: Iterable[str], mode: Mode) -> dict[str, Estimate]:
    """How the change of the encrypted arm compares with that of the plain one in the same blocks."""
    changes = {}
    for name in names:
        plain, encrypted = (_minus(by_arm[arm][name], by_arm[arm][_before(name)]) for arm in ARMS)
        if (over := _ratio(encrypted, plain, mode)) is not None:
            changes[name] = to_estimate(over, mode, UNITS.get(name.rpartition("_")[0], "ms"))
    return changes


def _before(name: str) -> str:
    """`throughput_before` for `throughput_during`."""
    return f"{name.rpartition('_')[0]}_{PARTS[0]}"


def figures(both: Sequence[StormSlice]) -> dict[str, float]:
    """Logs of the figures of an arm's two storms in a block: operations/s and ms. A part with too few operations has none."""
    logs: dict[str, float] = {}
    for part in PARTS:
        answers = [answer for one in both if (answer := getattr(one, part)) is not None and answer.operations]
        if len(answers) < len(both):
            continue
        logs[f"throughput_{part}"] = sum(math.log(answer.done / both[0].length) for answer in answers) / len(both)
        logs |= _quantiles(answers, "latency_{}_" + part)
    back = [one.back for one in both if one.back is not None and one.back.operations]
    if len(back) == len(both):
        logs |= _quantiles(back, "back_{}")
        tops = [decode(answer.histogram) for answer in back]
        lasts = [float(bounds(top.layout, top.indices)[1].max()) / 1e6 for top in tops]
        logs["back_last"] = sum(map(math.log, lasts)) / len(lasts)
    if all(one.reconnect_s for one in both):
        logs["reconnect"] = sum(math.log(one.reconnect_s * 1e3) for one in both) / len(both)
    return logs


def _quantiles(answers: Sequence[AgentSlice], name: str) -> dict[str, float]:
    """Mean logs of the quantiles of answers that all have LEAST_BEYOND operations beyond them, ms.

    Not those of all operations together, which a drift between two storms would make quantiles of a mixture.
    """
    few = min(answer.operations for answer in answers)
    told = [(label, share) for label, share in QUANTILES if few * (1 - share) >= LEAST_BEYOND - 1e-9]
    values = np.array([quantiles(decode(answer.histogram), [share for _, share in told]) for answer in answers])
    logs = np.log(values / 1e6).mean(axis=0)
    return {name.format(label): float(value) for (label, _), value in zip(told, logs, strict=True)}


def complete(slices: Iterable[StormSlice]) -> dict[tuple[int, int], list[StormSlice]]:
    """Complete blocks: (session, block) -> four good storms in mirrored order. A failed lead-in makes a block incomplete."""
    grouped: defaultdict[tuple[int, int], dict[int, StormSlice]] = defaultdict(dict)
    spoilt: set[tuple[int, int]] = set()
    for one in slices:
        if one.error:
            spoilt.add((one.session, one.block))
        elif one.position:
            grouped[one.session, one.block][one.position] = one
    return {
        here: [positions[number] for number in (1, 2, 3, 4)]
        for here, positions in grouped.items()
        if here not in spoilt and sorted(positions) == [1, 2, 3, 4]
    }


def with_storm(cell: Cell, slices: Sequence[StormSlice], mode: Mode) -> Cell:
    """The cell with its storms, if it had any and may have numbers. Pure."""
    if cell.status != "ok" or not slices:
        return cell
    warnings, found = list(cell.warnings), result(slices, mode)
    if failed := [one for one in slices if one.error]:
        what = "their blocks do not count" if found else "no block is complete, so there are no figures of storms"
        text = f"{len(failed)} of {len(slices)} storms failed, and {what}; the last one, {failed[-1].arm} arm: {failed[-1].error}"
        warnings.append(Warning_(FAILED, text))
    if found is None:
        return msgspec.structs.replace(cell, warnings=warnings)
    if refused := {arm: of.refused for arm, of in found.arms.items() if of.refused}:
        words = "; ".join(
            f"{arm}: {count:,} of {found.arms[arm].wanted:,} ({found.arms[arm].reasons})"
            for arm, count in refused.items()
        )
        text = f"new connections failed in the storms, and the times of those that succeeded do not contain them: {words}; raise the server's connection limit"
        warnings.append(Warning_(REFUSED, text))
    if text := _nothing_done([one for four in complete(slices).values() for one in four]):
        warnings.append(Warning_(NOTHING, text))
    return msgspec.structs.replace(cell, storm=found, warnings=warnings)


def _nothing_done(storms: Sequence[StormSlice]) -> str:
    """`the established connections did nothing in 1 of 16 storms (plain: during), …`; empty: they worked in all. Pure."""
    idle: Counter[str] = Counter()
    which = set()
    for number, one in enumerate(storms):
        for part in PARTS:
            if (answer := getattr(one, part)) is not None and not answer.operations:
                idle[f"{one.arm}: {part}"] += 1
                which.add(number)
    if not which:
        return ""
    where = ", ".join(sorted(idle))
    return (
        f"the established connections ended no operation in a part of {len(which)} of {len(storms)} storms ({where}); those parts are compared neither "
        "with each other nor between the arms; set slice_seconds in a spec file for longer ones"
    )


def _ratio(one: Figure, other: Figure, mode: Mode) -> Interval | None:
    """The log of one ÷ other; None unless the same blocks have both, and they are enough."""
    if one.keys() != other.keys():
        return None
    return interval(by_session(_minus(one, other)), mode)


def _minus(one: Figure, other: Figure) -> Figure:
    """Both must have the same blocks."""
    return {here: one[here] - other[here] for here in one}
