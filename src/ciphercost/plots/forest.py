"""forest: every cell's cost with its 95 % interval, sorted by estimate; the budget as a line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ciphercost import layout, words
from ciphercost.model import Cell
from ciphercost.plots import Plot, Subject, Table, Width
from ciphercost.plots._draw import BACKGROUND, GROUND, INK, MUTED, Chart

OUTLYING = 1.6
"""An interval is cut off, and says so by an arrow, where it reaches this many times farther than all estimates."""
POINT, CAP = 24, 5
"""A point's area and the half of an end's height, so that the ends show beside the point however narrow the interval."""
LONG = 24
"""Rows, from which on the axis is above them."""
SIZES: dict[Width, dict[str, int]] = {
    # width, row's height, where the axis begins and ends, and how much room a name has
    "wide": {"width": 960, "row": 26, "from": 330, "to": 690, "name": 280, "up": 0},
    "narrow": {"width": 326, "row": 46, "from": 12, "to": 314, "name": 200, "up": -16},
}
LETTERS: dict[Width, int] = {"wide": 44, "narrow": 31}
"""Of a name, a line: longer names take more lines, since what they end in sets them apart."""
LINES = 4
"""Lines of a name at most; of a longer one the middle is left out."""
LINE = 14
"""Height of a line."""
TITLES = {
    "throughput": "Operations per second that encryption costs",
    "latency_p50": "Latency p50 that encryption adds",
}


def plots(of: Subject) -> Iterator[Plot]:
    """One for each measure: operations a second, and the latency of cells that have no other."""
    cells = of.result.cells
    labels = words.names(cells)
    told = False
    for key in TITLES:
        shown = [(cell, label) for cell, label in zip(cells, labels, strict=True) if words.main_metric(cell) == key]
        if not shown:
            continue
        shown.sort(key=lambda each: words.loss(key, each[0].overhead[key])[0])
        # What has no number stands in the first plot alone.
        missing = [each for each in zip(cells, labels, strict=True) if not told and not words.main_metric(each[0])]
        yield _plot(of, key, shown, missing)
        told = True


def _plot(of: Subject, key: str, shown: list[tuple[Cell, str]], missing: list[tuple[Cell, str]]) -> Plot:
    losses = [words.loss(key, cell.overhead[key]) for cell, _ in shown]
    # The axis has the notation of the figures beside it: where one of them is a factor, a logarithmic axis of factors.
    times = key != "throughput" and any(words.by_factor(cell.overhead[key]) for cell, _ in shown)
    rows = []
    least, most = _domain(losses, of.budget, times=times)
    for number, ((cell, label), each) in enumerate(zip(shown, losses, strict=True)):
        cost, low, high = (1 + value if times else 100 * value for value in each)
        estimate = cell.overhead[key]
        said = words.cost(key, estimate)
        rows.append(
            {
                "n": number,
                "name": label,
                "cost": min(max(cost, least), most),
                "low": min(max(low, least), most),
                "high": min(max(high, least), most),
                "low_cut": not least <= low <= most,
                "high_cut": not least <= high <= most,
                "said": said,
                "more": f"{said}   ({words.bounds(key, estimate)})",
                "control": words.is_control(cell) and not all(words.is_control(each) for each, _ in shown),
                "kind": "unresolved" if cell.verdict == "unresolved" else "resolved",
            }
        )
    cut = [
        {"n": row["n"], "at": least if side == 1 else most, "side": "left" if side == 1 else "right"}
        for row, each in zip(rows, losses, strict=True)
        for side in (1, 2)
        if (value := 1 + each[side] if times else 100 * each[side]) < least or value > most
    ]
    for number, (cell, label) in enumerate(missing, start=len(rows)):
        status = cell.status.replace("-", " ")
        rows.append({"n": number, "name": label, "said": status, "more": f"no number: {status}", "kind": "missing"})
    budget = [{"at": 1 + of.budget if times else 100 * of.budget}] if of.budget is not None else []
    unit = _unit(key, least, times=times)
    charts = {}
    for width in SIZES:
        named, lines = _names(rows, LETTERS[width])
        charts[width] = Chart(
            _spec(width, len(rows), unit, least, most, times=times, lines=lines),
            {"rows": named, "cut": cut, "budget": budget, "none": [{"at": 1.0 if times else 0.0}]},
        )
    return Plot(
        name="forest" if key == "throughput" else "forest-latency",
        title=TITLES[key],
        finding=words.answer(of.result, key),
        charts=charts,
        table=_table(of, key, shown, missing),
        note=_note(of, rows, cut),
    )


def _unit(key: str, least: float, *, times: bool) -> str:
    """The axis's title. Its labels have no sign, so it says on which side of no change the other direction lies."""
    if times:
        return "latency p50, encrypted ÷ plain (logarithmic)"
    what, more, less = (
        ("operations per second", "fewer", "more") if key == "throughput" else ("latency p50", "higher", "lower")
    )
    return f"← {less} · % {what} · {more} →" if least < 0 else f"% {more} {what}"


