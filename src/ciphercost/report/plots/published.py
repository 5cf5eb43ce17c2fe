"""Plot of a study's published costs beside our 95 % intervals, a row per figure. Pure.

Unlike in `forest`, the axis is encrypted ÷ plain, as studies print it: right of no change is more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ciphercost.estimate.notation import DOUBLING
from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.report import layout
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import BACKGROUND, GROUND, INK, MUTED, PUBLISHED, Chart, by_row, caps
from ciphercost.studies.costs import NONE, claimed, too_wide, with_interval

NAME = "published"
REACH = 0.6
"""An interval ends in an arrow if it extends beyond all estimates by more than this share of the axis."""
LEAST_SPAN = 0.02
"""Shortest axis of percentages, for costs that are nearly equal."""
POINT, DIAMOND, ARROW = 40, 90, 44
"""Areas of the marks."""
MARGIN = 7
"""Pixels above and below a row's texts if they are beside its marks."""
ABOVE, BELOW, MARKS = 4, 28, 16
"""Pixels above and below the texts if the marks are below them, and from the marks to the row's end. Marks are nearest to their own texts."""
LINE = 15
"""Height of a line of text."""
SIZES: dict[Width, dict[str, int]] = {
    # width, start and end of the axis, characters per line of a name
    "wide": {"width": 960, "from": 250, "to": 660, "letters": 34},
    "middle": {"width": 700, "from": 190, "to": 460, "letters": 26},
    "narrow": {"width": 326, "from": 10, "to": 316, "letters": 44},
}
NOTE = (
    "Diamond: the published cost, which has no interval. Circle and bar: our method with its 95 % interval; a hollow circle means "
    "that the interval includes no change. The vertical line marks no change."
)
GOES_ON = "A bar with an arrow extends beyond the plot."


class _Axis(NamedTuple):
    """Maps a ratio to a position."""

    times: bool
    """Whether it has factors on a logarithmic scale; otherwise percentages."""
    least: float
    most: float

    def at(self, ratio: float) -> float:
        return min(max(_place(ratio, times=self.times), self.least), self.most)

    def has(self, ratio: float) -> bool:
        return self.least <= _place(ratio, times=self.times) <= self.most


def plots(of: Subject) -> Iterator[Plot]:
    """One plot for the run of a study."""
    if of.result.study is not None:
        yield from drawn(of.result.study)


def drawn(study: StudyResult, name: str = NAME) -> Iterator[Plot]:
    """A study's plot; none if nothing was published. `name`: unique on a page of several studies."""
    from ciphercost import studies
    from ciphercost.studies import agreement, table

    judged = studies.get(study.study).judged(study)
    shown = [figure for figure in judged.figures if figure.published is not None or _known(figure)]
    if not any(figure.published is not None for figure in shown):
        return
    axis = _axis(shown)
    rows = [_row(number, figure, table.label(figure, judged), axis) for number, figure in enumerate(shown)]
    cut = [_arrow(row["n"], axis, end) for row in rows for end in ("low", "high") if row[f"{end}_cut"]]
    yield Plot(
        name=name,
        title=f"Published and measured here: what {judged.changed} changed",
        finding=f"{agreement.counted(judged)}.",
        charts={width: _chart(width, rows, cut, axis) for width in SIZES},
        table=Table(
            ("cost", "as published", "our method (95 %)", "published cost"),
            [
                (row["label"], row["printed"], row["ours"], agreement.SHORT[judged.of(figure)])
                for row, figure in zip(rows, shown, strict=True)
            ],
        ),
        note=" ".join([NOTE, GOES_ON] if cut else [NOTE]),
    )


def _known(figure: StudyFigure) -> bool:
    return figure.ours is not None and figure.low is not None and figure.high is not None


