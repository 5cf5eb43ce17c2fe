"""Forest plot: every cell's cost with its 95 % interval, sorted by estimate, and the budget as a line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ciphercost.estimate import notation
from ciphercost.model.result import Cell, Estimate
from ciphercost.report import layout
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import BACKGROUND, INK, MUTED, Chart, by_row, caps
from ciphercost.report.words import cell_text, figure_text, verdict_text

OUTLYING = 1.6
"""An interval is cut off, with an arrow, if it extends this many times further than all estimates."""
POINT = 24
"""A point's area, small enough that the ends of a narrow interval are visible beside it."""
LONG = 24
"""From this many rows the axis is above them."""
SIZES: dict[Width, dict[str, int]] = {
    # width, row height, start and end of the axis, room for a name, all in pixels
    "wide": {"width": 960, "row": 26, "from": 330, "to": 690, "name": 280, "up": 0},
    "middle": {"width": 700, "row": 26, "from": 226, "to": 470, "name": 200, "up": 0},
    "narrow": {"width": 326, "row": 46, "from": 12, "to": 314, "name": 200, "up": -16},
}
LETTERS: dict[Width, int] = {"wide": 44, "middle": 30, "narrow": 31}
"""Characters per line of a name. Longer names take more lines, because their ends distinguish them."""
LINES = 4
"""Most lines of a name; a longer name loses its middle."""
LONG_AXIS = 30
"""Largest ÷ smallest from which an axis of factors has marks only at powers of ten."""
LINE = 14
"""Height of a line."""
CPU = "cpu"
"""Measure of cells that lead with CPU: the server's, an embedded database's process, or with kernel threads at rest."""
TITLES = {
    CPU: "CPU per operation that encryption adds",
    "throughput": "Operations per second that encryption costs",
    "latency_p50": "Latency p50 that encryption adds",
}
UNITS = {
    CPU: ("CPU per operation", "more", "less"),
    "throughput": ("operations per second", "fewer", "more"),
    "latency_p50": ("latency p50", "higher", "lower"),
}
"""(quantity on the axis, word for a cost, word for a gain)."""
CONTROLS = "; controls, which encrypt nothing"
Named = tuple[Cell, str]
"""A cell and its label."""


def plots(of: Subject) -> Iterator[Plot]:
    """A plot per measure: CPU of cells that lead with it, operations per second, and latency of cells that have only that.

    A budget limits operations per second or latency, so with a budget, cells that lead with CPU are in that plot too.
    The first plot is `forest`. Controls get a plot of their own if they need another axis than the other cells.
    """
    cells = list(zip(of.result.cells, cell_text.names(of.result.cells), strict=True))
    # Cells without a number are only in the first plot.
    missing = [named_cell for named_cell in cells if not figure_text.main_metric(named_cell[0])]
    first = True
    for measure in TITLES:
        known = [
            named_cell for named_cell in cells if _metric(named_cell[0], measure) and _leads(of, named_cell[0], measure)
        ]
        for shown, controls in _axes(known, measure):
            name = "forest" if first else f"forest-{measure.partition('_')[0]}{'-controls' * controls}"
            yield _plot(of, measure, shown, missing if first else [], name=name, controls=controls)
            first = False


def in_order(of: Subject, shown: list[Named], *, name: str) -> Plot:
    """One plot of these cells, which lead with the same metric, in this order and not by their costs."""
    measure = next(measure for measure in TITLES if _metric(shown[0][0], measure))
    return _plot(of, measure, shown, [], name=name, controls=False, by_cost=False)


def _metric(cell: Cell, measure: str) -> str:
    """The cell's metric for this measure, or empty."""
    if measure == CPU:
        lead = figure_text.lead_metric(cell)
        return lead if "cpu" in lead and cell.imported is None else ""
    return measure if figure_text.main_metric(cell) == measure else ""


