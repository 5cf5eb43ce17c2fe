"""Plots of where the cost comes from. Pure.

They show the CPU time that encryption adds to handshakes, requests and bytes, if the run has such a fit, and both arms' CPU per operation by
end and mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ciphercost.estimate import notation
from ciphercost.model.result import Cell, Parts, UnitCost
from ciphercost.model.shares import in_percent
from ciphercost.model.spec import ARMS
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import (
    BACKGROUND,
    CLIENT,
    CLIENT_HATCH,
    GROUND,
    INK,
    KERNEL_DOTS,
    MUTED,
    SERVER,
    SERVER_HATCH,
    STRONG,
    STRONG_HATCH,
    WEAK,
    Chart,
)
from ciphercost.report.words import added_text, cell_text, figure_text, unit_cost_text

MOST = 20
"""Cells in the chart, at most; the table has all."""
WIDTHS: dict[Width, int] = {"wide": 940, "middle": 690, "narrow": 312}
WHOLE = 0.95
"""If one part has at least this share of every bar, there is no chart."""
SAME = 0.01
"""There is no chart if no cell's CPU changes by more than this share."""

Segments = tuple[tuple[str, str, str], ...]
"""(key, label, colour), in the order of stacking."""

PARTS: Segments = (
    ("handshake", "handshakes", STRONG),
    ("request", "requests", WEAK),
    ("byte", "bytes", STRONG_HATCH),
)
ENDS: Segments = (
    ("server_user", "server, user code", SERVER),
    ("server_system", "server, kernel", SERVER_HATCH),
    ("kernel", "kernel threads and other processes", KERNEL_DOTS),
    ("client_user", "client, user code", CLIENT),
    ("client_system", "client, kernel", CLIENT_HATCH),
)
WITHOUT_WITH = {"plain": "without", "encrypted": "with"}
"""Names of a control's arms, neither of which is encrypted."""
EMBEDDED = {"client_user": "process, user code", "client_system": "process, kernel"}
LAYERS = {
    "transit": "In transit, encryption runs in the code of client and server, or in the kernel if it was offloaded there.",
    "rest": "At rest, a file system's encryption runs in kernel threads; they are counted together with everything else that ran on the machine.",
    "column": "In columns, the server's functions encrypt in its own code; if the application encrypts, the client does.",
}


def plots(of: Subject) -> Iterator[Plot]:
    """A plot by parts for each mechanism that has them, and one by end and mode for the cells."""
    for number, pair in enumerate(_pairs(of.result.parts)):
        yield _by_parts(of, pair, number)
    if of.result.costs:
        yield _by_unit(of.result.costs)
    labels = cell_text.names(of.result.cells)
    known = [(cell, label) for cell, label in zip(of.result.cells, labels, strict=True) if _levels(cell)]
    if known:
        yield _by_end(known)


def _pairs(parts: list[Parts]) -> Iterator[list[Parts]]:
    """Both ends of each fit, grouped by its cells."""
    seen: dict[tuple[int, ...], list[Parts]] = {}
    for fit in parts:
        seen.setdefault(tuple(fit.cells), []).append(fit)
    yield from seen.values()


# ── handshake, request, byte
# ────────────────────────────────────────────────────────────────────────────────────────────


def _by_parts(of: Subject, pair: list[Parts], number: int) -> Plot:
    cells = of.result.cells
    labels = cell_text.names(cells)
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    largest: dict[tuple[str, str], list[float]] = {}
    for index in pair[0].cells:
        plain = cells[index].arms["plain"]
        each_op = {
            "handshake": plain["connects"] / plain["operations"] if plain["operations"] else 0.0,
            "request": 1.0,
            "byte": plain["wire_bytes_per_op"] / 1e3,
        }
        for fitted in pair:
            coefficients = {"handshake": fitted.handshake_us, "request": fitted.request_us, "byte": fitted.byte_ns}
            added = {key: max(0.0, each_op[key] * part.value) for key, part in coefficients.items()}
            whole = sum(added.values()) or 1.0
            most = max(added, key=lambda key: added[key])
            largest.setdefault((labels[index], most), []).append(added[most] / whole)
            rows += _stack(
                f"{index}-{fitted.end}",
                labels[index],
                fitted.end,
                {k: 100 * v / whole for k, v in added.items()},
                PARTS,
            )
            figures = (f"{notation.number(added[key])} µs ({in_percent(added[key] / whole, 0)})" for key, *_ in PARTS)
            table.append((labels[index], fitted.end, *figures))
    spoken = "; ".join(
        f"at the {fit.end} a handshake adds {figure_text.plus(fit.handshake_us, 'µs')}, a request {figure_text.plus(fit.request_us, 'µs')}, "
        f"a byte {figure_text.plus(fit.byte_ns, 'ns')}"
        for fit in pair
    )
    head = ("cell", "end", *(name for _, name, _ in PARTS))
    alike = all(share >= WHOLE for shares in largest.values() for share in shares)
    names = {key: name for key, name, _ in PARTS}
    shares_text = "; ".join(f"{label}: {names[key]} {_percent(shares)}" for (label, key), shares in largest.items())
    return Plot(
        name="where-parts" if number == 0 else f"where-parts-{number + 1}",
        title=f"CPU time that encryption adds to handshakes, requests and bytes: {pair[0].engine} {pair[0].mechanism}",
        finding=spoken,
        charts={} if alike else _charts(rows, PARTS, "% of the CPU that encryption adds"),
        table=Table(head, table),
        note=f"One part accounts for nearly all of the added CPU in each cell: {shares_text}."
        if alike
        else "As fitted to these cells. A part with a negative fit is drawn as zero.",
    )


