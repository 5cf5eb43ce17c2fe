"""report: a StudyResult -> a table of servers, one of each server's operations and loads, growth, and equal ciphers; 80 columns wide. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ciphercost import studies
from ciphercost.layout import row, wrap
from ciphercost.model import ARMS, StudyFigure, StudyResult
from ciphercost.studies.column_functions import names, procedure, published, servers
from ciphercost.studies.table import NOT_PUBLISHED, findings, percent, signed, with_interval
from ciphercost.words import number

WIDE = 30.0
"""Upper ÷ lower end of an interval that says nothing."""


def render(study: StudyResult) -> str:
    """The study's one figure of each server, then where it comes from, then what it could not have told."""
    return "\n".join(_lines(study))


def _lines(study: StudyResult) -> Iterator[str]:
    yield from wrap(study.title)
    yield ""
    yield from headlines(study)
    for engine in dict.fromkeys(each.engine for each in study.figures if each.load is not None):
        yield ""
        yield from server(study, engine)
    yield from growth(study)
    yield from equal(study)
    yield ""
    yield from wrap(f"the same procedure here: {study.procedure}")
    yield ""
    yield from wrap(
        "our method: both arms by turns, a whole cycle (insert, select, update, delete) as a slice, four in mirrored order with a short "
        "one before them that is thrown away, every session on a server started anew; 95 % intervals by t over sessions, or where it says so over "
        "blocks or loads"
    )
    yield ""
    yield from findings(study)


def headlines(study: StudyResult) -> Iterator[str]:
    """Three columns, a row a server and version of the statements."""
    rows = [each for each in study.figures if each.operation == names.ALL_OPERATIONS]
    yield "COST IN TIME, mean over operations and loads"
    yield _columns("", "as published", "the same here", "our method here")
    for each in rows:
        mine = ours(each)
        if each.workload == procedure.STUDYS:
            said = plus_minus(each.published, each.published_sd) or NOT_PUBLISHED
            yield _columns(f"  {each.engine}", said, plus_minus(each.here, each.here_sd) or "-", mine)
            printed = published.servers(studies.get(study.study))[each.engine]
            yield f"    published on {printed.version}, {printed.cipher}; here {each.mechanism}"
        else:
            yield _columns(f"    statements of `{each.workload}`", "", "", mine)


def _columns(label: str, said: str, here: str, ours: str) -> str:
    return _row((label, 0), (said, -33), (here, -54), (ours, -80))


def _row(*columns: tuple[str, int]) -> str:
    return "\n".join(row(*columns))


def ours(cost: StudyFigure) -> str:
    """`+1.4 % (+1.1 to +1.8)`; an interval that says nothing is said to be wide, and one that rests on no sessions says on what."""
    if cost.low is not None and cost.high is not None and cost.high / max(cost.low, 1e-9) > WIDE:
        return f"{percent(cost.ours)} (too wide)"
    rests = f", {cost.n} {cost.of}" if cost.of not in ("", "sessions") and cost.low is not None else ""
    return with_interval(cost) + rests


def plus_minus(ratio: float | None, sd: float | None) -> str:
    """`+4.6 ± 4.4 %`."""
    if ratio is None:
        return ""
    spread = f" ± {sd * 100:.1f}" if sd is not None else ""
    return f"{signed((ratio - 1) * 100, 1)}{spread} %"


# ── a server ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def server(study: StudyResult, engine: str) -> Iterator[str]:
    """Times and their cost, then CPU and RAM as sampled, of every operation and load; then what only our method has."""
    own = [each for each in study.figures if each.engine == engine and each.load is not None]
    name = next((each.strip() for each in study.server.split(",") if each.split()[:1] == [engine]), engine)
    first = [each for each in own if each.workload == procedure.STUDYS]
    yield f"{name.upper()}, {own[0].mechanism}"
    yield f"  {'time, ms':<14}{'the same here':>30}{'cost':>10}{'our method: cost':>24}"
    for operation, load in _keys(first):
        yield timed(operation, load, _by_arm(first, operation, load, names.TIME))
    yield from sampled(first)
    second = [each for each in own if each.workload == procedure.TUNED]
    for heading, figures, figure in (
        ("our method: the server's CPU time, ms", first, names.SERVER_CPU),
        (f"our method: time of the statements of `{procedure.TUNED}`, ms", second, names.TIME),
    ):
        if keys := _keys([each for each in figures if each.figure == figure]):
            yield f"  {heading}"
            for operation, load in keys:
                yield turns(operation, load, _by_arm(figures, operation, load, figure))


def _keys(figures: Sequence[StudyFigure]) -> list[tuple[str, float]]:
    return list(dict.fromkeys((each.operation, each.load or 0.0) for each in figures))


def _by_arm(figures: Sequence[StudyFigure], operation: str, load: float, figure: str) -> dict[str, StudyFigure]:
    return {each.arm: each for each in figures if (each.operation, each.load, each.figure) == (operation, load, figure)}


