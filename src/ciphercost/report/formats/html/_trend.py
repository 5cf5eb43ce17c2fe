"""The content of the page of a trend. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.report import trend_formats as words
from ciphercost.report.comparison_formats import listed
from ciphercost.report.formats.html._content import Entry
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.plots import Table, history
from ciphercost.report.trend_types import Series, Trend


class Shown(NamedTuple):
    """One cell over time."""

    anchor: str
    title: str
    verdict: str
    changes: list[tuple[str, str]]
    """(what changed, its candidates)."""
    plot: Figure | None
    events: list[tuple[str, str]]
    """(number of a triangle in the plot and its run, what changed there)."""
    gaps: list[str]


class Page(NamedTuple):
    """Everything that the template shows."""

    title: str
    answer: str
    machines: list[str]
    few: str
    """Advice if no cell has enough runs."""
    once: str
    table: Table
    series: list[Shown]
    method: str
    runs: Table
    contents: Sequence[Entry]


def page(of: Trend) -> Page:
    """The page."""
    shown = [_shown(of, number, series) for number, series in enumerate(of.series)]
    contents = [Entry(each.anchor, each.title) for each in shown]
    contents += [Entry("h-method", "How changes are found"), Entry("h-runs", "Runs")]
    return Page(
        f"Trend of {len(of.runs)} runs, {words.span(of)}",
        words.headline(of),
        [words.LOUD, *words.machines(of)] if of.machines else [],
        words.FEW if of.series and all(each.found == "too-few" for each in of.series) else "",
        f"{of.once} cell{'s' * (of.once != 1)} {words.ONCE}." if of.once else "",
        Table(("cell", "runs", "found", "newest level", "95 % interval"), list(_rows(of))),
        shown,
        words.METHOD,
        _runs(of),
        contents,
    )


def _rows(of: Trend) -> Iterator[tuple[str, ...]]:
    found = {"changed": "changed", "unchanged": "no change found", "too-few": "too few runs"}
    for series in of.series:
        newest = series.levels[-1] if series.levels else series.points[-1] if series.points else None
        cost = f"{words.cost(series, newest)} {series.label}" if newest else "no number"
        interval = words.bounds(series, newest) if newest else ""
        yield series.title, str(len(series.points)), found[series.found], cost, interval


def _shown(of: Trend, number: int, series: Series) -> Shown:
    return Shown(
        f"cell-{number + 1}",
        series.title,
        words.verdict(of, series),
        [(words.shift_text(of, series, each), words.candidates(series, each)) for each in series.shifts],
        figure(history.plot(of, series, number)) if series.points else None,
        [
            (f"{count}, run {words.number(series, point)}", listed(changes))
            for count, (point, changes) in enumerate(words.events(series), 1)
        ],
        [f"run {gap.run + 1} ({words.when(of, gap.run)}): no number: {gap.reason}" for gap in series.gaps],
    )


def _runs(of: Trend) -> Table:
    rows = [
        (str(number), words.when(of, number - 1), run.name, run.id, run.mode)
        for number, run in enumerate(of.runs, start=1)
    ]
    return Table(("run", "began", "name", "id", "mode"), rows)