def _row(number: int, figure: StudyFigure, label: str, axis: _Axis) -> dict[str, Any]:
    """One figure's positions on the axis, and its texts."""
    printed = claimed(figure)
    row: dict[str, Any] = {
        "n": number,
        "label": label,
        "printed": printed if figure.published is not None else NONE,
        "ours": with_interval(figure) if _known(figure) else NONE,
        "has_published": figure.published is not None,
        "has_ours": False,
        "low_cut": False,
        "high_cut": False,
        "published": axis.at(figure.published) if figure.published is not None else 0.0,
        "estimate": 0.0,
        "low": 0.0,
        "high": 0.0,
    }
    if figure.ours is None or figure.low is None or figure.high is None:
        return row
    return row | {
        "has_ours": True,
        "kind": "unresolved" if figure.low <= 1 <= figure.high else "resolved",
        "estimate": axis.at(figure.ours),
        "low": axis.at(figure.low),
        "high": axis.at(figure.high),
        "low_cut": not axis.has(figure.low),
        "high_cut": not axis.has(figure.high),
    }


def _arrow(number: int, axis: _Axis, end: str) -> dict[str, Any]:
    return {"n": number, "at": axis.least if end == "low" else axis.most, "side": "left" if end == "low" else "right"}


def _place(ratio: float, *, times: bool) -> float:
    """The logarithm on an axis of factors, the change in per cent on one of percentages."""
    if times:
        return math.log10(ratio) if ratio > 0 else -math.inf
    return 100 * (ratio - 1)


def _axis(shown: Sequence[StudyFigure]) -> _Axis:
    """The axis. It includes no change, all published costs and estimates, and intervals that don't extend far beyond them."""
    ratios = [1.0, *(figure.published for figure in shown if figure.published is not None)]
    ratios += [figure.ours for figure in shown if figure.ours is not None and _known(figure) and not _wide(figure)]
    times = max(ratios) >= DOUBLING
    known = [_place(ratio, times=times) for ratio in ratios if ratio > 0 or not times]
    span = max(max(known) - min(known), 0.1 if times else 100 * LEAST_SPAN)
    least, most = min(known) - REACH * span, max(known) + REACH * span
    ends = [
        _place(end, times=times)
        for figure in shown
        for end in (figure.low, figure.high)
        if end is not None and _known(figure)
    ]
    return _Axis(times, max(min([*known, *ends]), least), min(max([*known, *ends]), most))


def _wide(figure: StudyFigure) -> bool:
    """Whether the interval is too wide to print its estimate."""
    return figure.low is not None and figure.high is not None and too_wide(figure.low, figure.high)


# ── the chart


def _chart(width: Width, rows: Sequence[dict[str, Any]], cut: Sequence[dict[str, Any]], axis: _Axis) -> Chart:
    named, height = [], 0
    for row in rows:
        name = layout.wrap(row["label"], "", "", SIZES[width]["letters"])
        texts = [f"published: {row['printed']}", f"our method: {row['ours']}"]
        if width == "narrow":
            texts = [""] * len(name) + texts
        named.append({**row, "name": name, "said": texts})
        height = max(height, LINE * max(len(name), len(texts)))
    spec = _spec(width, len(rows), height, axis)
    return Chart(spec, {"rows": named, "cut": list(cut), "none": [{"at": _place(1.0, times=axis.times)}]})