def _label(operation: str, load: float) -> str:
    return f"  {operation:<6}{load:>8,.0f}"


def timed(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> str:
    both = [spread(each.here, each.here_sd, 1e3) if (each := by_arm.get(arm)) else "-" for arm in ARMS]
    cost = by_arm.get("cost")
    here, mine = (percent(cost.here), ours(cost)) if cost else ("-", "-")
    return _row((_label(operation, load), 0), (both[0], -31), (both[1], -46), (here, -56), (mine, -80))


def turns(operation: str, load: float, by_arm: dict[str, StudyFigure]) -> str:
    both = [number(each.ours * 1e3) if (each := by_arm.get(arm)) and each.ours is not None else "-" for arm in ARMS]
    cost = by_arm.get("cost")
    return _row((_label(operation, load), 0), (" → ".join(both), -46), (ours(cost) if cost else "-", -80))


def sampled(figures: Sequence[StudyFigure]) -> Iterator[str]:
    """CPU and RAM, sampled each second."""
    of = [each for each in figures if each.figure in (names.CPU, names.MEMORY)]
    if not of:
        return
    yield f"  {'sampled here':<14}{'CPU, %':>30}{'RAM in use, MB':>34}"
    for operation, load in _keys(of):
        columns = []
        for figure in (names.CPU, names.MEMORY):
            by_arm = _by_arm(of, operation, load, figure)
            columns.append(" → ".join(spread(e.here, e.here_sd) if (e := by_arm.get(arm)) else "-" for arm in ARMS))
        yield _row((_label(operation, load), 0), (columns[0], -46), (columns[1], -80))


def spread(mean: float | None, sd: float | None, scale: float = 1.0) -> str:
    """`81.2 ± 2.1`: three digits of the mean, and the spread to the same place."""
    if mean is None:
        return "-"
    mean *= scale
    digits = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else 0
    return f"{mean:,.{digits}f}" + (f" ± {sd * scale:,.{digits}f}" if sd is not None else "")


# ── growth, equal ciphers ─────────────────────────────────────────────────────────────────────────────────────────────


def growth(study: StudyResult) -> Iterator[str]:
    """b of time ~ load^b, both versions of the statements and both arms."""
    own = [each for each in study.figures if each.figure == names.GROWTH]
    if not own:
        return
    loads = len({each.load for each in study.figures if each.load is not None})
    points = (
        "two loads: a slope of two points; ± is the half of a 95 % interval over sessions"
        if loads == 2
        else "least squares of logarithms; ± is the half of the fit's 95 % interval"
    )
    yield ""
    yield from wrap(f"GROWTH with the load, b of time ~ load^b ({points})")
    yield f"  {'':<20}{procedure.STUDYS:>28}{procedure.TUNED:>30}"
    yield f"  {'':<20}{'plain':>14}{'encrypted':>14}{'plain':>15}{'encrypted':>15}"
    for engine, operation in dict.fromkeys((each.engine, each.operation) for each in own):
        ends = iter((-36, -50, -65, -80))
        columns = [(f"  {engine} {operation}", 0)]
        for version in (procedure.STUDYS, procedure.TUNED):
            for arm in ARMS:
                found = [
                    e for e in own if (e.engine, e.operation, e.workload, e.arm) == (engine, operation, version, arm)
                ]
                columns.append((exponent(found[0]) if found else "-", next(ends)))
        yield _row(*columns)


def exponent(figure: StudyFigure) -> str:
    """`1.96 ± 0.08`."""
    if figure.ours is None:
        return "-"
    half = f" ± {(figure.high - figure.low) / 2:.2f}" if figure.low is not None and figure.high is not None else ""
    return f"{figure.ours:.2f}{half}"


def equal(study: StudyResult) -> Iterator[str]:
    """The same mode and key length on each server."""
    own = [each for each in study.figures if each.operation == names.EQUAL]
    if not own:
        return
    yield ""
    yield from wrap(
        f"AT EQUAL CIPHER, which the study could not compare: {servers.EQUAL_CIPHER}, a random IV with each value, workload "
        f"{procedure.TUNED}, by our method"
    )
    for engine in dict.fromkeys(each.engine for each in own):
        yield f"  {engine}, {next(each.mechanism for each in own if each.engine == engine)}"
        for figure in dict.fromkeys(each.figure for each in own):
            by_arm = {each.arm: each for each in own if (each.engine, each.figure) == (engine, figure)}
            if "cost" in by_arm:
                yield _equal_row(figure, by_arm)


def _equal_row(figure: str, by_arm: dict[str, StudyFigure]) -> str:
    unit = by_arm["plain"].unit
    both = " → ".join(number(each.ours) if (each := by_arm[arm]).ours is not None else "-" for arm in ARMS)
    cost = by_arm["cost"]
    said = ours(cost)
    label = f"    {figure}" + (f", {unit}" if unit == "µs" else "")
    return _row((label, 0), (both, -52), (said, -80))
