"""Plots of where the CPU time goes: what encryption adds to each part, and an icicle graph of the difference. Pure.

In the graph a frame is as wide as the CPU time that it adds with all that it calls, in µs per operation. Frames that add time and frames that save
it are two graphs with one axis, because widths can't be negative: the first graph less the second is the added CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ciphercost.estimate.profile_parts import PARTS, split
from ciphercost.model.profile import EndProfile, ProfileFrame
from ciphercost.model.result import Cell
from ciphercost.report.plots import Plot, Subject, Table, Width
from ciphercost.report.plots._draw import (
    BACKGROUND,
    CLIENT,
    ENCRYPTED,
    INK,
    MUTED,
    PLAIN,
    SERVER,
    STRONG,
    Chart,
    by_row,
    caps,
)
from ciphercost.report.words import cell_text, profile_text

WIDTHS: dict[Width, int] = {"wide": 940, "middle": 690, "narrow": 312}
NAMES: dict[Width, int] = {"wide": 190, "middle": 180, "narrow": 150}
"""Room for the names of parts, pixels."""
BAR, CUT = 24, 1.6
"""Height of a part's row, pixels; an interval is cut off if it extends this many times further than all parts."""
FRAME, LETTER = 17, 6.6
"""Height of a frame and width of a letter in it, pixels."""
THIN = 0.004
"""Frames narrower than this share of the axis are not drawn; their time stays in their caller."""
MOST_ROWS = 40
COLOURS = {"server": SERVER, "client": CLIENT, "hop": STRONG}
SAME = 0.97
"""A frame that passes on this share of its width to a single callee in the same library is not drawn: it would say nothing."""

NOTE = (
    "Callers above, what they call below. A frame is as wide as the CPU time per operation by which it, with all that it "
    "calls, differs. The first graph less the second is the added CPU time. The kernel's functions stand on their own, whoever "
    "called them. Frames below 1 % of the CPU time count to their callers, and frames that only pass on to one other of the same "
    "library are not drawn."
)


def plots(of: Subject) -> Iterator[Plot]:
    """For each end of each profiled cell: its parts, the graph, and a table by process and library."""
    labels = cell_text.names(of.result.cells)
    for number, cell in enumerate(of.result.cells):
        for end in cell.profile.ends if cell.profile else ():
            name = f"profile-cell-{number + 1}-{end.end}"
            yield _parts(number, labels[number], name, cell, end)
            yield _graph(number, labels[number], name, cell, end)


def _parts(number: int, label: str, name: str, cell: Cell, end: EndProfile) -> Plot:
    who = profile_text.end_name(cell, end)
    rows: list[dict[str, Any]] = [
        {
            "n": place,
            "name": PARTS.get(part.name, part.name),
            "added": part.added_us,
            "low": part.low_us,
            "high": part.high_us,
        }
        for place, part in enumerate(end.parts)
    ]
    most = max(abs(part.added_us) for part in end.parts) if end.parts else 1.0
    least = max(min(0.0, *(part.low_us for part in end.parts)), -CUT * most)
    highest = min(max(0.0, *(part.high_us for part in end.parts)), CUT * most)
    for row in rows:
        row |= {"low_cut": row["low"] < least, "high_cut": row["high"] > highest}
        row["low"], row["high"] = max(row["low"], least), min(row["high"], highest)
    spoken = ", ".join(
        f"{PARTS.get(part.name, part.name)} {profile_text.plus(part.added_us, end)} µs" for part in end.parts
    )
    return Plot(
        name=name,
        title=f"CPU time that encryption adds to an operation at the {who}, {label}",
        finding=f"{profile_text.added(end)}: {spoken}",
        charts={width: Chart(_bars(width, (least, highest), len(rows), end), {"parts": rows}) for width in WIDTHS},
        table=Table(profile_text.HEAD, [tuple(line) for line in profile_text.parts(end)]),
        cell=number,
        caption=f"What encryption adds to the {who}'s CPU time, µs per operation",
    )


def _bars(width: Width, domain: tuple[float, float], rows: int, end: EndProfile) -> dict[str, Any]:
    quantitative = {"type": "quantitative"}
    scale = {"domain": list(domain), "range": [NAMES[width], WIDTHS[width] - 12], "nice": False}
    x = {
        "field": "added",
        **quantitative,
        "scale": scale,
        "axis": {"title": "µs per operation, with 95 % intervals", "tickCount": 6},
    }
    y = by_row(rows)
    return {
        "width": WIDTHS[width],
        "height": BAR * rows,
        "data": {"name": "parts"},
        "layer": [
            {
                "mark": {"type": "bar", "color": COLOURS[end.end], "height": 13},
                "encoding": {"x": x, "x2": {"datum": 0}, "y": y},
            },
            {
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5},
                "encoding": {"x": {"field": "low", **quantitative}, "x2": {"field": "high"}, "y": y},
            },
            *caps(quantitative, y, 0, "true"),
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "middle",
                    "color": INK,
                    "limit": NAMES[width] - 10,
                },
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name"}},
            },
        ],
    }


# ── the graph ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Box(NamedTuple):
    """A drawn frame."""

    name: str
    at: float
    """Where it begins on the axis, µs."""
    wide: float
    row: int