def _percent(shares: Sequence[float]) -> str:
    """Several shares as `98 to 99 %`, rounded down so that no part appears to be everything."""
    low, high = (math.floor(100 * share) for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


# ── page, opening, value
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_unit(costs: Sequence[UnitCost]) -> Plot:
    """A table: the costs of a page and of an opening have no common axis."""
    table = [
        (
            f"{cost.engine} {cost.mechanism}",
            f"{unit_cost_text.unit(cost)} ({unit_cost_text.whose(cost)})",
            added_text.time(cost.us.value, (cost.us.high - cost.us.low) / 2),
            added_text.span(cost.us.low, cost.us.high, cost.us.value),
            "" if cost.floor_us is None else f"{notation.number(cost.floor_us)} µs",
        )
        for cost in costs
    ]
    return Plot(
        name="where-units",
        title="What encryption adds to each page, opening or value",
        finding="; ".join(f"{name} adds {us} to each {unit}" for name, unit, us, *_ in table),
        charts={},
        table=Table(("mechanism", "to each", "adds", "95 % CI", "the cipher alone"), table),
        note="From what the server counted or the workload does, and the CPU time that encryption adds to an operation.",
    )


# ── by end and by mode
# ──────────────────────────────────────────────────────────────────────────────────────────────────


def _levels(cell: Cell) -> dict[str, dict[str, float]]:
    """µs of CPU per operation, by arm and segment; empty if the cell has none."""
    by_arm: dict[str, dict[str, float]] = {}
    for arm in ARMS:
        facts = cell.arms.get(arm, {})
        if "client_user_us_per_op" not in facts:
            return {}
        arm_levels = {key: float(facts.get(f"{key}_us_per_op", 0.0)) for key, *_ in ENDS if key != "kernel"}
        # User and system time are counted in ticks and may not add up to the total, so they only divide it.
        for end in ("server", "client"):
            whole, known = (
                float(facts.get(f"{end}_cpu_us_per_op", 0.0)),
                arm_levels[f"{end}_user"] + arm_levels[f"{end}_system"],
            )
            for mode in ("user", "system"):
                arm_levels[f"{end}_{mode}"] = (
                    whole * arm_levels[f"{end}_{mode}"] / known if known else whole * (mode == "user")
                )
        served = "client" if cell.embedded else "server"
        rest = float(facts.get("machine_cpu_us_per_op", 0.0)) - float(facts.get(f"{served}_cpu_us_per_op", 0.0))
        arm_levels["kernel"] = max(0.0, rest) if cell.layer == "rest" else 0.0
        by_arm[arm] = arm_levels
    return by_arm if sum(by_arm["plain"].values()) > 0 else {}


def _by_end(known: list[tuple[Cell, str]]) -> Plot:
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    grown = []
    used = {
        key
        for cell, _ in known
        for arm_levels in _levels(cell).values()
        for key, value in arm_levels.items()
        if value > 0
    }
    embedded = all(cell.embedded for cell, _ in known)
    segments = tuple(
        (key, EMBEDDED.get(key, name) if embedded else name, colour) for key, name, colour in ENDS if key in used
    )
    for number, (cell, label) in enumerate(known):
        both = _levels(cell)
        whole = {arm: sum(both[arm].values()) for arm in ARMS}
        grown.append((whole["encrypted"] / whole["plain"], label))
        for arm in ARMS:
            side = WITHOUT_WITH[arm] if cell_text.is_control(cell) else arm
            shares = {key: 100 * value / whole["plain"] for key, value in both[arm].items()}
            if number < MOST:
                rows += _stack(f"{number}-{arm}", label, side, shares, segments)
            table.append(
                (
                    label,
                    side,
                    *(f"{notation.number(both[arm][key])} µs" for key, *_ in segments),
                    f"{notation.number(whole[arm])} µs",
                )
            )
    ratio, highest = max(grown)
    all_cpu = "the process's CPU" if embedded else "all CPU"
    finding = (
        f"{all_cpu} per operation in the encrypted arm is {100 * ratio:.0f} % of the plain arm's"
        if len(known) == 1
        else f"{all_cpu} per operation in the encrypted arm is {100 * min(grown)[0]:.0f} to {100 * ratio:.0f} % of the plain arm's; highest: {highest}"
    )
    sentences = [LAYERS[layer] for layer in dict.fromkeys(cell.layer for cell, _ in known) if layer in LAYERS]
    if len(known) > MOST:
        sentences.insert(0, f"The chart shows the first {MOST} of {len(known)} cells; the table has all.")
    if not embedded and any(cell.embedded for cell, _ in known):
        sentences.append("An embedded database runs in the client, so the client's CPU time includes the database.")
    alike = all(abs(ratio - 1) <= SAME for ratio, _ in grown)
    if alike:
        sentences = [f"No cell's CPU per operation changes by more than {100 * SAME:.0f} %."]
    note = " ".join(sentences)
    return Plot(
        name="where-cpu",
        title="CPU per operation; the plain arm is 100",
        finding=finding,
        charts={} if alike else _charts(rows, segments, "CPU per operation, % of the plain arm's"),
        table=Table(("cell", "arm", *(name for _, name, _ in segments), "total"), table),
        note=note,
    )


# ── a bar for each end or arm, a name above each pair
# ──────────────────────────────────────────────────────────────────────


def _stack(bar: str, name: str, side: str, shares: dict[str, float], segments: Segments) -> list[dict[str, Any]]:
    rows, at = [], 0.0
    for key, label, _ in segments:
        share = shares.get(key, 0.0)
        rows.append({"bar": bar, "name": name, "side": side, "part": label, "from": at, "to": at + share})
        at += share
    return rows


def _charts(rows: list[dict[str, Any]], segments: Segments, title: str) -> dict[Width, Chart]:
    """Charts in each width. The vertical positions are computed here, so that a name has room above its bars."""
    places: dict[str, float] = {}
    names: list[dict[str, Any]] = []
    top = 0.0
    for row in rows:
        if row["bar"] not in places:
            if not names or names[-1]["name"] != row["name"]:
                names.append({"name": row["name"], "y": top + 9})
                top += 20
            places[row["bar"]] = top
            top += 21
            last = [other for other in rows if other["name"] == row["name"]][-1]
            top += 12 * (last["bar"] == row["bar"])
    placed = [{**row, "y": places[row["bar"]], "y2": places[row["bar"]] + 16} for row in rows]
    ends: dict[str, dict[str, Any]] = {
        row["bar"]: {"side": row["side"], "y": row["y"] + 8.5, "to": row["to"]} for row in placed
    }
    return {
        width: Chart(_spec(size, top, segments, title), {"parts": placed, "names": names, "ends": list(ends.values())})
        for width, size in WIDTHS.items()
    }


def _spec(width: int, height: float, segments: Segments, title: str) -> dict[str, Any]:
    y = {
        "field": "y",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, height], "range": [0, height], "nice": False},
    }
    place = 76
    x = {
        "field": "from",
        "type": "quantitative",
        "axis": {"title": title, "tickCount": 5},
        "scale": {"range": [place, width - 8], "nice": False},
    }
    return {
        "width": width,
        "height": height,
        "layer": [
            {
                "data": {"name": "parts"},
                "mark": {"type": "rect", "stroke": BACKGROUND, "strokeWidth": 1},
                "encoding": {
                    "x": x,
                    "x2": {"field": "to"},
                    "y": y,
                    "y2": {"field": "y2"},
                    "fill": {
                        "field": "part",
                        "type": "nominal",
                        "scale": {
                            "domain": [name for _, name, _ in segments],
                            "range": [colour for *_, colour in segments],
                        },
                        "legend": {
                            "orient": "top",
                            "direction": "vertical" if width < 500 else "horizontal",
                            "symbolType": "square",
                            "columnPadding": 34,
                        },
                    },
                },
            },
            *(
                {
                    "data": {"name": "names"},
                    "mark": {
                        "type": "text",
                        "align": "left",
                        "baseline": "middle",
                        "fontWeight": 600,
                        "limit": 0.82 * width,
                    }
                    | ground,
                    "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name"}},
                }
                for ground in (GROUND, {"color": INK})
            ),
            {
                "data": {"name": "ends"},
                "mark": {"type": "text", "align": "left", "baseline": "middle", "color": MUTED},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "side"}},
            },
        ],
    }
