"""Plot of both arms' latencies, on an axis of nines: how long the slowest tenth, hundredth, thousandth take. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ciphercost.estimate import notation
from ciphercost.estimate.trace import Quantiles, Trace
from ciphercost.model.spec import ARMS
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import ENCRYPTED, PLAIN, Chart
from ciphercost.report.words import cell_text

WIDTHS: dict[Width, int] = {"narrow": 326}
HEIGHT = 170
STEEP = 8.0
"""Largest ÷ smallest from which the latency axis is logarithmic."""
DECADES = 100.0
"""Largest ÷ smallest from which it has one tick per decade."""
LISTED = (0.5, 0.9, 0.99, 0.999, 0.9999)


def plots(of: Subject) -> Iterator[Plot]:
    """A plot per cell with numbers and latencies."""
    labels = cell_text.names(of.result.cells)
    for number, (cell, trace) in enumerate(zip(of.result.cells, of.traces, strict=False)):
        if cell.overhead and trace.latency:
            yield _plot(number, labels[number], trace)


def _plot(number: int, label: str, trace: Trace) -> Plot:
    rows: list[dict[str, Any]] = [
        {"nines": 1 / (1 - share), "ms": value, "arm": arm}
        for arm in ARMS
        for share, value in zip(trace.latency[arm].shares, trace.latency[arm].milliseconds, strict=True)
        if value > 0
    ]
    values = [value for arm in ARMS for value in trace.latency[arm].milliseconds if value > 0]
    steep = max(values) / min(values)
    listed = [share for share in LISTED if all(trace.latency[arm].shares[-1] >= share for arm in ARMS)]
    both = {share: [_at(trace.latency[arm], share) for arm in ARMS] for share in listed}
    spoken = "; ".join(
        f"{_name(share)} {' → '.join(map(notation.number, milliseconds))} ms" for share, milliseconds in both.items()
    )
    what = (
        "from the moment each request was due" if trace.open_loop else "by busy clients, which wait for each response"
    )
    requests = " and ".join(f"{trace.latency[arm].requests:,} {arm}" for arm in ARMS)
    read = f"; the lines show one slice in {trace.stride}, evenly spread" if trace.stride > 1 else ""
    return Plot(
        name=f"latency-cell-{number + 1}",
        title=f"Latency, {label}",
        finding=f"plain → encrypted: {spoken}" if spoken else "too few requests for a quantile",
        charts={
            width: Chart(_spec(size, steep=steep), {"lines": rows}, one_of_many=True) for width, size in WIDTHS.items()
        },
        table=Table(
            ("share of operations that are faster", "plain", "encrypted"),
            [
                (_name(share), *(f"{notation.number(value)} ms" for value in milliseconds))
                for share, milliseconds in both.items()
            ],
        ),
        cell=number,
        caption="Latency, ms",
        note=f"Timed {what}. {requests} requests in all sessions{read}; the table has the quantiles of the typical session or block.",
    )


def _at(quantiles: Quantiles, share: float) -> float:
    """Latency in ms at a share, interpolated."""
    import numpy as np

    nines = [1 / (1 - known_share) for known_share in quantiles.shares]
    return float(np.interp(1 / (1 - share), nines, quantiles.milliseconds))


def _name(share: float) -> str:
    return f"{100 * share:.10g} %"


def _spec(width: int, *, steep: float) -> dict[str, Any]:
    axis = {
        "title": "share of operations that are faster",
        "values": [2, 10, 100, 1000, 10000, 100000],
        "labelExpr": "format(100 - 100 / datum.value, '.10~g') + ' %'",
        "labelOverlap": "greedy",
    }
    x = {"field": "nines", "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": axis}
    scale = {"type": "log", "nice": False} if steep > STEEP else {"zero": True}
    ticks = [base * 10**power for power in range(-4, 7) for base in ((1,) if steep > DECADES else (1, 2, 5))]
    y_axis = {"title": None, "format": ",~g", "labelOverlap": "greedy"} | (
        {"values": ticks} if steep > STEEP else {"tickCount": 4}
    )
    y = {"field": "ms", "type": "quantitative", "scale": scale, "axis": y_axis}
    legend = {"orient": "top", "symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2}
    arms = {"field": "arm", "type": "nominal", "legend": legend}
    colour = arms | {"scale": {"domain": list(ARMS), "range": [PLAIN, ENCRYPTED]}}
    dash = arms | {"scale": {"domain": list(ARMS), "range": [[1, 0], [6, 3]]}}
    return {
        "width": width - 44,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": "latency, ms", "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "data": {"name": "lines"},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": x,
            "y": y,
            "stroke": colour,
            "strokeDash": dash,
            "order": {"field": "nines", "type": "quantitative"},
        },
    }