def _names(rows: Sequence[dict[str, Any]], letters: int) -> tuple[list[dict[str, Any]], int]:
    """The rows, each name in lines of so many letters, and the most lines that a name has."""
    wrapped = [layout.wrap(row["name"], "", "", letters) for row in rows]
    wrapped = [lines if len(lines) <= LINES else [*lines[: LINES - 2], "…", lines[-1]] for lines in wrapped]
    most = max((len(lines) for lines in wrapped), default=1)
    if most <= 1:
        return list(rows), 1
    return [{**row, "name": lines} for row, lines in zip(rows, wrapped, strict=True)], most


def _domain(losses: Sequence[tuple[float, float, float]], budget: float | None, *, times: bool) -> tuple[float, float]:
    """Least and most of the axis: no cost is always on it, intervals are unless they reach far beyond all estimates."""
    costs = [cost for cost, _, _ in losses] + [0.0] + ([budget] if budget is not None else [])
    if times:
        reach = OUTLYING * max(1 + cost for cost in costs)
        low = max(min(1 + low for _, low, _ in losses), 0.5 * min(1 + cost for cost in costs))
        return min(low, 1.0), max(1 + max(costs), min(max(1 + high for *_, high in losses), reach))
    span = max(max(costs) - min(costs), 0.01)
    least = max(min(low for _, low, _ in losses), min(costs) - OUTLYING * span)
    most = min(max(high for *_, high in losses), max(costs) + OUTLYING * span)
    return 100 * min(least, *costs), 100 * max(most, *costs)