def _leads(of: Subject, cell: Cell, measure: str) -> bool:
    return measure == CPU or of.budget is not None or not _metric(cell, CPU)


def _axes(known: list[Named], measure: str) -> Iterator[tuple[list[Named], bool]]:
    """(cells of one plot of this measure, whether they are separate controls)."""

    def factors(cells: list[Named]) -> bool:
        return any(notation.by_factor(cell.overhead[_metric(cell, measure)]) for cell, _ in cells)

    controls = [named_cell for named_cell in known if cell_text.is_control(named_cell[0])]
    others = [named_cell for named_cell in known if not cell_text.is_control(named_cell[0])]
    if controls and others and factors(controls) != factors(others):
        yield others, False
        yield controls, True
    elif known:
        yield known, False


def _plot(
    of: Subject,
    measure: str,
    shown: list[Named],
    missing: list[Named],
    *,
    name: str,
    controls: bool,
    by_cost: bool = True,
) -> Plot:
    keys = {id(cell): _metric(cell, measure) for cell, _ in shown}
    # A budget limits operations per second or latency.
    budget_ = None if measure == CPU else of.budget
    if by_cost:
        shown = sorted(
            shown,
            key=lambda named_cell: figure_text.loss(
                keys[id(named_cell[0])], named_cell[0].overhead[keys[id(named_cell[0])]]
            )[0],
        )
    # The axis uses the notation of the figures: if one is a factor, the axis is a logarithmic axis of factors.
    times = any(notation.by_factor(cell.overhead[keys[id(cell)]]) for cell, _ in shown)
    # On an axis of factors, throughput is drawn as time per operation, so that further right is always a higher cost.
    losses = [_loss(keys[id(cell)], cell.overhead[keys[id(cell)]], times=times) for cell, _ in shown]
    all_controls = all(cell_text.is_control(cell) for cell, _ in shown)
    rows = []
    least, most = _domain(losses, budget_, times=times)
    for number, ((cell, label), loss) in enumerate(zip(shown, losses, strict=True)):
        key = keys[id(cell)]
        cost, low, high = (1 + value if times else 100 * value for value in loss)
        estimate = cell.overhead[key]
        cost_text = figure_text.cost(key, estimate)
        rows.append(
            {
                "n": number,
                "name": label,
                "cost": min(max(cost, least), most),
                "low": min(max(low, least), most),
                "high": min(max(high, least), most),
                "low_cut": not least <= low <= most,
                "high_cut": not least <= high <= most,
                "said": cost_text,
                "more": f"{cost_text}   ({figure_text.bounds(key, estimate)})",
                "control": cell_text.is_control(cell) and not all_controls,
                "kind": "unresolved" if figure_text.resolution(cell, key) == "unresolved" else "resolved",
            }
        )
    cut = [
        {"n": row["n"], "at": least if side == 1 else most, "side": "left" if side == 1 else "right"}
        for row, loss in zip(rows, losses, strict=True)
        for side in (1, 2)
        if (value := 1 + loss[side] if times else 100 * loss[side]) < least or value > most
    ]
    for number, (cell, label) in enumerate(missing, start=len(rows)):
        status = cell.status.replace("-", " ")
        rows.append({"n": number, "name": label, "said": status, "more": f"no number: {status}", "kind": "missing"})
    budget = []
    if budget_ is not None:
        factor = 1 / (1 - budget_) if measure == "throughput" and budget_ < 1 else 1 + budget_
        budget = [{"at": factor if times else 100 * budget_}]
    unit = _unit(measure, least, times=times)
    charts = {}
    for width in SIZES:
        named, lines = _names(rows, LETTERS[width])
        charts[width] = Chart(
            _spec(
                width, len(rows), unit, least, most, times=times, inverse=times and measure == "throughput", lines=lines
            ),
            {"rows": named, "cut": cut, "budget": budget, "none": [{"at": 1.0 if times else 0.0}]},
        )
    return Plot(
        name=name,
        title=TITLES[measure] + CONTROLS * controls,
        finding=_finding(of, measure, shown, controls=controls),
        charts=charts,
        table=_table(budget_, keys, shown, missing),
        note=_note(budget_, rows, cut),
    )


