"""The study's tables: all servers, each server's operations and loads, growth, and equal ciphers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ciphercost import studies
from ciphercost.estimate.notation import number
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies.column_functions import names, procedure, published, servers
from ciphercost.studies.costs import TOO_WIDE, change, plus_minus, with_interval
from ciphercost.studies.sheet import Sheet, cite
from ciphercost.studies.table import NOT_PUBLISHED

METHOD = (
    "our method: arms interleaved; a slice is a whole cycle (insert, select, update, delete), four slices in mirrored order after a short "
    "discarded one; the server restarts for every session; 95 % intervals by t over sessions, or over blocks or loads where the table "
    "names them"
)


def sheets(study: StudyResult) -> Iterator[Sheet]:
    """The study's one figure of each server, then the tables that it comes from."""
    yield headlines(study)
    for engine in dict.fromkeys(each.engine for each in study.figures if each.load is not None):
        yield from server(study, engine)
    yield from growth(study)
    yield from equal(study)


def headlines(study: StudyResult) -> Sheet:
    """Three columns, one row per server and version of the statements."""
    rows: list[tuple[str, ...]] = []
    notes = []
    for each in (one for one in study.figures if one.operation == names.ALL_OPERATIONS):
        mine = ours(each)
        if each.workload == procedure.STUDYS:
            said = plus_minus(each.published, each.published_sd) if each.published is not None else NOT_PUBLISHED
            rows.append((each.engine, cite(said, each), plus_minus(each.here, each.here_sd), mine))
            printed = published.servers(studies.get(study.study))[each.engine]
            notes.append(f"{each.engine} {printed.version}, {printed.cipher}, here {each.mechanism}")
        else:
            rows.append((f"{each.engine}, {each.workload}", "", "", mine))
    head = ("", "as published", "the same here", "our method here")
    note = f"published on {'; '.join(notes)}. `{procedure.TUNED}`: the same with other statements"
    return Sheet("Cost in time, mean over operations and loads", head, rows, note)


def ours(cost: StudyFigure) -> str:
    """`1.4 % more (1.1–1.8 %)`; an interval that does not come from sessions names its basis."""
    said = with_interval(cost)
    rests = f", {cost.n} {cost.of}" if cost.of not in ("", "sessions") and cost.low is not None else ""
    return said if said == TOO_WIDE else said + rests


# ── a server ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def server(study: StudyResult, engine: str) -> Iterator[Sheet]:
    """Times and their cost, then sampled CPU and RAM, for every operation and load; then figures that only our method has."""
    own = [each for each in study.figures if each.engine == engine and each.load is not None]
    name = next((each.strip() for each in study.server.split(",") if each.split()[:1] == [engine]), engine)
    first = [each for each in own if each.workload == procedure.STUDYS]
    title = f"{name}, {own[0].mechanism}"
    printed = studies.get(study.study)
    levels = ("", "as published\nplain → encrypted", "the same here\nplain → encrypted")
    for figure, unit in ((names.TIME, "s"), (names.CPU, "%"), (names.MEMORY, "MB")):
        of = [each for each in first if each.figure == figure]
        rows = [both(*key, _by_arm(of, *key, figure)) for key in _keys(of)]
        note = f"mean ± sd over the runs; published: {published.source(printed, figure)}"
        if figure == names.MEMORY:
            note += ". The study read whole tenths of a GB there (about 107 MB)"
        yield Sheet(f"{title}: {figure}, {unit}", levels, rows, note)
        if figure == names.TIME:
            head = ("", "as\npublished", "the same\nhere", "our method\nhere")
            yield Sheet(f"{title}: cost in time", head, [cost(*key, _by_arm(of, *key, figure)) for key in _keys(of)])
    second = [each for each in own if each.workload == procedure.TUNED]
    for heading, figures, figure in (
        ("our method, the server's CPU time, ms", first, names.SERVER_CPU),
        (f"our method, time of the statements of `{procedure.TUNED}`, ms", second, names.TIME),
    ):
        if keys := _keys([each for each in figures if each.figure == figure]):
            turned = [turns(*key, _by_arm(figures, *key, figure)) for key in keys]
            yield Sheet(f"{title}: {heading}", ("", "plain → encrypted", "cost"), turned)


def _keys(figures: Sequence[StudyFigure]) -> list[tuple[str, float]]:
    return list(dict.fromkeys((each.operation, each.load or 0.0) for each in figures))


