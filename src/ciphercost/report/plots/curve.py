"""Plot of cost against response size or number of clients, with an interval per point. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ciphercost.estimate import curves, notation
from ciphercost.model import sizes
from ciphercost.model.result import Curve
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import INK, MUTED, Chart
from ciphercost.report.words import figure_text

WIDTHS: dict[Width, int] = {"wide": 640, "narrow": 326}
HEIGHT = 230
OUTLYING = 1.6
"""An interval is cut off, with an arrow, if it extends beyond the estimates by more than this many times their span."""
FAR = 10.0
"""Largest ÷ smallest from which the axis of sizes or clients is logarithmic."""
ALONG = {"size": "response size in bytes", "clients": "clients"}


def plots(of: Subject) -> Iterator[Plot]:
    for number, curve in enumerate(curves.shown(of.result.curves)):
        yield _plot(curve, number)


def _plot(curve: Curve, number: int) -> Plot:
    rows = []
    table = []
    losses = [
        tuple(100 * value for value in figure_text.loss("throughput", point.throughput)) for point in curve.points
    ]
    least, most = _domain(losses)
    cut = []
    for point, (cost, low, high) in zip(curve.points, losses, strict=True):
        rows.append({"x": point.x, "cost": cost, "low": max(low, least), "high": min(high, most)})
        cut += [{"x": point.x, "at": least, "side": "down"}] if low < least else []
        cut += [{"x": point.x, "at": most, "side": "up"}] if high > most else []
        name = sizes.size(point.x) if curve.along == "size" else f"{point.x:.0f}"
        cpu = "" if point.server_cpu_us is None else f"{point.server_cpu_us:+,.3g} µs"
        table.append(
            (
                name,
                notation.worded(point.throughput, "more", "fewer"),
                figure_text.bounds("throughput", point.throughput),
                cpu,
            )
        )
    far = rows[-1]["x"] / max(rows[0]["x"], 1) > FAR
    ends = [table[0], table[-1]]
    return Plot(
        name=f"curve-{curve.along}-{number + 1}",
        title=f"Cost against {'response size' if curve.along == 'size' else 'clients'}: "
        f"{curve.engine} {curve.version} · {curve.mechanism} · {curve.workload}",
        finding="; ".join(f"at {name} {cost} operations per second ({span})" for name, cost, span, _ in ends),
        charts={
            width: Chart(
                _spec(size, curve.along, [row["x"] for row in rows], (least, most), far=far),
                {"points": rows, "cut": cut},
            )
            for width, size in WIDTHS.items()
        },
        table=Table(
            (ALONG[curve.along], "operations per second", "95 % interval", "server CPU added per operation"), table
        ),
        note="Vertical bars are 95 % intervals." + " A bar with an arrow extends beyond the plot." * bool(cut),
        slim=True,
    )


def _domain(losses: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """Both ends of the axis. It includes zero, all estimates, and intervals that don't extend far beyond them."""
    costs = [0.0, *(cost for cost, _, _ in losses)]
    span = max(max(costs) - min(costs), 1.0)
    least = max(min(costs) - OUTLYING * span, min(low for _, low, _ in losses))
    most = min(max(costs) + OUTLYING * span, max(high for *_, high in losses))
    return min(least, *costs), max(most, *costs)


def _spec(width: int, along: str, values: list[float], ends: tuple[float, float], *, far: bool) -> dict[str, Any]:
    label = "replace(format(datum.value, '.3~s'), 'k', 'K') + 'B'" if along == "size" else "format(datum.value, ',')"
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log" if far else "linear", "nice": False, "zero": False, "padding": 20},
        "axis": {"title": ALONG[along], "values": values, "labelExpr": label, "grid": False, "labelOverlap": "greedy"},
    }
    y = {
        "field": "cost",
        "type": "quantitative",
        "axis": {"title": None, "tickCount": 5},
        "scale": {"domain": list(ends), "nice": True},
    }
    return {
        "width": width - 44,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": "% fewer operations per second", "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "data": {"name": "points"},
        "layer": [
            {
                "mark": {"type": "line", "color": MUTED, "strokeWidth": 1, "strokeDash": [4, 3]},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "rule", "color": INK, "strokeWidth": 2},
                "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
            },
            {
                "data": {"name": "cut"},
                "mark": {"type": "point", "filled": True, "color": INK, "size": 44, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": {"field": "at", "type": "quantitative"},
                    "shape": {
                        "field": "side",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": ["down", "up"], "range": ["triangle-down", "triangle-up"]},
                    },
                },
            },
            {
                "mark": {"type": "point", "filled": True, "color": INK, "size": 28, "opacity": 1},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