def _loss(key: str, estimate: Estimate, *, times: bool) -> tuple[float, float, float]:
    """(cost, low, high) like `loss`; on an axis of factors, plain ÷ encrypted for metrics where higher is better."""
    if times and key == "throughput":
        return 1 / estimate.ratio - 1, 1 / estimate.high - 1, 1 / estimate.low - 1
    return figure_text.loss(key, estimate)


def _finding(of: Subject, measure: str, shown: list[Named], *, controls: bool) -> str:
    if measure == CPU or controls:
        return verdict_text.answer(msgspec.structs.replace(of.result, cells=[cell for cell, _ in shown]))
    return verdict_text.answer(of.result, measure)


def _unit(measure: str, least: float, *, times: bool) -> str:
    """The axis title. The labels have no sign, so the title shows which side is which direction."""
    what, more, less = UNITS[measure]
    if times:
        # It must fit the width of a phone.
        return f"{what.replace('operations per second', 'operations/s')}, encrypted ÷ plain (logarithmic)"
    return f"← {less} · % {what} · {more} →" if least < 0 else f"% {more} {what}"


def _names(rows: Sequence[dict[str, Any]], letters: int) -> tuple[list[dict[str, Any]], int]:
    """The rows with wrapped names, and the number of lines of the longest name."""
    wrapped = [layout.wrap(row["name"], "", "", letters) for row in rows]
    wrapped = [lines if len(lines) <= LINES else [*lines[: LINES - 2], "…", lines[-1]] for lines in wrapped]
    most = max((len(lines) for lines in wrapped), default=1)
    if most <= 1:
        return list(rows), 1
    return [{**row, "name": lines} for row, lines in zip(rows, wrapped, strict=True)], most


def _domain(losses: Sequence[tuple[float, float, float]], budget: float | None, *, times: bool) -> tuple[float, float]:
    """Both ends of the axis. It includes no change, and intervals that don't extend far beyond all estimates."""
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
    width: Width, rows: int, unit: str, least: float, most: float, *, times: bool, inverse: bool, lines: int = 1
) -> dict[str, Any]:
    size = SIZES[width]
    height = size["row"] + LINE * (lines - 1) if width == "narrow" else max(size["row"], LINE * lines + 6)
    room = 0.04 * (most - least)
    scale: dict[str, Any] = {"range": [size["from"], size["to"]], "zero": False, "nice": False}
    scale |= {"type": "log", "domain": [least, most * 1.05]} if times else {"domain": [least - room, most + room]}
    axis: dict[str, Any] = {
        "title": unit,
        "labelExpr": "'×' + datum.label" if times else "format(abs(datum.value), '~g')",
        # The end of a long list is out of sight.
        "orient": "top" if rows > LONG else "bottom",
        "titleX": (size["from"] + size["to"]) / 2,
        "titleAnchor": "middle",
        "tickCount": 7 if width == "wide" else 5,
        "labelSeparation": 6,
    }
    if inverse:
        axis = axis | {"values": _inverse(least, most), "labelExpr": "'×' + format(1 / datum.value, '~r')"}
    x = {"field": "cost", "type": "quantitative", "scale": scale, "axis": axis}
    y = by_row(rows)
    # In a narrow chart the name is above its bar, which moves down to make room for more lines.
    above = LINE * (lines - 1) if width == "narrow" else 0
    up = size["up"] - above
    under = 8 + above // 2 if width == "narrow" else 0
    rule = {"type": "rule", "yOffset": under, "y2Offset": under}
    at = {"x": {"field": "at", "type": "quantitative"}}
    quantitative = {"type": "quantitative"}
    name = {"type": "text", "align": "left", "dy": up + under, "baseline": "middle", "lineHeight": LINE}
    cost_text = {"type": "text", "align": "right", "dy": up + under, "baseline": "middle", "fontWeight": 600}
    right = {"type": "text", "align": "left", "baseline": "middle"}
    numbered = {"transform": [{"filter": "datum.kind != 'missing'"}]}
    # No line runs through a name: it lies on a plate of the page's colour.
    middle = up + under + LINE * (lines - 1) / 2
    plate = {"type": "bar", "color": BACKGROUND, "height": LINE * lines + 4, "yOffset": middle}
    across = {"x": {"value": 0}, "x2": {"value": size["width"]}, "y": y}
    plates: list[dict[str, Any]] = [{"mark": plate, "encoding": across}] if width == "narrow" else []
    texts: list[dict[str, Any]] = [
        {"mark": mark, "encoding": {"x": {"value": place}, "y": y, "text": {"field": field}}}
        for mark, place, field in ((name, 0, "name"), (cost_text, size["width"], "said"))
        if width == "narrow" or field == "name"
    ]
    if width != "narrow":
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
            *plates,
            {
                **numbered,
                "mark": {**rule, "color": INK, "strokeWidth": 2.2},
                "encoding": {"x": {"field": "low", **quantitative}, "x2": {"field": "high"}, "y": y},
            },
            *caps(quantitative, y, under, "datum.kind != 'missing'"),
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


