"""Markdown: the answer, a table of the cells, their changes, and a folded table of the runs of each."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report import trend_formats as words
from ciphercost.report.formats.md import MOST, SHORT, escaped, fitting, fold, item, row
from ciphercost.report.trend_types import Series, Trend

SIGNS = {"changed": "changed", "unchanged": "no change found", "too-few": "too few runs"}


def render(of: Trend) -> str:
    """At most MOST characters. What does not fit is left out from the end, with a note."""
    head = [f"### {escaped(words.headline(of))}", ""]
    if of.machines:
        head += [f"> **{words.LOUD}**", *(f"> {escaped(line, 1000)}" for line in words.machines(of)), ""]
    rows = [*_table(of), "", *_changes(of)]
    room = MOST - sum(len(line) + 1 for line in head) - 400
    shown = list(fitting(rows, room))
    lost = len(rows) - len(shown)
    shown += [f"\n{lost} more rows did not fit into a comment."] * bool(lost)
    room -= sum(len(line) + 1 for line in shown)
    folded = [fold(escaped(each.title, SHORT), _runs(of, each)) for each in of.series]
    folded.append(fold("how changes are found", [words.METHOD]))
    fit = list(fitting(folded, room))
    lost = len(folded) - len(fit)
    fit += [f"\nDetails of {lost} more did not fit into a comment."] * bool(lost)
    return "\n".join([*head, *shown, "", *fit]).rstrip("\n")


def _table(of: Trend) -> Iterator[str]:
    yield row("cell", "runs", "", "newest level", "95 % interval")
    yield row("---", "---:", "---", "---:", "---")
    for series in of.series:
        newest = series.levels[-1] if series.levels else series.points[-1] if series.points else None
        figures = (words.cost(series, newest), words.bounds(series, newest)) if newest else ("no number", "")
        label = f"{figures[0]} {series.label}" if newest else figures[0]
        found = f"**{SIGNS[series.found]}**" if series.found == "changed" else SIGNS[series.found]
        yield row(escaped(series.title, SHORT), str(len(series.points)), found, label, figures[1])
    if of.once:
        yield f"\n{of.once} cell{'s' * (of.once != 1)} {words.ONCE}."


def _changes(of: Trend) -> Iterator[str]:
    for series in of.series:
        for shift in series.shifts:
            yield item(f"{series.title}: {words.shift_text(of, series, shift)}; {words.candidates(series, shift)}")


def _runs(of: Trend, series: Series) -> Iterator[str]:
    yield row("run", "began", series.label, "95 % interval", "")
    yield row("---:", "---", "---:", "---", "---")
    for point, each in enumerate(series.points):
        cost, bounds = words.cost(series, each), words.bounds(series, each)
        yield row(str(each.run + 1), words.when(of, each.run), cost, bounds, escaped(words.marks(series, point), SHORT))
    for gap in series.gaps:
        yield row(str(gap.run + 1), words.when(of, gap.run), "no number", "", escaped(gap.reason, SHORT))
    yield ""
    yield item(words.verdict(of, series))
