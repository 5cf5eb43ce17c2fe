"""The document of a trend: its answer, what encryption adds now, then each cell with its levels, changes and runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ciphercost.report.blocks import (
    Alarm,
    Block,
    Document,
    Figures,
    Item,
    Items,
    Note,
    Plotted,
    Section,
    Table,
    Text,
)
from ciphercost.report.plots import Plot
from ciphercost.report.trend_types import Series, Trend
from ciphercost.report.words import added_text
from ciphercost.report.words import trend_text as words
from ciphercost.report.words.comparison_text import listed

FOUND = {"changed": "changed", "unchanged": "no change found", "too-few": "too few runs"}
SUMMARY = ("cell", "runs", "found")
ADDED = ("newest level: adds to CPU/op", "95 % interval", "plain → encrypted")
RATIO = ("newest level", "95 % interval")
MANY = "runs; --format csv lists each, -o trend.html draws them"


def of(trend: Trend) -> Document:
    """The document."""
    title = f"Trend of {len(trend.runs)} runs, {words.span(trend)}"
    return Document("trend", title, words.headline(trend), list(_blocks(trend)))


def _blocks(trend: Trend) -> Iterator[Block]:
    yield from (Text(text) for text in words.added(trend))
    if trend.machines:
        yield Alarm(words.LOUD, words.machines(trend))
    if trend.series and all(series.found == "too-few" for series in trend.series):
        yield Text(words.FEW)
    if trend.once:
        yield Text(f"{trend.once} cell{'s' * (trend.once != 1)} {words.ONCE}.")
    if trend.series:
        yield _summary(trend)
    if changes := [
        Item(f"{series.title}: {words.shift_text(trend, series, shift)}; {words.candidates(series, shift)}")
        for series in trend.series
        for shift in series.shifts
    ]:
        yield Items(changes, summary=True)
    for number, series in enumerate(trend.series):
        yield Section(series.title, list(_series(trend, series, number)))
    yield Section("How changes are found", [Text(words.METHOD)], background=True)
    yield Section("Runs", [_runs(trend)], background=True)


def _summary(trend: Trend) -> Table:
    tells = any(map(words.tells_added, trend.series))
    rows = [_row(series, tells=tells) for series in trend.series]
    head = (*SUMMARY, *(ADDED if tells else ()), *RATIO)
    return Table("The newest cost of each cell", head, rows, "summary", right=frozenset({1, 3}))


def _row(series: Series, *, tells: bool) -> tuple[str, ...]:
    newest = words.newest(series)
    added = newest.added if newest else None
    known = ("", "", "") if added is None else (*added_text.figures(added), added_text.base(added))
    ratio = (
        (f"{words.cost(series, newest)} {series.label}", words.bounds(series, newest)) if newest else ("no number", "")
    )
    return series.title, str(len(series.points)), FOUND[series.found], *(known if tells else ()), *ratio


def _series(trend: Trend, series: Series, number: int) -> Iterator[Block]:
    if (added := words.added_now(series)) and not any(words.added(trend)):
        yield Note("added", added)
    yield Note("verdict", words.verdict(trend, series))
    for shift in series.shifts:
        yield Note("change", words.shift_text(trend, series, shift))
        yield Note("cause", words.candidates(series, shift))
    if series.levels:
        figures = (*words.ADDED, series.label) if words.tells_added(series) else (series.label, "95 % interval", "")
        yield Figures("level", list(_levels(series)), ("level", *figures))
    if series.points:
        legend = [
            (f"{count}, run {words.number(series, point)}", listed(changes))
            for count, (point, changes) in enumerate(words.events(series), 1)
        ]
        table = Table(
            "Runs", words.head_of_runs(series), list(words.rows_of_runs(trend, series)), "figures",
            names=2, notes=1, many=MANY, right=frozenset({0, 2}),
        )  # fmt: skip
        yield Plotted(partial(_plot, trend, series, number), table, legend)
    if gaps := [
        Item(f"run {gap.run + 1} ({words.when(trend, gap.run)}): no number: {gap.reason}") for gap in series.gaps
    ]:
        yield Items(gaps)


def _plot(trend: Trend, series: Series, number: int) -> Plot:
    from ciphercost.report.plots import history

    return history.plot(trend, series, number)


def _levels(series: Series) -> Iterator[tuple[str, str, str, str]]:
    for level in series.levels:
        ratio = words.cost(series, level), words.bounds(series, level)
        if not words.tells_added(series):
            yield words.runs_of(series, level), *ratio, ""
            continue
        added = added_text.figures(level.added) if level.added is not None else ("", "")
        yield words.runs_of(series, level), *added, f"{ratio[0]} ({ratio[1]})"


def _runs(trend: Trend) -> Table:
    rows: list[tuple[str, ...]] = [
        (str(number), words.when(trend, number - 1), run.name, run.id, run.mode)
        for number, run in enumerate(trend.runs, start=1)
    ]
    return Table("All runs, in the order in which they began", ("run", "began", "name", "id", "mode"), rows, minor=True)
