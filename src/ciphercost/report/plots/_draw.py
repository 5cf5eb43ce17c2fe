"""Draws Vega-Lite specs as SVG (for a page or a file) and PNG. The only module that uses vl-convert.

A spec keeps its rows (`data`) separate, so charts that differ only in their rows are compiled once: a page of sixty cells has a hundred and
twenty of them. Colours are those of a light page. In a page they become CSS variables, so that dark mode and print work.
"""

from __future__ import annotations

import copy
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from ciphercost.report.words.figure_text import printable

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
INK, MUTED, GRID = "#1b1b1a", "#5c5c58", "#dededa"
PLAIN, ENCRYPTED = "#0072b2", "#d55e00"
SERVER, CLIENT = "#009e73", "#b0609a"
PUBLISHED = "#8a6d00"
STRONG, WEAK = "#3d3d3b", "#8c8c86"
"""Greys for parts of a cost, because every hue already has a meaning."""
SERVER_HATCH, CLIENT_HATCH, KERNEL_DOTS, STRONG_HATCH = "#009e74", "#b0609b", "#7a4f9a", "#3d3d3c"
"""Not colours: each is replaced by a pattern, so that no information depends on hue alone."""
PATTERNS = {
    SERVER_HATCH: "hatch-server",
    CLIENT_HATCH: "hatch-client",
    KERNEL_DOTS: "dots-kernel",
    STRONG_HATCH: "hatch-strong",
}
BACKGROUND = "#fffffe"

VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PLAIN: "var(--plain)",
    ENCRYPTED: "var(--encrypted)",
    SERVER: "var(--server)",
    CLIENT: "var(--client)",
    PUBLISHED: "var(--published)",
    STRONG: "var(--strong)",
    WEAK: "var(--weak)",
    BACKGROUND: "var(--page)",
} | {sign: f"url(#{name})" for sign, name in PATTERNS.items()}
"""By colour: its CSS variable in a page. The colours are Okabe and Ito's, with a darker CLIENT for contrast with white. Each has one
meaning: PLAIN and ENCRYPTED are the arms, SERVER and CLIENT the ends, PUBLISHED a study's figures, greys and KERNEL_DOTS anything else."""

CAP = 5
"""Half the height of the stroke at an interval's end, in pixels."""

CONFIG: dict[str, Any] = {
    "aria": False,
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelPadding": 5,
        "titlePadding": 6,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "frame": "bounds", "offset": 8},
    "legend": {"labelColor": INK, "labelFontSize": 12, "title": None, "symbolSize": 70, "labelLimit": 260},
    "text": {"fontSize": 12, "color": INK},
}

GROUND: dict[str, Any] = {"stroke": BACKGROUND, "strokeWidth": 5, "strokeJoin": "round", "color": BACKGROUND}
"""A halo: a text mark drawn below the same text, where lines run behind it."""


class Chart(NamedTuple):
    """A Vega-Lite spec without its rows, and the rows by name; `spec["data"] = {"name": …}` refers to them."""

    spec: dict[str, Any]
    data: dict[str, list[dict[str, Any]]]
    one_of_many: bool = False
    """In a page, its title and legend are left to the page, because drawing them for each chart takes long."""


_compiled: dict[str, dict[str, Any]] = {}


def svg(chart: Chart, label: str, *, page: bool, heading: Sequence[str] = ()) -> str:
    """The chart as SVG. `page`: for a page that has the variables and patterns; otherwise self-contained, on white.

    `heading`: lines above the chart in a file, the first of which is its title.
    """
    import vl_convert

    # vl-convert aborts the whole process at a letter that XML forbids.
    spec, data = _printable({"config": CONFIG, **chart.spec}), _printable(chart.data)
    if page and chart.one_of_many:
        spec = _bare(spec) | {"title": None}
    key = json.dumps(spec, sort_keys=True)
    if key not in _compiled:
        # Without rows, types can't be detected; every chart states its own.
        _compiled[key] = vl_convert.vegalite_to_vega(spec, vl_version="v5_20")
    vega = copy.deepcopy(_compiled[key])
    for dataset in vega["data"]:
        if dataset["name"] in data:
            dataset["values"] = data[dataset["name"]]
    return _finish(vl_convert.vega_to_svg(vega), printable(label), [printable(line) for line in heading], page=page)


def _printable(spec: Any) -> Any:
    """A spec, or rows, with every text printable. Field names need no change."""
    if isinstance(spec, str):
        return printable(spec)
    if isinstance(spec, dict):
        return {name: _printable(part) for name, part in spec.items()}
    return [_printable(part) for part in spec] if isinstance(spec, list | tuple) else spec


def _bare(spec: Any) -> Any:
    """A spec without its legends."""
    if isinstance(spec, dict):
        return {name: None if name == "legend" else _bare(part) for name, part in spec.items() if name != "config"} | (
            {"config": spec["config"]} if "config" in spec else {}
        )
    return [_bare(part) for part in spec] if isinstance(spec, list) else spec


def png(drawn: str) -> bytes:
    """A file's SVG as PNG, at twice the resolution of a screen."""
    import vl_convert

    image: bytes = vl_convert.svg_to_png(drawn, scale=2)
    return image


# ── cleaning up vl-convert's output
# ──────────────────────────────────────────────────────────────────────────


