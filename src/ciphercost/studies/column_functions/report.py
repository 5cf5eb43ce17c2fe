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
    for engine in dict.fromkeys(figure.engine for figure in study.figures if figure.load is not None):
        yield from server(study, engine)
    yield from growth(study)
    yield from equal(study)


def headlines(study: StudyResult) -> Sheet:
    """Three columns, one row per server and version of the statements."""
    rows: list[tuple[str, ...]] = []
    notes = []
    for figure in (one for one in study.figures if one.operation == names.ALL_OPERATIONS):
        mine = ours(figure)
        if figure.workload == procedure.STUDYS:
            published_text = (
                plus_minus(figure.published, figure.published_sd) if figure.published is not None else NOT_PUBLISHED
            )
            rows.append((figure.engine, cite(published_text, figure), plus_minus(figure.here, figure.here_sd), mine))
            printed = published.servers(studies.get(study.study))[figure.engine]
            notes.append(f"{figure.engine} {printed.version}, {printed.cipher}, here {figure.mechanism}")
        else:
            rows.append((f"{figure.engine}, {figure.workload}", "", "", mine))
    head = ("", "as published", "the same here", "our method here")
    note = f"published on {'; '.join(notes)}. `{procedure.TUNED}`: the same with other statements"
    return Sheet("Cost in time, mean over operations and loads", head, rows, note)


def ours(cost: StudyFigure) -> str:
    """`1.4 % more (1.1–1.8 %)`; an interval that does not come from sessions names its basis."""
    text = with_interval(cost)
    rests = f", {cost.n} {cost.of}" if cost.of not in ("", "sessions") and cost.low is not None else ""
    return text if text == TOO_WIDE else text + rests


# ── a server ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def server(study: StudyResult, engine: str) -> Iterator[Sheet]:
    """Times and their cost, then sampled CPU and RAM, for every operation and load; then figures that only our method has."""
    entries = [entry for entry in study.figures if entry.engine == engine and entry.load is not None]
    name = next((part.strip() for part in study.server.split(",") if part.split()[:1] == [engine]), engine)
    first = [entry for entry in entries if entry.workload == procedure.STUDYS]
    title = f"{name}, {entries[0].mechanism}"
    printed = studies.get(study.study)
    levels = ("", "as published\nplain → encrypted", "the same here\nplain → encrypted")
    for figure, unit in ((names.TIME, "s"), (names.CPU, "%"), (names.MEMORY, "MB")):
        of = [entry for entry in first if entry.figure == figure]
        rows = [both(*key, _by_arm(of, *key, figure)) for key in _keys(of)]
        note = f"mean ± sd over the runs; published: {published.source(printed, figure)}"
        if figure == names.MEMORY:
            note += ". The study read whole tenths of a GB there (about 107 MB)"
        yield Sheet(f"{title}: {figure}, {unit}", levels, rows, note)
        if figure == names.TIME:
            head = ("", "as\npublished", "the same\nhere", "our method\nhere")
            yield Sheet(f"{title}: cost in time", head, [cost(*key, _by_arm(of, *key, figure)) for key in _keys(of)])
    second = [entry for entry in entries if entry.workload == procedure.TUNED]
    for heading, figures, figure in (
        ("our method, the server's CPU time, ms", first, names.SERVER_CPU),
        (f"our method, time of the statements of `{procedure.TUNED}`, ms", second, names.TIME),
    ):
        if keys := _keys([entry for entry in figures if entry.figure == figure]):
            turned = [turns(*key, _by_arm(figures, *key, figure)) for key in keys]
            yield Sheet(f"{title}: {heading}", ("", "plain → encrypted", "cost"), turned)


def _keys(figures: Sequence[StudyFigure]) -> list[tuple[str, float]]:
    return list(dict.fromkeys((figure.operation, figure.load or 0.0) for figure in figures))


def _by_arm(figures: Sequence[StudyFigure], operation: str, load: float, figure: str) -> dict[str, StudyFigure]:
    return {
        entry.arm: entry
        for entry in figures
        if (entry.operation, entry.load, entry.figure) == (operation, load, figure)
    }


def _label(operation: str, load: float) -> str:
    return f"{operation:<6}{load:>8,.0f}"


def both(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    """Both arms' levels, published and here."""
    arms = [by_arm.get(arm) for arm in ARMS]
    then = [spread(figure.published, figure.published_sd) if figure else "-" for figure in arms]
    here = [spread(figure.here, figure.here_sd) if figure else "-" for figure in arms]
    return _label(operation, load), cite(arrow(then), *arms), arrow(here)


def arrow(levels: Sequence[str]) -> str:
    """`4.10 ± 0.41 → 4.09 ± 0.46`, or `-` if neither arm has a level."""
    return "-" if set(levels) == {"-"} else " → ".join(levels)


def cost(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    figure = by_arm.get("cost")
    if figure is None:
        return _label(operation, load), "-", "-", "-"
    return _label(operation, load), cite(change(figure.published), figure), change(figure.here), ours(figure)


def turns(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    both = [
        number(figure.ours * 1e3) if (figure := by_arm.get(arm)) and figure.ours is not None else "-" for arm in ARMS
    ]
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
    exponents = [figure for figure in study.figures if figure.figure == names.GROWTH]
    if not exponents:
        return
    loads = len({figure.load for figure in study.figures if figure.load is not None and figure.ours is not None})
    points = (
        "two loads: a slope of two points; ± is half of a 95 % interval over sessions"
        if loads == 2
        else "least squares of logarithms; ± is half of the fit's 95 % interval"
    )
    rows = []
    for engine, operation in dict.fromkeys((figure.engine, figure.operation) for figure in exponents):
        columns = []
        for version in (procedure.STUDYS, procedure.TUNED):
            for arm in ARMS:
                matching = [
                    e
                    for e in exponents
                    if (e.engine, e.operation, e.workload, e.arm) == (engine, operation, version, arm)
                ]
                columns.append(exponent(matching[0]) if matching else "-")
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
    entries = [entry for entry in study.figures if entry.operation == names.EQUAL]
    if not entries:
        return
    rows: list[tuple[str, ...]] = []
    for engine in dict.fromkeys(entry.engine for entry in entries):
        rows.append((f"{engine}, {next(entry.mechanism for entry in entries if entry.engine == engine)}",))
        for figure in dict.fromkeys(entry.figure for entry in entries):
            by_arm = {entry.arm: entry for entry in entries if (entry.engine, entry.figure) == (engine, figure)}
            if "cost" in by_arm:
                rows.append(_equal_row(figure, by_arm))
    title = (
        f"At equal cipher, which the study could not compare: {servers.EQUAL_CIPHER}, a random IV for each value, workload "
        f"{procedure.TUNED}, by our method"
    )
    yield Sheet(title, ("", "plain → encrypted", "cost"), rows)


def _equal_row(figure: str, by_arm: dict[str, StudyFigure]) -> tuple[str, ...]:
    unit = by_arm["plain"].unit
    both = " → ".join(number(entry.ours) if (entry := by_arm[arm]).ours is not None else "-" for arm in ARMS)
    return figure + (f", {unit}" if unit == "µs" else ""), both, ours(by_arm["cost"])