def _spec(
    width: Width, rows: int, unit: str, least: float, most: float, *, times: bool, lines: int = 1
) -> dict[str, Any]:
    size = SIZES[width]
    height = size["row"] + LINE * (lines - 1) if width == "narrow" else max(size["row"], LINE * lines + 6)
    room = 0.04 * (most - least)
    scale: dict[str, Any] = {"range": [size["from"], size["to"]], "zero": False, "nice": False}
    scale |= {"type": "log", "domain": [least, most * 1.05]} if times else {"domain": [least - room, most + room]}
    axis = {
        "title": unit,
        "labelExpr": "'×' + datum.label" if times else "format(abs(datum.value), '~g')",
        # Of a long list the end is not in sight.
        "orient": "top" if rows > LONG else "bottom",
        "titleX": (size["from"] + size["to"]) / 2,
        "titleAnchor": "middle",
        "tickCount": 7 if width == "wide" else 5,
    }
    x = {"field": "cost", "type": "quantitative", "scale": scale, "axis": axis}
    y = {
        "field": "n",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [-0.5, rows - 0.5], "reverse": True, "nice": False, "zero": False},
    }
    # In a narrow chart the name stands above its bar, which moves down to make room for more lines.
    above = LINE * (lines - 1) if width == "narrow" else 0
    up = size["up"] - above
    under = 8 + above // 2 if width == "narrow" else 0
    rule = {"type": "rule", "yOffset": under, "y2Offset": under}
    at = {"x": {"field": "at", "type": "quantitative"}}
    quantitative = {"type": "quantitative"}
    name = {"type": "text", "align": "left", "dy": up + under, "baseline": "middle", "lineHeight": LINE}
    said = {"type": "text", "align": "right", "dy": up + under, "baseline": "middle", "fontWeight": 600}
    right = {"type": "text", "align": "left", "baseline": "middle"}
    numbered = {"transform": [{"filter": "datum.kind != 'missing'"}]}
    texts: list[dict[str, Any]] = [
        {"mark": mark | halo, "encoding": {"x": {"value": place}, "y": y, "text": {"field": field}}}
        for halo in ((GROUND, {}) if width == "narrow" else ({},))
        for mark, place, field in ((name, 0, "name"), (said, size["width"], "said"))
        if width == "narrow" or field == "name"
    ]
    if width == "wide":
        beside = {"x": {"value": size["to"] + 16}, "y": y, "text": {"field": "more"}}
        lost = [{"filter": "datum.kind == 'missing'"}]
        texts.append({**numbered, "mark": right, "encoding": beside})
        texts.append({"transform": lost, "mark": right | {"color": MUTED}, "encoding": beside})
    return {
        "width": size["width"],
        "height": height * rows,
        "autosize": {"type": "pad", "contains": "content"},
        "data": {"name": "rows"},
        "layer": [
            {"data": {"name": "none"}, "mark": {"type": "rule", "color": INK, "strokeWidth": 1.2}, "encoding": at},
            {
                "data": {"name": "budget"},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5, "strokeDash": [6, 4]},
                "encoding": at,
            },
            {
                **numbered,
                "mark": {**rule, "color": INK, "strokeWidth": 2.2},
                "encoding": {"x": {"field": "low", **quantitative}, "x2": {"field": "high"}, "y": y},
            },
            *(
                {
                    "transform": [{"filter": f"datum.kind != 'missing' && !datum.{end}_cut"}],
                    "mark": {
                        "type": "rule",
                        "color": INK,
                        "strokeWidth": 1.5,
                        "yOffset": under - CAP,
                        "y2Offset": under + CAP,
                    },
                    "encoding": {"x": {"field": end, **quantitative}, "y": y, "y2": {"field": "n"}},
                }
                for end in ("low", "high")
            ),
            {
                "data": {"name": "cut"},
                "mark": {"type": "point", "filled": True, "color": INK, "size": 44, "opacity": 1, "yOffset": under},
                "encoding": {
                    "x": {"field": "at", "type": "quantitative"},
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
                **numbered,
                "mark": {"type": "point", "size": POINT, "strokeWidth": 1.5, "opacity": 1, "yOffset": under},
                "encoding": {
                    "x": x,
                    "y": y,
                    "shape": {"condition": {"test": "datum.control", "value": "diamond"}, "value": "circle"},
                    "stroke": {"value": INK},
                    "fill": {"condition": {"test": "datum.kind == 'resolved'", "value": INK}, "value": BACKGROUND},
                },
            },
            *texts,
        ],
    }


def _note(of: Subject, rows: list[dict[str, Any]], cut: list[dict[str, Any]]) -> str:
    said = ["Each bar is a 95 % interval; farther right costs more; the vertical line is no change."]
    if any(row["kind"] == "unresolved" for row in rows):
        said.append("A hollow point was not resolved.")
    if any(row.get("control") for row in rows):
        said.append("A diamond is a control, where nothing is encrypted.")
    if cut:
        said.append("An interval that ends in an arrow goes on.")
    if of.budget is not None:
        said.append(f"The dashed line is the budget, {of.budget * 100:g} %.")
    return " ".join(said)


def _table(of: Subject, key: str, shown: list[tuple[Cell, str]], missing: list[tuple[Cell, str]]) -> Table:
    head = ["cell", words.LABELS[key], "95 % interval", "verdict", "sessions"]
    rows = []
    for cell, label in shown:
        estimate = cell.overhead[key]
        row = [
            f"{label} (control)" if words.is_control(cell) else label,
            words.cost(key, estimate),
            words.bounds(key, estimate),
            cell.verdict or "",
            str(cell.sessions),
        ]
        rows.append((*row, _against(of.budget, key, cell)) if of.budget is not None else tuple(row))
    rest = ("",) * (5 if of.budget is not None else 4)
    rows += [(label, f"no number: {cell.status.replace('-', ' ')}", *rest[1:]) for cell, label in missing]
    if of.budget is not None:
        head.append(f"budget {of.budget * 100:g} %")
    return Table(tuple(head), rows)


def _against(budget: float | None, key: str, cell: Cell) -> str:
    """By the interval, not by the estimate: within, over, or not resolved."""
    if budget is None:
        return ""
    _, low, high = words.loss(key, cell.overhead[key])
    return "within" if high <= budget else "over" if low > budget else "not resolved"
