"""Plot of one cell's cost over several runs: each run's interval, the levels, and what changed between runs. Pure.

Not one of `plots.KINDS`, because its subject is a trend and not a result.
"""

from __future__ import annotations

from typing import Any

from ciphercost.estimate import notation
from ciphercost.model.result import Estimate
from ciphercost.report.plots import Plot, Table, Width
from ciphercost.report.plots._draw import INK, MUTED, STRONG, Chart
from ciphercost.report.trend_types import Series, Trend
from ciphercost.report.words import figure_text
from ciphercost.report.words import trend_text as words

WIDTHS: dict[Width, int] = {"wide": 960, "middle": 700, "narrow": 326}
HEIGHT = 230
OUTLYING = 1.6
"""An interval is cut off if it extends beyond the estimates by more than this many times their span."""
MOST_DATES: dict[Width, int] = {"wide": 8, "middle": 6, "narrow": 3}


def plot(of: Trend, series: Series, number: int) -> Plot:
    """The plot of series `number`, which has at least one point."""
    # The axis uses the notation of most figures; a single wild run may differ.
    times = sum(notation.by_factor(point.estimate) for point in series.points) * 2 > len(series.points)
    losses = [_loss(series.metric, point.estimate, times=times) for point in series.points]
    least, most = _domain(losses)
    rows, cut = [], []
    for at, (cost, low, high) in enumerate(losses, start=1):
        rows.append({"n": at, "cost": cost, "low": max(low, least), "high": min(high, most)})
        cut += [{"n": at, "at": least, "side": "down"}] if low < least else []
        cut += [{"n": at, "at": most, "side": "up"}] if high > most else []
    levels = []
    for level in series.levels:
        cost, low, high = _loss(series.metric, level.estimate, times=times)
        levels.append({"from": level.first + 0.6, "to": level.last + 1.4, "cost": cost, "low": low, "high": high})
    events = [
        {"n": point + 1, "at": least, "label": str(count)} for count, (point, _) in enumerate(words.events(series), 1)
    ]
    shifts = [{"n": shift.point + 0.5} for shift in series.shifts]
    began = [words.when(of, point.run) for point in series.points]
    days = [moment[:10] for moment in began]
    dates = days if len(set(days)) == len(days) else [moment[5:] for moment in began]
    _, _, more, less = next(metric for metric in figure_text.METRICS if metric[0] == series.metric)
    word = less if series.metric == "throughput" else more
    unit = f"{series.label}, encrypted ÷ plain" if times else f"% {word} {series.label}"
    return Plot(
        name=f"history-{number + 1}",
        title=f"{series.title}: {series.label}",
        finding=words.verdict(of, series),
        charts={
            width: Chart(
                _spec(size, width, dates, (least, most), unit, times=times),
                {"rows": rows, "cut": cut, "levels": levels, "events": events, "shifts": shifts},
            )
            for width, size in WIDTHS.items()
        },
        table=Table(words.head_of_runs(series), list(words.rows_of_runs(of, series))),
        note=_note(series, cut=bool(cut)),
        caption=series.label,
    )


def _loss(metric: str, estimate: Estimate, *, times: bool) -> tuple[float, float, float]:
    """(cost, low, high): in per cent, or as a factor."""
    if times:
        return estimate.ratio, estimate.low, estimate.high
    cost, low, high = figure_text.loss(metric, estimate)
    return 100 * cost, 100 * low, 100 * high


def _domain(losses: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Both ends of the axis. Unlike elsewhere it need not include zero: a trend is about differences between runs."""
    costs = [cost for cost, _, _ in losses]
    span = max(max(costs) - min(costs), 0.005 * max(map(abs, costs)), 1e-6)
    least = max(min(costs) - OUTLYING * span, min(low for _, low, _ in losses))
    most = min(max(costs) + OUTLYING * span, max(high for *_, high in losses))
    room = 0.08 * (most - least)
    return min(least, *costs) - room, max(most, *costs) + room / 2


def _note(series: Series, *, cut: bool) -> str:
    sentences = ["A point is one run; vertical bars are 95 % intervals."]
    if series.levels:
        sentences.append("Horizontal lines are the levels between changes, with their 95 % intervals as bands.")
    if series.shifts:
        sentences.append("A dashed line marks a change.")
    if any(True for _ in words.events(series)):
        sentences.append("Numbered triangles mark runs before which versions or the machine changed.")
    if cut:
        sentences.append("A bar with an arrow extends beyond the plot.")
    return " ".join([*sentences, "The axis need not begin at 0."])


def _spec(
    width: int, name: Width, dates: list[str], ends: tuple[float, float], title: str, *, times: bool
) -> dict[str, Any]:
    count = len(dates)
    step = max(1, -(-(count - 1) // max(1, MOST_DATES[name] - 1)))
    shown = list(range(1, count + 1, step))
    labels = "[" + ",".join(f"'{date}'" for date in dates) + "][datum.value - 1]"
    x = {
        "field": "n",
        "type": "quantitative",
        "scale": {"domain": [0.4, count + 0.6], "nice": False, "zero": False},
        "axis": {"title": None, "values": shown, "labelExpr": labels, "grid": False, "labelOverlap": "greedy"},
    }
    y = {
        "field": "cost",
        "type": "quantitative",
        "axis": {"title": None, "tickCount": 5} | ({"labelExpr": "'×' + datum.label"} if times else {}),
        "scale": {"domain": list(ends), "nice": False, "zero": False},
    }
    plain = {"type": "quantitative"}
    at = {"x": {"field": "n", **plain}, "y": {"field": "at", **plain}}
    return {
        "width": width - 70,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": title, "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "layer": [
            {
                "data": {"name": "shifts"},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2, "strokeDash": [6, 4]},
                "encoding": {"x": {"field": "n", **plain}},
            },
            {
                "data": {"name": "levels"},
                "mark": {"type": "rect", "color": STRONG, "opacity": 0.16},
                "encoding": {
                    "x": {"field": "from", **plain},
                    "x2": {"field": "to"},
                    "y": {"field": "low", **plain},
                    "y2": {"field": "high"},
                },
            },
            {
                "data": {"name": "levels"},
                "mark": {"type": "rule", "color": STRONG, "strokeWidth": 2},
                "encoding": {"x": {"field": "from", **plain}, "x2": {"field": "to"}, "y": {"field": "cost", **plain}},
            },
            {
                "data": {"name": "rows"},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.4},
                "encoding": {"x": x, "y": {"field": "low", **plain}, "y2": {"field": "high"}},
            },
            {
                "data": {"name": "cut"},
                "mark": {"type": "point", "filled": True, "color": INK, "size": 44, "opacity": 1},
                "encoding": at
                | {
                    "shape": {
                        "field": "side",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": ["down", "up"], "range": ["triangle-down", "triangle-up"]},
                    }
                },
            },
            {
                "data": {"name": "rows"},
                "mark": {"type": "point", "filled": True, "color": INK, "size": 28, "opacity": 1},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"name": "events"},
                "mark": {
                    "type": "point",
                    "shape": "triangle-up",
                    "filled": True,
                    "color": MUTED,
                    "size": 60,
                    "opacity": 1,
                },
                "encoding": at,
            },
            {
                "data": {"name": "events"},
                "mark": {"type": "text", "color": MUTED, "dy": -12},
                "encoding": at | {"text": {"field": "label", "type": "nominal"}},
            },
        ],
    }
