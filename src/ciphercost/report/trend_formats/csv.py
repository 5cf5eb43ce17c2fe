"""CSV: a row per cell and run, at full precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ciphercost.report.formats.csv import table
from ciphercost.report.trend_types import Series, Trend
from ciphercost.report.words.comparison_text import listed

COLUMNS = (
    "series",  # number of the cell's series, from 0
    "title",  # what its cells have in common
    "metric",  # a key of `overhead`
    "run",  # number of the run, from 0, in the order of time
    "id", "started", "mode",
    "cell",  # number of the cell in its run, from 0
    "ratio", "low", "high",  # encrypted / plain, with its 95 % interval
    "level",  # number of the run's level, from 0; empty if the series was not tested
    "level_ratio", "level_low", "level_high",
    "change", "change_low", "change_high",  # first run of a level: its ratio / the one before
    "p_value",  # of the whole series
    "found",  # changed, unchanged or too-few
    "differs",  # versions, libraries and machine that differ from the run before
    "reason",  # why there is no number
    "added_us", "added_low_us", "added_high_us",  # CPU time that encryption adds to an operation
)  # fmt: skip


def render(of: Trend) -> str:
    return table(COLUMNS, (row for number, series in enumerate(of.series) for row in _rows(of, number, series)))


def _rows(of: Trend, number: int, series: Series) -> Iterator[dict[str, Any]]:
    known = {
        "series": number,
        "title": series.title,
        "metric": series.metric,
        "p_value": series.p_value,
        "found": series.found,
    }
    rows: list[dict[str, Any]] = []
    for place, point in enumerate(series.points):
        row = known | _run(of, point.run) | {"cell": point.cell, "differs": listed(point.changed)}
        row |= {"ratio": point.estimate.ratio, "low": point.estimate.low, "high": point.estimate.high}
        if (cost := point.added) is not None:
            row |= {"added_us": cost.added.mean, "added_low_us": cost.added.low, "added_high_us": cost.added.high}
        for index, level in enumerate(series.levels):
            if level.first <= place <= level.last:
                estimate = level.estimate
                row |= {"level": index, "level_ratio": estimate.ratio, "level_low": estimate.low}
                row["level_high"] = estimate.high
        for shift in series.shifts:
            if shift.point == place:
                row |= {"change": shift.change.ratio, "change_low": shift.change.low, "change_high": shift.change.high}
        rows.append(row)
    rows += [known | _run(of, gap.run) | {"reason": gap.reason} for gap in series.gaps]
    yield from sorted(rows, key=lambda row: int(row["run"]))


def _run(of: Trend, run: int) -> dict[str, Any]:
    side = of.runs[run]
    return {"run": run, "id": side.id, "started": side.started, "mode": side.mode}