def _spec(width: Width, rows: int, texts: int, axis: _Axis) -> dict[str, Any]:
    size = SIZES[width]
    # In a narrow chart the texts are above the marks.
    height = texts + 2 * MARGIN if width != "narrow" else texts + ABOVE + BELOW
    down = 0 if width != "narrow" else height // 2 - MARKS
    room = 0.05 * (axis.most - axis.least)
    x = {
        "type": "quantitative",
        "scale": {
            "range": [size["from"], size["to"]],
            "domain": [axis.least - room, axis.most + room],
            "zero": False,
            "nice": False,
        },
        "axis": _ticks(width, axis),
    }
    y = by_row(rows)
    offset = {"yOffset": down, "y2Offset": down}
    measured = [{"filter": "datum.has_ours"}]
    point = {"type": "point", "filled": True, "opacity": 1, "yOffset": down}
    return {
        "width": size["width"],
        "height": height * rows,
        "autosize": {"type": "pad", "contains": "content"},
        "data": {"name": "rows"},
        "layer": [
            {
                "data": {"name": "none"},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2},
                "encoding": {"x": {"field": "at", **x}},
            },
            *([_plate(y, texts, height)] if width == "narrow" else []),
            {
                "transform": measured,
                "mark": {"type": "rule", **offset, "color": INK, "strokeWidth": 2.2},
                "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "y": y},
            },
            *caps(x, y, down, "datum.has_ours"),
            {
                "data": {"name": "cut"},
                "mark": {**point, "color": INK, "size": ARROW},
                "encoding": {
                    "x": {"field": "at", **x},
                    "y": y,
                    "shape": {
                        "field": "side",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": ["left", "right"], "range": ["triangle-left", "triangle-right"]},
                    },
                },
            },
            {
                "transform": [{"filter": "datum.has_published"}],
                "mark": {**point, "shape": "diamond", "size": DIAMOND, "color": PUBLISHED},
                "encoding": {"x": {"field": "published", **x}, "y": y},
            },
            {
                "transform": measured,
                "mark": {"type": "point", "size": POINT, "strokeWidth": 1.5, "opacity": 1, "yOffset": down},
                "encoding": {
                    "x": {"field": "estimate", **x},
                    "y": y,
                    "stroke": {"value": INK},
                    "fill": {"condition": {"test": "datum.kind == 'resolved'", "value": INK}, "value": BACKGROUND},
                },
            },
            *_words(width, y, height),
        ],
    }


def _ticks(width: Width, axis: _Axis) -> dict[str, Any]:
    title = "encrypted ÷ plain (logarithmic)" if axis.times else "← less · % · more →"
    size = SIZES[width]
    ticks: dict[str, Any] = {"title": title, "titleX": (size["from"] + size["to"]) / 2, "titleAnchor": "middle"}
    if axis.times:
        marks = [math.log10(step * 10.0**power) for power in range(-4, 7) for step in _steps(axis)]
        return ticks | {
            "values": [mark for mark in marks if axis.least <= mark <= axis.most],
            "labelExpr": "'×' + format(pow(10, datum.value), '~r')",
        }
    return ticks | {"tickCount": 7 if width == "wide" else 5, "labelExpr": "format(abs(datum.value), '~g')"}


def _steps(axis: _Axis) -> tuple[float, ...]:
    """Marks within a power of ten; fewer if the axis spans more powers."""
    span = axis.most - axis.least
    return (1, 1.5, 2, 3, 5, 7) if span < 0.8 else (1, 2, 5) if span < 1.6 else (1,)


def _plate(y: dict[str, Any], texts: int, height: int) -> dict[str, Any]:
    """No line runs through a row's texts: they lie on a plate of the page's colour."""
    middle = ABOVE + texts / 2 - height / 2
    mark = {"type": "bar", "color": BACKGROUND, "height": texts + 2, "yOffset": middle}
    return {"mark": mark, "encoding": {"x": {"value": 0}, "x2": {"value": SIZES["narrow"]["width"]}, "y": y}}


def _words(width: Width, y: dict[str, Any], height: int) -> list[dict[str, Any]]:
    """Layers with a figure's name and both costs, beside or above the marks."""
    text = {"type": "text", "align": "left", "lineHeight": LINE}
    text |= {"baseline": "top", "dy": (MARGIN if width != "narrow" else ABOVE) - height / 2}
    beside = SIZES[width]["to"] + 18 if width != "narrow" else 0
    places = ((text, 0, "name"), (text | {"color": MUTED}, beside, "said"))
    return [
        {"mark": mark | halo, "encoding": {"x": {"value": at}, "y": y, "text": {"field": field}}}
        for halo in ((GROUND, {}) if width == "narrow" else ({},))
        for mark, at, field in places
    ]
