"""Plot of what the added CPU time means for operations of any length: % more against the operation's own CPU time. Pure.

What encryption in transit adds to an operation does not depend on what the operation itself costs, so its share falls as 1/x: a straight
line where both axes are logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ciphercost.estimate.notation import number
from ciphercost.estimate.parts import round_trips
from ciphercost.model.result import Part, Result
from ciphercost.report import first_screen
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import BACKGROUND, GROUND, INK, SERVER, Chart
from ciphercost.report.words import added_sentences, added_text, operation_text

WIDTHS: dict[Width, int] = {"wide": 560, "narrow": 326}
HEIGHT = 250
NAMES = {10.0: "10 µs", 100.0: "100 µs", 1_000.0: "1 ms", 10_000.0: "10 ms"}
LENGTHS = tuple(NAMES)
"""µs of CPU: the ends of the axis and its ticks."""
SHOWN = {100.0: "100 µs", added_sentences.USUAL: "2 ms"}
"""µs of CPU for which the line has a mark with its share."""
LEAST_SHARE = 0.1
"""Of the estimate, where the band ends although the interval goes on: a logarithmic axis has no 0."""
MOST_LETTERS = 24
"""Of a workload's name beside its mark."""


class Mark(NamedTuple):
    """A measured workload: µs of CPU without encryption, and % more."""

    name: str
    us: float
    percent: float
    low: float
    high: float


def plots(of: Subject) -> Iterator[Plot]:
    added = first_screen.carried(of.result)
    if added is not None and added.value > 0:  # a logarithmic axis has no 0
        yield _plot(added, of.result)


def marks(result: Result) -> Iterator[Mark]:
    """The workloads that belong beside the line: few bytes, one round trip, and connections that stay open."""
    for cell in result.cells:
        added_cost = added_text.of(cell) if cell.layer == "transit" else None
        if added_cost is None or added_cost.added.low <= 0:
            continue
        if (added_sentences.light(cell) and round_trips(cell) < 2) or len(result.cells) == 1:
            shares = (
                100 * (ratio - 1) for ratio in (added_cost.ratio.ratio, added_cost.ratio.low, added_cost.ratio.high)
            )
            yield Mark(_short(cell.workload), added_cost.plain, *shares)


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _plot(added: Part, result: Result) -> Plot:
    measured = list(marks(result))
    inside = [mark for mark in measured if LENGTHS[0] <= mark.us <= LENGTHS[-1]]
    low = max(added.low, LEAST_SHARE * added.value)
    least = 100 * low / LENGTHS[-1]
    most = max([100 * added.high / LENGTHS[0], *(mark.high for mark in inside)])
    line = [
        {
            "us": us,
            "percent": 100 * added.value / us,
            "low": 100 * low / us,
            "high": 100 * added.high / us,
        }
        for us in (LENGTHS[0], LENGTHS[-1])
    ]
    points = [
        {
            "us": mark.us,
            "percent": mark.percent,
            "low": max(least, mark.low),
            "high": mark.high,
            "name": f"{mark.name}, measured",
        }
        for mark in inside
        if mark.percent > 0
    ]
    values = [
        {"us": us, "percent": 100 * added.value / us, "name": f"{added_text.share(added, us)} at {name}"}
        for us, name in SHOWN.items()
        if all(not 0.3 < us / mark.us < 3 for mark in inside)
    ]
    who = next(f"{cell.place or cell.engine} with {cell.mechanism}" for cell in result.cells if cell.layer == "transit")
    word, lengths = first_screen.word(result), sorted({**NAMES, **SHOWN}.items())
    rows = [
        (
            name,
            f"{added_text.share(added, us)} more",
            f"{number(100 * added.low / us)}–{number(100 * added.high / us)} %",
        )
        for us, name in lengths
    ]
    rows += [
        (
            f"{mark.name}, measured: {number(mark.us)} µs",
            f"{number(mark.percent)} % more",
            f"{number(mark.low)}–{number(mark.high)} %",
        )
        for mark in measured
    ]
    adds = added_text.with_interval(added, added_text.KNOWN)
    return Plot(
        name="elsewhere",
        title=f"What {who} adds to {operation_text.article(word)}, by the CPU time of the {word} without it",
        finding=f"{adds} for each {word}: "
        + ", ".join(f"{share} for one of {name}" for name, share, _ in rows[: len(lengths)]),
        charts={
            width: Chart(_spec(size, least, most, word), {"line": line, "points": points, "values": values})
            for width, size in WIDTHS.items()
        },
        table=Table((f"{word} without encryption", "server CPU", "95 % interval"), rows),
        note=f"The line follows from {adds} for each {word}"
        + ("; the dot was measured." if points else ".")
        + " Larger answers and new connections cost extra.",
        slim=True,
    )


def _spec(width: int, least: float, most: float, word: str) -> dict[str, Any]:
    ticks = [10.0**power for power in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]
    x = {
        "field": "us",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [LENGTHS[0], LENGTHS[-1]], "nice": False},
        "axis": {
            "title": f"CPU time of the {word} without encryption",
            "values": list(LENGTHS),
            "labelExpr": "datum.value < 1000 ? datum.value + ' µs' : datum.value / 1000 + ' ms'",
            "labelFlush": True,
            "grid": False,
            "ticks": True,
            "domain": True,
        },
    }
    y = {
        "field": "percent",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [least, most], "nice": False},
        "axis": {"title": None, "values": ticks, "labelExpr": "format(datum.value, '~g') + ' %'", "labelFlush": True},
    }
    label = {"type": "text", "align": "left", "dx": 9, "dy": -8, "fontSize": 12, "text": {"expr": "datum.name"}}
    at = {"x": x, "y": y}
    return {
        "width": width - 60,
        "height": HEIGHT,
        "autosize": {"type": "pad"},
        "title": {"text": "% more server CPU", "fontWeight": "normal", "fontSize": 12, "offset": 6},
        "data": {"name": "line"},
        "layer": [
            {
                "mark": {"type": "area", "color": SERVER, "opacity": 0.22},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {"mark": {"type": "line", "color": SERVER, "strokeWidth": 2}, "encoding": at},
            {
                "data": {"name": "points"},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 2},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"name": "points"},
                "mark": {"type": "point", "filled": True, "color": INK, "size": 60, "opacity": 1},
                "encoding": at,
            },
            {
                "data": {"name": "values"},
                "mark": {
                    "type": "point",
                    "color": SERVER,
                    "fill": BACKGROUND,
                    "size": 40,
                    "strokeWidth": 2,
                    "opacity": 1,
                },
                "encoding": at,
            },
            *(
                {"data": {"name": name}, "mark": label | colour, "encoding": at}
                for name in ("points", "values")
                for colour in (GROUND, {"color": INK})
            ),
        ],
    }