def _inverse(least: float, most: float) -> list[float]:
    """Positions of the marks of encrypted ÷ plain on an axis of plain ÷ encrypted."""
    steps = (1, 1.5, 2, 3, 5, 7) if most / least < LONG_AXIS else (1,)
    marks = (step * 10.0**power for power in range(-6, 7) for step in steps)
    return [1 / mark for mark in marks if least <= 1 / mark <= most]


def _note(budget: float | None, rows: list[dict[str, Any]], cut: list[dict[str, Any]]) -> str:
    sentences = ["Each bar is a 95 % interval; further right is a higher cost; the vertical line marks no change."]
    if any(row["kind"] == "unresolved" for row in rows):
        sentences.append("A hollow point is unresolved.")
    if any(row.get("control") for row in rows):
        sentences.append("A diamond is a control, which encrypts nothing.")
    if cut:
        sentences.append("An interval with an arrow extends beyond the plot.")
    if budget is not None:
        sentences.append(f"The dashed line is the budget, {budget * 100:g} %.")
    return " ".join(sentences)


def _table(budget: float | None, keys: dict[int, str], shown: list[Named], missing: list[Named]) -> Table:
    measured = list(dict.fromkeys(figure_text.quantity(cell, keys[id(cell)]) for cell, _ in shown))
    what = "operations per second" if measured == ["operations/s"] else measured[0]
    head = ["cell", what if len(measured) == 1 else "CPU per operation", "95 % interval", "verdict", "sessions"]
    rows = []
    for cell, label in shown:
        key = keys[id(cell)]
        estimate = cell.overhead[key]
        row = [
            label,
            figure_text.cost(key, estimate),
            figure_text.bounds(key, estimate),
            figure_text.resolution(cell, key),
            str(cell.sessions),
        ]
        rows.append((*row, _against(budget, key, cell)) if budget is not None else tuple(row))
    rest = ("",) * (5 if budget is not None else 4)
    rows += [(label, f"no number: {cell.status.replace('-', ' ')}", *rest[1:]) for cell, label in missing]
    if budget is not None:
        head.append(f"budget {budget * 100:g} %")
    return Table(tuple(head), rows)


def _against(budget: float | None, key: str, cell: Cell) -> str:
    """`within`, `over` or `not resolved`, by the interval rather than the estimate."""
    if budget is None:
        return ""
    _, low, high = figure_text.loss(key, cell.overhead[key])
    return "within" if high <= budget else "over" if low > budget else "not resolved"
