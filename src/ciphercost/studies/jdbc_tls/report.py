"""The study's tables: the published loop beside the same here, the upgrade's time ratios, and the split. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies.costs import change, with_interval
from ciphercost.studies.jdbc_tls import measured
from ciphercost.studies.jdbc_tls.compare import (
    ANSWERED,
    DRIVER,
    ENCRYPTION,
    LEFT,
    LOOP,
    SENT,
    SPLIT,
    SUM,
    UPGRADE,
    WARM_LONG,
)
from ciphercost.studies.jdbc_tls.procedure import COLD, WARM
from ciphercost.studies.jdbc_tls.setups import CALLS, NEW, OLD
from ciphercost.studies.sheet import Sheet, cite

NONE = "-"
METHOD = (
    f"{WARM_LONG}: our own method, drivers and arms interleaved in mirrored blocks, in JVMs that stay up until hardly anything is being "
    "compiled; the server restarts for every session; 95 % intervals by t over sessions, for cold and warm by t over rounds"
)


def sheets(study: StudyResult) -> Iterator[Sheet]:
    """The loop, then the ratios, the levels, and where the difference comes from."""
    yield loop(study)
    yield from wire(study)
    yield ratios(study)
    yield levels(study)
    for call in CALLS:
        if own := [each for each in study.figures if each.operation == call and each.figure.startswith(SPLIT)]:
            yield split(call, own)


def loop(study: StudyResult) -> Sheet:
    rows = [
        (named(each), cite(whole(each.published), each), whole(each.here))
        for each in study.figures
        if each.figure == LOOP
    ]
    return Sheet("The loop, once each, ms", ("", "as published\n(MySQL)", f"the same here\n({study.server})"), rows)


def wire(study: StudyResult) -> Iterator[Sheet]:
    """An insert and its answer, for each setup observed on the wire."""
    sent = [each for each in study.figures if each.figure == SENT]
    answers = {(each.operation, each.arm, each.workload): each for each in study.figures if each.figure == ANSWERED}
    rows: list[tuple[str, ...]] = []
    for call in dict.fromkeys(each.operation for each in sent):
        rows.append((f"{call}()",))
        for each in (one for one in sent if one.operation == call):
            both = (each, answers[each.operation, each.arm, each.workload])
            rows.append((named(each), *(text for one in both for text in (cite(whole(one.published), one), size(one)))))
    head = ("", "insert,\npublished", "\nhere", "OK,\npublished", "\nhere")
    note = (
        "Without TLS a MySQL packet with its header, with TLS a record without its header. The post shows both for "
        f"{NEW} with TLS by an unknown call; `in 2`: an insert takes two messages."
    )
    if sent:
        yield Sheet("One insert and its OK on the wire, bytes", head, rows, note)


def size(each: StudyFigure) -> str:
    """`96`, or `208 in 2` messages."""
    return f"{whole(each.here)} in {each.n}" if each.n > 1 else whole(each.here)


def named(each: StudyFigure) -> str:
    return f"{each.workload}, {'TLS' if each.arm == 'encrypted' else 'without TLS'}"


def whole(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def ratios(study: StudyResult) -> Sheet:
    """How much longer an insert takes."""
    rows: list[tuple[str, ...]] = []
    for call in CALLS:
        rows.append((f"{call}()",))
        for name in (UPGRADE, DRIVER, ENCRYPTION):
            cold, warm, long = (find(study, call, f"{name}, {state}") for state in (COLD, WARM, WARM_LONG))
            shown = long if long and long.ours is not None else warm
            published = cite(change(cold.published if cold else None), cold)
            here = change(cold.here if cold else None)
            rows.append((name, published, here, *(with_interval(each) if each else NONE for each in (cold, shown))))
    head = ("", "published", "here once", "cold (95 %)", "warm (95 %)")
    return Sheet(f"{OLD} → {NEW}: how much more time an insert takes", head, rows)


def levels(study: StudyResult) -> Sheet:
    rows: list[tuple[str, ...]] = []
    for call in CALLS:
        own = [each for each in study.figures if each.operation == call and each.unit == "µs" and each.arm != "cost"]
        if own:
            rows.append((f"{call}()",))
        for name, arm in dict.fromkeys((each.workload, each.arm) for each in own):
            by_state = {each.figure: each for each in own if (each.workload, each.arm) == (name, arm)}
            label = named(next(iter(by_state.values())))
            rows.append((label, *(plus_minus(by_state.get(state)) for state in (COLD, WARM, WARM_LONG))))
    return Sheet("µs an insert", ("", "first rows, cold", "same Java, warm", WARM_LONG), rows)


def plus_minus(each: StudyFigure | None) -> str:
    if each is None or each.ours is None:
        return NONE
    if each.low is None or each.high is None:
        return f"{each.ours:.1f}"
    return f"{each.ours:.1f} ± {(each.high - each.low) / 2:.1f}"


def split(call: str, own: list[StudyFigure]) -> Sheet:
    """The parts of the time that the upgrade adds."""
    by_name = {each.figure.removeprefix(f"{SPLIT}: "): each for each in own}
    total = by_name[measured.WHOLE].ours or 0.0
    rows = []
    for name, words in PARTS.items():
        each = by_name[name]
        assert each.ours is not None
        assert each.low is not None
        assert each.high is not None
        share = f"{round(100 * each.ours / total) or 0} %" if total else NONE  # never -0
        if name == measured.CHATTER and each.low == each.high:
            rows.append((words, "0", "the same statements", share))
            continue
        rows.append((words, f"{each.ours:.1f}", f"{each.low:.1f} to {each.high:.1f}", share))
    adds_up = (by_name[LEFT].low or 0.0) <= 0 <= (by_name[LEFT].high or 0.0)
    note = "the parts add up to the whole within the intervals"
    if not adds_up:
        note = "! the parts do NOT add up to the whole: the intervals leave a difference, so at least one part measures something else than its name"
    elif (by_name[LEFT].high or 0.0) - (by_name[LEFT].low or 0.0) > abs(total):
        note = "! the parts add up to the whole, but the remainder may be as large as half of it; more rounds (--runs) would narrow it"
    title = f"What the upgrade adds to a cold insert by {call}(), and from what"
    return Sheet(title, ("", "µs", "95 % interval", "of the whole"), rows, note)


PARTS = {
    measured.TLS: "TLS",
    measured.CHATTER: "additional queries",
    measured.WARMING: "JVM warm-up",
    measured.REST: "the rest of the driver",
    SUM: "sum of the parts",
    measured.WHOLE: "the whole, by itself",
    LEFT: "left over",
}


def find(study: StudyResult, call: str, name: str) -> StudyFigure | None:
    return next((each for each in study.figures if each.operation == call and each.figure == name), None)