def _by_arm(figures: Sequence[StudyFigure], operation: str, load: float, figure: str) -> dict[str, StudyFigure]:
    return {each.arm: each for each in figures if (each.operation, each.load, each.figure) == (operation, load, figure)}


def _label(operation: str, load: float) -> str:
    return f"{operation:<6}{load:>8,.0f}"


def both(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    """Both arms' levels, published and here."""
    arms = [by_arm.get(arm) for arm in ARMS]
    then = [spread(each.published, each.published_sd) if each else "-" for each in arms]
    here = [spread(each.here, each.here_sd) if each else "-" for each in arms]
    return _label(operation, load), cite(arrow(then), *arms), arrow(here)


def arrow(levels: Sequence[str]) -> str:
    """`4.10 ± 0.41 → 4.09 ± 0.46`, or `-` if neither arm has a level."""
    return "-" if set(levels) == {"-"} else " → ".join(levels)


def cost(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    each = by_arm.get("cost")
    if each is None:
        return _label(operation, load), "-", "-", "-"
    return _label(operation, load), cite(change(each.published), each), change(each.here), ours(each)


def turns(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    both = [number(each.ours * 1e3) if (each := by_arm.get(arm)) and each.ours is not None else "-" for arm in ARMS]
    cost = by_arm.get("cost")
    return _label(operation, load), " → ".join(both), ours(cost) if cost else "-"


def spread(mean: float | None, sd: float | None, scale: float = 1.0) -> str:
    """`81.2 ± 2.1`: the mean to three digits, the spread to the same decimal place."""
    if mean is None:
        return "-"
    mean *= scale
    digits = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else 0
    return f"{mean:,.{digits}f}" + (f" ± {sd * scale:,.{digits}f}" if sd is not None else "")


# ── growth, equal ciphers ─────────────────────────────────────────────────────────────────────────────────────────────


def growth(study: StudyResult) -> Iterator[Sheet]:
    """b of time ~ load^b, for both versions of the statements and both arms."""
    own = [each for each in study.figures if each.figure == names.GROWTH]
    if not own:
        return
    loads = len({each.load for each in study.figures if each.load is not None and each.ours is not None})
    points = (
        "two loads: a slope of two points; ± is half of a 95 % interval over sessions"
        if loads == 2
        else "least squares of logarithms; ± is half of the fit's 95 % interval"
    )
    rows = []
    for engine, operation in dict.fromkeys((each.engine, each.operation) for each in own):
        columns = []
        for version in (procedure.STUDYS, procedure.TUNED):
            for arm in ARMS:
                found = [
                    e for e in own if (e.engine, e.operation, e.workload, e.arm) == (engine, operation, version, arm)
                ]
                columns.append(exponent(found[0]) if found else "-")
        rows.append((f"{engine} {operation}", *columns))
    head = ("", *(f"{version}\n{arm}" for version in (procedure.STUDYS, procedure.TUNED) for arm in ARMS))
    yield Sheet(f"Growth with the load, b of time ~ load^b ({points})", head, rows)


def exponent(figure: StudyFigure) -> str:
    """`1.96 ± 0.08`."""
    if figure.ours is None:
        return "-"
    half = f" ± {(figure.high - figure.low) / 2:.2f}" if figure.low is not None and figure.high is not None else ""
    return f"{figure.ours:.2f}{half}"


def equal(study: StudyResult) -> Iterator[Sheet]:
    """The same mode and key length on each server."""
    own = [each for each in study.figures if each.operation == names.EQUAL]
    if not own:
        return
    rows: list[tuple[str, ...]] = []
    for engine in dict.fromkeys(each.engine for each in own):
        rows.append((f"{engine}, {next(each.mechanism for each in own if each.engine == engine)}",))
        for figure in dict.fromkeys(each.figure for each in own):
            by_arm = {each.arm: each for each in own if (each.engine, each.figure) == (engine, figure)}
            if "cost" in by_arm:
                rows.append(_equal_row(figure, by_arm))
    title = (
        f"At equal cipher, which the study could not compare: {servers.EQUAL_CIPHER}, a random IV for each value, workload "
        f"{procedure.TUNED}, by our method"
    )
    yield Sheet(title, ("", "plain → encrypted", "cost"), rows)


def _equal_row(figure: str, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    unit = by_arm["plain"].unit
    both = " → ".join(number(each.ours) if (each := by_arm[arm]).ours is not None else "-" for arm in ARMS)
    return figure + (f", {unit}" if unit == "µs" else ""), both, ours(by_arm["cost"])
