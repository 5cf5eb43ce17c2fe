"""report: a StudyResult -> the published loop beside the same here, what the upgrade multiplies, and the split; 80 columns wide. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.layout import row, wrap
from ciphercost.model import StudyFigure, StudyResult
from ciphercost.studies import table
from ciphercost.studies.jdbc_tls import measured
from ciphercost.studies.jdbc_tls.compare import DRIVER, ENCRYPTION, LEFT, LOOP, SPLIT, SUM, UPGRADE, WARM_LONG
from ciphercost.studies.jdbc_tls.procedure import COLD, WARM
from ciphercost.studies.jdbc_tls.setups import CALLS, NEW, OLD

LABEL = 26
NONE = "-"


def render(study: StudyResult) -> str:
    """Three columns, then the levels, then where the difference comes from, then what one run each could not tell."""
    return "\n".join(_lines(study))


def _lines(study: StudyResult) -> Iterator[str]:
    yield from wrap(study.title)
    yield ""
    yield from loop(study)
    yield ""
    yield from ratios(study)
    yield ""
    yield from levels(study)
    for call in CALLS:
        if own := [each for each in study.figures if each.operation == call and each.figure.startswith(SPLIT)]:
            yield ""
            yield from split(call, own)
    yield ""
    yield from wrap(f"the same procedure here: {study.procedure}")
    yield ""
    yield from wrap(
        f"{WARM_LONG}: our own method, drivers and arms by turns in mirrored blocks, in virtual machines that stay up until hardly anything is compiled "
        "any more, every session on a server started anew; 95 % intervals by t over sessions, of cold and warm by t over rounds"
    )
    if study.findings:
        yield ""
        yield from table.findings(study)


def loop(study: StudyResult) -> Iterator[str]:
    yield f"{'the loop, once each, ms':<{LABEL}}{'as published':>16}{'the same here':>18}"
    yield from row(("(MySQL)", -LABEL - 16), (f"({study.server})", -LABEL - 34))
    for each in study.figures:
        if each.figure == LOOP:
            yield from row(
                (f"  {named(each)}", 0), (whole(each.published), -LABEL - 16), (whole(each.here), -LABEL - 34)
            )


def named(each: StudyFigure) -> str:
    return f"{each.workload}, {'TLS' if each.arm == 'encrypted' else 'without TLS'}"


def whole(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def ratios(study: StudyResult) -> Iterator[str]:
    """How many times as long an insert takes."""
    yield f"{OLD} → {NEW}: how many times as long an insert takes"
    yield f"{'':<{LABEL}}{'published':>10}{'here once':>10}{'cold (95 %)':>17}{'warm (95 %)':>17}"
    for call in CALLS:
        yield f"  {call}()"
        for name in (UPGRADE, DRIVER, ENCRYPTION):
            cold, warm, long = (find(study, call, f"{name}, {state}") for state in (COLD, WARM, WARM_LONG))
            shown = long if long and long.ours is not None else warm
            yield from row(
                (f"    {name}", 0),
                (times(cold.published if cold else None), -LABEL - 10),
                (times(cold.here if cold else None), -LABEL - 20),
                (interval(cold), -LABEL - 37),
                (interval(shown), -LABEL - 54),
            )


def times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def interval(each: StudyFigure | None) -> str:
    """`2.04 (1.9–2.2)`."""
    if each is None or each.ours is None or each.low is None or each.high is None:
        return NONE
    digits = 2 if each.high - each.low < 1 else 1
    return f"{each.ours:.{digits}f} ({each.low:.{digits}f}–{each.high:.{digits}f})"


def levels(study: StudyResult) -> Iterator[str]:
    yield f"{'µs an insert':<{LABEL}}{'first rows, cold':>18}{'same Java, warm':>18}{WARM_LONG:>18}"
    for call in CALLS:
        own = [each for each in study.figures if each.operation == call and each.unit == "µs" and each.arm != "cost"]
        if own:
            yield f"  {call}()"
        for name, arm in dict.fromkeys((each.workload, each.arm) for each in own):
            by_state = {each.figure: each for each in own if (each.workload, each.arm) == (name, arm)}
            label = named(next(iter(by_state.values())))
            cold, warm, long = (plus_minus(by_state.get(state)) for state in (COLD, WARM, WARM_LONG))
            yield from row((f"    {label}", 0), (cold, -LABEL - 18), (warm, -LABEL - 36), (long, -LABEL - 54))


def plus_minus(each: StudyFigure | None) -> str:
    if each is None or each.ours is None:
        return NONE
    if each.low is None or each.high is None:
        return f"{each.ours:.1f}"
    return f"{each.ours:.1f} ± {(each.high - each.low) / 2:.1f}"


def split(call: str, own: list[StudyFigure]) -> Iterator[str]:
    """The parts that the upgrade's time comes from."""
    by_name = {each.figure.removeprefix(f"{SPLIT}: "): each for each in own}
    total = by_name[measured.WHOLE].ours or 0.0
    yield f"what the upgrade adds to a cold insert by {call}(), and from what"
    yield f"{'':<{LABEL}}{'µs':>10}  {'95 % interval':<20}{'of the whole':>14}"
    for name, words in PARTS.items():
        each = by_name[name]
        assert each.ours is not None
        assert each.low is not None
        assert each.high is not None
        share = f"{round(100 * each.ours / total) or 0} %" if total else NONE  # never -0
        if name == measured.CHATTER and each.low == each.high:
            yield f"  {words:<{LABEL - 2}}{'0':>10}  {'the same statements':<20}{share:>14}"
            continue
        yield f"  {words:<{LABEL - 2}}{each.ours:>10.1f}  {f'{each.low:.1f} to {each.high:.1f}':<20}{share:>14}"
    adds_up = (by_name[LEFT].low or 0.0) <= 0 <= (by_name[LEFT].high or 0.0)
    words = "the parts add up to the whole within the intervals"
    if not adds_up:
        words = "! the parts do NOT add up to the whole: the intervals leave a difference, so one of them is not what it is called"
    elif (by_name[LEFT].high or 0.0) - (by_name[LEFT].low or 0.0) > abs(total):
        words = (
            "! the parts add up to the whole, but what may be left over is half of it: more rounds (--runs) would tell"
        )
    yield from wrap(words, "  ", "    ")


PARTS = {
    measured.TLS: "TLS",
    measured.CHATTER: "chatter",
    measured.WARMING: "JVM warm-up",
    measured.REST: "the rest of the driver",
    SUM: "sum of the parts",
    measured.WHOLE: "the whole, by itself",
    LEFT: "left over",
}


def find(study: StudyResult, call: str, name: str) -> StudyFigure | None:
    return next((each for each in study.figures if each.operation == call and each.figure == name), None)