def boxes(frames: Sequence[ProfileFrame], sign: int) -> list[Box]:
    """The graph of the frames that add CPU time (`sign` +1), or of those that save it (−1), outermost row first.

    A frame's own difference is that of its time without what it calls; its width is the sum of those of `sign` below it.
    """
    differences = [sign * (frame.encrypted_us - frame.plain_us) for frame in frames]
    for frame in frames:
        if frame.parent >= 0:
            differences[frame.parent] -= sign * (frame.encrypted_us - frame.plain_us)
    width = [max(0.0, value) for value in differences]
    for place in range(len(frames) - 1, -1, -1):
        if frames[place].parent >= 0:
            width[frames[place].parent] += width[place]
    below: dict[int, list[int]] = {}
    for place, frame in enumerate(frames):
        below.setdefault(frame.parent, []).append(place)
    whole = sum(width[place] for place in below.get(-1, []))
    drawn: list[Box] = []

    def draw(place: int, at: float, row: int) -> None:
        # Skip frames that only pass on to one callee of the same library.
        while True:
            inner = [callee for callee in below.get(place, []) if width[callee] >= THIN * whole]
            if (
                len(inner) != 1
                or width[inner[0]] < SAME * width[place]
                or _library(frames, inner[0]) != _library(frames, place)
            ):
                break
            place = inner[0]
        if row >= MOST_ROWS:
            return
        drawn.append(Box(frames[place].name, at, width[place], row))
        for callee in sorted(inner, key=lambda callee: -width[callee]):
            draw(callee, at, row + 1)
            at += width[callee]

    at = 0.0
    for place in sorted(below.get(-1, []), key=lambda place: -width[place]):
        if width[place] >= THIN * whole > 0:
            draw(place, at, 0)
            at += width[place]
    return drawn


def _library(frames: Sequence[ProfileFrame], place: int) -> str:
    return split(frames[place].name)[0] if frames[place].parent >= 0 else ""


def _graph(number: int, label: str, name: str, cell: Cell, end: EndProfile) -> Plot:
    who = profile_text.end_name(cell, end)
    added, saved = boxes(end.frames, 1), boxes(end.frames, -1)
    sums = [sum(box.wide for box in graph if box.row == 0) for graph in (added, saved)]
    whole = max(*sums, 1e-9)
    # A graph of what was saved that is all noise would only confuse.
    heads = [
        (f"more with encryption: {profile_text.figure(sums[0], end)} µs", added),
        (f"less with encryption: {profile_text.figure(sums[1], end)} µs", saved),
    ]
    rows: dict[Width, list[dict[str, Any]]] = {width: [] for width in WIDTHS}
    texts: list[dict[str, Any]] = []
    y = 0
    for kind, (head, graph) in zip(("more", "less"), heads, strict=True):
        if not graph:
            continue
        texts.append({"text": head, "y": y + 8})
        y += 20
        for width, pixels in WIDTHS.items():
            for box in graph:
                room = int(box.wide / whole * (pixels - 2) / LETTER - 0.7)
                text = profile_text.label(box.name)
                text = "" if room < 3 else text if len(text) <= room else f"{text[: room - 1]}…"
                rows[width].append(
                    {
                        "text": text,
                        "kind": f"{kind}{box.row % 2}",
                        "from": box.at,
                        "to": box.at + box.wide,
                        "y": y + FRAME * box.row,
                        "y2": y + FRAME * (box.row + 1),
                    }
                )
        y += FRAME * (max(box.row for box in graph) + 1) + 14
    largest = ", ".join(f"{line.name} {line.added} µs" for line in profile_text.symbols(end, 3))
    return Plot(
        name=f"{name}-graph",
        title=f"CPU time by function, encrypted less plain, at the {who}, {label}",
        finding=f"functions with the largest differences, without what they call: {largest}",
        charts={width: Chart(_icicle(width, y, whole), {"frames": rows[width], "heads": texts}) for width in WIDTHS}
        if texts
        else {},
        table=Table(
            ("function, without what it calls", *profile_text.HEAD[1:]),
            [tuple(line) for line in profile_text.symbols(end)],
        ),
        cell=number,
        caption=f"The difference by function at the {who}, µs per operation",
        note=NOTE,
    )


def _icicle(width: Width, height: int, whole: float) -> dict[str, Any]:
    pixels = WIDTHS[width]
    scale = {"domain": [0, whole], "range": [0, pixels - 2], "nice": False}
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": "µs per operation", "tickCount": 6, "grid": False},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, height], "range": [0, height], "nice": False},
    }
    kinds = ["more0", "more1", "less0", "less1"]
    return {
        "width": pixels,
        "height": height,
        "layer": [
            {
                "data": {"name": "frames"},
                "mark": {"type": "rect", "stroke": BACKGROUND, "strokeWidth": 1},
                "encoding": {
                    "x": x,
                    "x2": {"field": "to"},
                    "y": y,
                    "y2": {"field": "y2"},
                    "fill": {
                        "field": "kind",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": kinds, "range": [ENCRYPTED, ENCRYPTED, PLAIN, PLAIN]},
                    },
                    "fillOpacity": {
                        "field": "kind",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": kinds, "range": [0.34, 0.22, 0.34, 0.22]},
                    },
                },
            },
            {
                "data": {"name": "frames"},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "middle",
                    "dx": 3,
                    "dy": FRAME / 2,
                    "fontSize": 11,
                    "color": INK,
                },
                "encoding": {
                    "x": {"field": "from", "type": "quantitative"},
                    "y": y,
                    "text": {"field": "text", "type": "nominal"},
                },
            },
            {
                "data": {"name": "heads"},
                "mark": {"type": "text", "align": "left", "baseline": "middle", "color": MUTED, "fontWeight": 600},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "text", "type": "nominal"}},
            },
        ],
    }
