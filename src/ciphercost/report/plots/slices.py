"""Plot of every slice of a cell over time, for both arms: it shows drift, outliers and suspect slices. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from ciphercost.estimate import notation
from ciphercost.estimate.trace import Tick, Trace
from ciphercost.model.spec import ARMS, OPEN_LOOP
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import BACKGROUND, ENCRYPTED, GRID, PLAIN, Chart
from ciphercost.report.words import cell_text

WIDTHS: dict[Width, int] = {"narrow": 326}
HEIGHT = 170
LONG = 180.0
"""Seconds from which the time axis is in minutes."""
ON_A_PAGE, LEAST, MOST = 3600, 40, 110
"""Points on a whole page, and the least and most points per arm of a cell."""
CROSS = "M-1,-1L1,1M-1,1L1,-1"
PHASES = {"pilot": "before", "warmup": "before", "capacity": "capacity"} | dict.fromkeys(OPEN_LOOP, "open loop")


def plots(of: Subject) -> Iterator[Plot]:
    """A plot per cell with slices, even without a number, because it may show why there is none."""
    labels = cell_text.names(of.result.cells)
    most = max(LEAST, min(MOST, ON_A_PAGE // max(1, len(of.traces)) // len(ARMS)))
    for number, trace in enumerate(of.traces):
        if any(tick.rate > 0 for tick in trace.ticks) and number < len(labels):
            yield _plot(number, labels[number], trace, most)


def _plot(number: int, label: str, trace: Trace, most: int) -> Plot:
    per_point = 1
    minutes = max(tick.at_s for tick in trace.ticks) > LONG
    unit = 60.0 if minutes else 1.0
    rows: list[dict[str, Any]] = []
    for arm in ARMS:
        arm_ticks = [tick for tick in trace.ticks if tick.arm == arm]
        together = -(-len(arm_ticks) // most)
        per_point = max(per_point, together)
        rows += [_point(ticks, unit) for ticks in _bunches(arm_ticks, together)]
    starts = [
        next(iter(ticks)).at_s / unit for _, ticks in itertools.groupby(trace.ticks, key=lambda tick: tick.session)
    ]
    data: dict[str, list[dict[str, Any]]] = {"points": rows, "sessions": [{"at": at} for at in starts[1:]]}
    marked = sum(bool(tick.marks) for tick in trace.ticks)
    return Plot(
        name=f"slices-cell-{number + 1}",
        title=f"Slices over time, {label}",
        finding=_finding(trace),
        charts={width: Chart(_spec(size, minutes=minutes), data, one_of_many=True) for width, size in WIDTHS.items()},
        table=_table(trace),
        cell=number,
        caption="Operations per second, slice by slice",
        note=_note(per_point, len(starts), marked, len(trace.ticks)),
    )


def _bunches(ticks: Sequence[Tick], together: int) -> Iterator[list[Tick]]:
    """Groups of `together` neighbours of the same session and phase."""
    for _, group in itertools.groupby(ticks, key=lambda tick: (tick.session, PHASES[tick.phase])):
        neighbours = list(group)
        for start in range(0, len(neighbours), together):
            yield neighbours[start : start + together]


def _point(ticks: list[Tick], unit: float) -> dict[str, Any]:
    """A slice, or the median of several; marked if most of them are."""
    return {
        "at": round(statistics.fmean(tick.at_s for tick in ticks) / unit, 4),
        "rate": round(statistics.median(tick.rate for tick in ticks), 3),
        "arm": ticks[0].arm,
        "phase": PHASES[ticks[0].phase],
        "marked": sum(bool(tick.marks) for tick in ticks) * 2 > len(ticks),
    }


def _finding(trace: Trace) -> str:
    counted = [tick for tick in trace.ticks if tick.phase == "capacity" and tick.rate > 0]
    statements = []
    for arm in ARMS:
        rates = [tick.rate for tick in counted if tick.arm == arm]
        if len(rates) >= 2:
            tenths = statistics.quantiles(rates, n=10)
            statements.append(
                f"{arm} {notation.number(tenths[0])} to {notation.number(tenths[-1])} operations per second in the middle 80 % of its slices"
            )
    marked = ", ".join(f"{count} marked {name}" for name, count in sorted(trace.marked.items()))
    statements.append(marked or "no slice is marked")
    return "; ".join(statements)


def _table(trace: Trace) -> Table:
    rows = []
    for phase, name in (("capacity", "capacity"), ("latency", "open loop")):
        for arm in ARMS:
            ticks = [tick for tick in trace.ticks if tick.phase == phase and tick.arm == arm]
            if ticks:
                rates = sorted(tick.rate for tick in ticks)
                figures = (rates[0], statistics.median(rates), rates[-1])
                marked = sum(bool(tick.marks) for tick in ticks)
                rows.append(
                    (name, arm, str(len(ticks)), *(f"{notation.number(rate)} /s" for rate in figures), str(marked))
                )
    return Table(("phase", "arm", "slices", "lowest", "median", "highest", "marked"), rows)


def _note(per_point: int, sessions: int, marked: int, ticks: int) -> str:
    sentences = []
    if per_point > 1:
        sentences.append(f"A point is the median of up to {per_point} neighbouring slices.")
    sentences.append("Faint: pilot, warm-up and open loop (fixed rate); not counted for throughput.")
    if marked:
        sentences.append(f"Crosses: slices marked as suspect ({marked:,} of {ticks:,}).")
    if sessions > 1:
        sentences.append(f"Vertical lines: starts of the {sessions} sessions.")
    return " ".join(sentences)


def _spec(width: int, *, minutes: bool) -> dict[str, Any]:
    x = {
        "field": "at",
        "type": "quantitative",
        "scale": {"nice": False, "padding": 6},
        "axis": {"title": "minutes" if minutes else "seconds", "tickCount": 5, "grid": False},
    }
    y = {
        "field": "rate",
        "type": "quantitative",
        "axis": {"title": None, "tickCount": 4, "format": "~s"},
        "scale": {"zero": True},
    }
    legend = {"orient": "top"}
    arms = {"field": "arm", "type": "nominal", "legend": legend}
    colour = arms | {"scale": {"domain": list(ARMS), "range": [PLAIN, ENCRYPTED]}}
    shape = arms | {"scale": {"domain": list(ARMS), "range": ["circle", "square"]}}
    fill = arms | {"scale": {"domain": list(ARMS), "range": [BACKGROUND, ENCRYPTED]}}
    faint = {"condition": {"test": "datum.phase == 'capacity'", "value": 1}, "value": 0.35}
    points = {"x": x, "y": y, "stroke": colour, "opacity": faint}
    return {
        "width": width - 44,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": "operations per second", "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "layer": [
            {
                "data": {"name": "sessions"},
                "mark": {"type": "rule", "color": GRID, "strokeDash": [2, 2]},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            },
            {
                "data": {"name": "points"},
                "transform": [{"filter": "!datum.marked"}],
                "mark": {"type": "point", "size": 20, "strokeWidth": 1.2},
                "encoding": points | {"fill": fill, "shape": shape},
            },
            {
                "data": {"name": "points"},
                "transform": [{"filter": "datum.marked"}],
                "mark": {"type": "point", "shape": CROSS, "size": 26, "strokeWidth": 1.4},
                "encoding": points,
            },
        ],
    }
