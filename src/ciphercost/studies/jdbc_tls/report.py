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
        if figures := [
            figure for figure in study.figures if figure.operation == call and figure.figure.startswith(SPLIT)
        ]:
            yield split(call, figures)


def loop(study: StudyResult) -> Sheet:
    rows = [
        (named(figure), cite(whole(figure.published), figure), whole(figure.here))
        for figure in study.figures
        if figure.figure == LOOP
    ]
    return Sheet("The loop, once each, ms", ("", "as published\n(MySQL)", f"the same here\n({study.server})"), rows)


def wire(study: StudyResult) -> Iterator[Sheet]:
    """An insert and its answer, for each setup observed on the wire."""
    sent = [figure for figure in study.figures if figure.figure == SENT]
    answers = {
        (figure.operation, figure.arm, figure.workload): figure for figure in study.figures if figure.figure == ANSWERED
    }
    rows: list[tuple[str, ...]] = []
    for call in dict.fromkeys(figure.operation for figure in sent):
        rows.append((f"{call}()",))
        for figure in (one for one in sent if one.operation == call):
            both = (figure, answers[figure.operation, figure.arm, figure.workload])
            rows.append(
                (named(figure), *(text for one in both for text in (cite(whole(one.published), one), size(one))))
            )
    head = ("", "insert,\npublished", "\nhere", "OK,\npublished", "\nhere")
    note = (
        "Without TLS a MySQL packet with its header, with TLS a record without its header. The post shows both for "
        f"{NEW} with TLS by an unknown call; `in 2`: an insert takes two messages."
    )
    if sent:
        yield Sheet("One insert and its OK on the wire, bytes", head, rows, note)


def size(figure: StudyFigure) -> str:
    """`96`, or `208 in 2` messages."""
    return f"{whole(figure.here)} in {figure.n}" if figure.n > 1 else whole(figure.here)


def named(figure: StudyFigure) -> str:
    return f"{figure.workload}, {'TLS' if figure.arm == 'encrypted' else 'without TLS'}"


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
            rows.append(
                (name, published, here, *(with_interval(figure) if figure else NONE for figure in (cold, shown)))
            )
    head = ("", "published", "here once", "cold (95 %)", "warm (95 %)")
    return Sheet(f"{OLD} → {NEW}: how much more time an insert takes", head, rows)


def levels(study: StudyResult) -> Sheet:
    rows: list[tuple[str, ...]] = []
    for call in CALLS:
        of_call = [
            figure
            for figure in study.figures
            if figure.operation == call and figure.unit == "µs" and figure.arm != "cost"
        ]
        if of_call:
            rows.append((f"{call}()",))
        for name, arm in dict.fromkeys((figure.workload, figure.arm) for figure in of_call):
            by_state = {figure.figure: figure for figure in of_call if (figure.workload, figure.arm) == (name, arm)}
            label = named(next(iter(by_state.values())))
            rows.append((label, *(plus_minus(by_state.get(state)) for state in (COLD, WARM, WARM_LONG))))
    return Sheet("µs an insert", ("", "first rows, cold", "same Java, warm", WARM_LONG), rows)


def plus_minus(figure: StudyFigure | None) -> str:
    if figure is None or figure.ours is None:
        return NONE
    if figure.low is None or figure.high is None:
        return f"{figure.ours:.1f}"
    return f"{figure.ours:.1f} ± {(figure.high - figure.low) / 2:.1f}"


def split(call: str, figures: list[StudyFigure]) -> Sheet:
    """The parts of the time that the upgrade adds."""
    by_name = {figure.figure.removeprefix(f"{SPLIT}: "): figure for figure in figures}
    total = by_name[measured.WHOLE].ours or 0.0
    rows = []
    for name, words in PARTS.items():
        figure = by_name[name]
        assert figure.ours is not None
        assert figure.low is not None
        assert figure.high is not None
        share = f"{round(100 * figure.ours / total) or 0} %" if total else NONE  # never -0
        if name == measured.CHATTER and figure.low == figure.high:
            rows.append((words, "0", "the same statements", share))
            continue
        rows.append((words, f"{figure.ours:.1f}", f"{figure.low:.1f} to {figure.high:.1f}", share))
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
    return next((figure for figure in study.figures if figure.operation == call and figure.figure == name), None)