_NOISE = re.compile(
    r' (?:pointer-events|aria-hidden|role|aria-roledescription|class|font-family)="[^"]*"'
    r'| opacity="1"| fill-opacity="1"| stroke-miterlimit="10"| display="none"(?=/>)'
)
_NOTHING = re.compile(r'<path d=""[^>]*/>|<path d="M[-\d.]+,[-\d.]+h[-\d.]+v[-\d.]+h[-\d.]+Z"/>')
"""Elements that draw nothing: empty paths, and backgrounds without a colour."""
_EMPTY = re.compile(r'<g(?: transform="[^"]*")?></g>|<g(?: transform="[^"]*")?/>')
_TAG = re.compile(r"<[^>]*>")
_LONG = re.compile(r"(-?\d+\.\d)\d+")
_COLOUR = re.compile(r'(?<=")#[0-9a-f]{6}(?=")')


def _in_tags(change: Callable[[str], str], drawn: str) -> str:
    """Apply `change` to tags only, not to the text between them."""
    return _TAG.sub(lambda match: change(match[0]), drawn)


def _finish(drawn: str, label: str, heading: Sequence[str], *, page: bool) -> str:
    head = re.match(r"<svg [^>]*>", drawn)
    assert head is not None
    width, height = (re.search(rf'\b{name}="([\d.]+)"', head[0])[1] for name in ("width", "height"))  # type: ignore[index]
    body = _in_tags(lambda tag: _LONG.sub(r"\1", _NOISE.sub("", tag)), drawn[head.end() :])
    body = _NOTHING.sub("", body)
    while (less := _EMPTY.sub("", body)) != body:
        body = less
    if page:
        body = _in_tags(lambda tag: _COLOUR.sub(lambda match: VARIABLES.get(match[0], match[0]), tag), body)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        return f'<svg role="img" aria-label="{escape(label)}" {size}>{body}'
    replacements = {sign: f"url(#{name})" for sign, name in PATTERNS.items()} | {BACKGROUND: "#ffffff"}
    body = _in_tags(lambda tag: _COLOUR.sub(lambda match: replacements.get(match[0], match[0]), tag), body)
    margin = 12
    lines = list(_broken(heading, float(width)))
    above = LINE * len(lines) + 8 * bool(lines)
    wide, high = float(width) + 2 * margin, float(height) + 2 * margin + above
    top = -margin - above
    heading_lines = "".join(
        f'<text x="0" y="{top + margin + LINE * number + 12}" font-size="{15 if first else 13}px" '
        f'font-weight="{600 if first else 400}" fill="{INK if first else MUTED}">{escape(line)}</text>'
        for number, (line, first) in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:g}" height="{high:g}" '
        f'viewBox="{-margin} {top} {wide:g} {high:g}" role="img" font-family="{FONT}">'
        f"<title>{escape(label)}</title>{patterns(SERVER, CLIENT, INK, STRONG)}"
        f'<rect x="{-margin}" y="{top}" width="{wide:g}" height="{high:g}" fill="#ffffff"/>{heading_lines}{body}'
    )


LINE = 19
"""Line height of a file's heading, in pixels."""


def _broken(heading: Sequence[str], width: float) -> Iterator[tuple[str, bool]]:
    """(line, whether it belongs to the title) of a heading, wrapped to the chart's width in any likely font."""
    for number, line in enumerate(heading):
        room = int(width / (9.4 if number == 0 else 7.8))
        for part in textwrap.wrap(line, max(room, 12)):
            yield part, number == 0


def patterns(server: str, client: str, kernel: str, strong: str, ground: str = "#ffffff") -> str:
    """SVG definitions of the patterns that charts refer to."""
    hatches = "".join(
        f'<pattern id="hatch-{name}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate({turn})">'
        f'<rect width="5" height="5" fill="{ground}"/><rect width="2.6" height="5" fill="{colour}"/></pattern>'
        for name, colour, turn in (("server", server, 45), ("client", client, -45), ("strong", strong, 45))
    )
    dots = (
        '<pattern id="dots-kernel" width="5" height="5" patternUnits="userSpaceOnUse">'
        f'<rect width="5" height="5" fill="{ground}"/><circle cx="2.5" cy="2.5" r="1.6" fill="{kernel}"/></pattern>'
    )
    return f"<defs>{hatches}{dots}</defs>"


def by_row(rows: int) -> dict[str, Any]:
    """The vertical channel of a chart with a row per `n`, the first at the top."""
    scale = {"domain": [-0.5, rows - 0.5], "reverse": True, "nice": False, "zero": False}
    return {"field": "n", "type": "quantitative", "axis": None, "scale": scale}


def caps(x: Mapping[str, Any], y: Mapping[str, Any], down: float, shown: str) -> list[dict[str, Any]]:
    """Layers with a stroke at both ends, `low` and `high`, of each interval, except at an end that is cut off.

    `x`: the horizontal channel without its field; `down`: pixels from the row's middle to the interval; `shown`: filter of the rows.
    """
    stroke = {"type": "rule", "color": INK, "strokeWidth": 1.5, "yOffset": down - CAP, "y2Offset": down + CAP}
    return [
        {
            "transform": [{"filter": f"{shown} && !datum.{end}_cut"}],
            "mark": stroke,
            "encoding": {"x": {"field": end, **x}, "y": y, "y2": {"field": "n"}},
        }
        for end in ("low", "high")
    ]
