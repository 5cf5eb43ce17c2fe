"""Plot of both arms' load–latency curves, with the objective and each arm's capacity at it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ciphercost.model.objective_capacity import AtRate, ObjectiveCapacity
from ciphercost.model.spec import ARMS
from ciphercost.plan.latency_objective import parse
from ciphercost.report import objective_text
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import BACKGROUND, ENCRYPTED, MUTED, PLAIN, Chart
from ciphercost.report.words import cell_text

WIDTHS: dict[Width, int] = {"narrow": 326}
HEIGHT = 170
HIGHEST = 20.0
"""Latencies up to this many times the objective are drawn; beyond it a curve ends, because the queue grew as long as the slice lasted."""


def plots(of: Subject) -> Iterator[Plot]:
    """A plot per cell with numbers and a curve."""
    labels = cell_text.names(of.result.cells)
    for number, cell in enumerate(of.result.cells):
        if cell.overhead and cell.objective is not None and len(cell.objective.curve) > 1:
            yield _plot(number, labels[number], cell.objective, objective_text.line(cell))


def _plot(number: int, label: str, of: ObjectiveCapacity, finding: str) -> Plot:
    name = of.objective.partition("=")[0]
    allowed = parse(of.objective).seconds * 1e3
    curves: list[dict[str, Any]] = []
    for point in of.curve:
        for arm, at in (("plain", point.plain), ("encrypted", point.encrypted)):
            if (latency := _drawn(at, allowed)) is not None:
                curves.append({"rate": point.rate, "ms": latency, "arm": arm})
    capacities = [
        {"rate": capacity.rate, "ms": allowed, "arm": arm}
        for arm, capacity in of.arms.items()
        if capacity.rate is not None
    ]
    return Plot(
        name=f"objective-cell-{number + 1}",
        title=f"Load and latency, {label}",
        finding=finding,
        charts={
            width: Chart(
                _spec(size, name),
                {"curves": curves, "capacities": capacities, "limit": [{"ms": allowed}]},
                one_of_many=True,
            )
            for width, size in WIDTHS.items()
        },
        table=Table(objective_text.head(of), list(objective_text.rows(of))),
        cell=number,
        caption=f"{name} of the latency, ms, at operations per second",
        note=f"Requests arrive at random, and each is timed from when it was due. The dashed line is {of.objective}; large points are the "
        "capacities at it. A curve ends where the arm no longer keeps up.",
    )


def _drawn(at: AtRate, allowed: float) -> float | None:
    """The latency, ms; None if the arm did not keep up, or is far beyond the objective."""
    return at.latency_ms if at.latency_ms is not None and 0 < at.latency_ms <= HIGHEST * allowed else None


def _spec(width: int, name: str) -> dict[str, Any]:
    x = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"zero": True, "nice": False, "padding": 6},
        "axis": {"title": "operations per second", "tickCount": 5, "format": "~s", "grid": False},
    }
    y = {
        "field": "ms",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"title": None, "format": ",~g", "tickCount": 4, "labelOverlap": "greedy"},
    }
    arms = {"field": "arm", "type": "nominal", "legend": {"orient": "top", "symbolType": "stroke", "symbolSize": 400}}
    colour = arms | {"scale": {"domain": list(ARMS), "range": [PLAIN, ENCRYPTED]}}
    dash = arms | {"scale": {"domain": list(ARMS), "range": [[1, 0], [6, 3]]}}
    fill = arms | {"scale": {"domain": list(ARMS), "range": [BACKGROUND, ENCRYPTED]}, "legend": None}
    return {
        "width": width - 44,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": f"{name}, ms", "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "layer": [
            {
                "data": {"name": "limit"},
                "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 3]},
                "encoding": {"y": y},
            },
            {
                "data": {"name": "curves"},
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "stroke": colour, "strokeDash": dash},
            },
            {
                "data": {"name": "capacities"},
                "mark": {"type": "point", "size": 60, "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "stroke": colour, "fill": fill},
            },
        ],
    }
