"""Terminal text, 80 columns wide: the answer, then each cell with its levels, its changes, and a line for each run."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report import trend_formats as words
from ciphercost.report.layout import figure_rows, wrap
from ciphercost.report.trend_types import Series, Trend
from ciphercost.report.words.figure_text import printable

MOST_RUNS = 30
"""Runs of a cell that are listed; longer histories show their levels only."""


def render(of: Trend) -> str:
    return printable("\n".join(_lines(of)))


def _lines(of: Trend) -> Iterator[str]:
    yield from wrap(words.headline(of))
    if of.machines:
        yield from wrap(f"=== {words.LOUD} ===")
        for line in words.machines(of):
            yield from wrap(line, "    ", "      ")
    if of.series and all(each.found == "too-few" for each in of.series):
        yield from wrap(words.FEW)
    for series in of.series:
        yield ""
        yield from _series(of, series)
    if of.once:
        yield ""
        yield from wrap(f"{of.once} cell{'s' * (of.once != 1)} {words.ONCE}")


def _series(of: Trend, series: Series) -> Iterator[str]:
    yield from wrap(series.title, "", "  ")
    yield from wrap(words.verdict(of, series), "  ", "    ")
    for shift in series.shifts:
        yield from wrap(words.shift_text(of, series, shift), "  ", "    ")
        yield from wrap(words.candidates(series, shift), "    ", "      ")
    if series.levels:
        head = (f"level: {series.label}", "", "95 % CI", "")
        rows = [
            (words.runs_of(series, each), words.cost(series, each), words.bounds(series, each), "")
            for each in series.levels
        ]
        yield from figure_rows([head, *rows])
    if len(series.points) > MOST_RUNS:
        yield from wrap(f"{len(series.points)} runs; --format csv lists each, -o trend.html draws them", "  ", "    ")
    elif series.points:
        yield from figure_rows(
            [(f"run: {series.label}", "", "95 % CI", "")] if not series.levels else [("run", "", "", "")]
        )
        for point, each in enumerate(series.points):
            name = f"{each.run + 1:>3}  {words.when(of, each.run)}"
            yield from figure_rows([(name, words.cost(series, each), words.bounds(series, each), "")])
            if marked := words.marks(series, point):
                yield from wrap(marked, "       ↑ ", "         ")
    for gap in series.gaps:
        yield from wrap(f"{gap.run + 1:>3}  {words.when(of, gap.run)}  no number: {gap.reason}", "  ", "       ")
