"""Plots of a result: one file per kind, each with `plots(of)`. Pure except for the drawing itself.

published a study's published costs beside our intervals
forest    every cell's cost with its interval, and the budget's line
elsewhere what the added CPU time means for operations of any length
where     where the cost comes from: handshake, request and byte, or CPU by end and mode
curve     cost against size or clients
objective both arms' load–latency curves, for cells with an objective
latency   both arms' latencies, on an axis of nines
slices    every slice over the run's time
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ciphercost.estimate.trace import Trace
from ciphercost.model.errors import UsageError
from ciphercost.model.pair import Pair
from ciphercost.model.registry import Registry
from ciphercost.model.result import Result
from ciphercost.model.spec import ARMS
from ciphercost.report.plots._draw import Chart, png, svg
from ciphercost.report.words import cell_text, pair_text

KINDS = ("published", "forest", "elsewhere", "where", "curve", "objective", "profile", "latency", "slices")
FORMATS = ("svg", "png")
REGISTRY = Registry(__name__)
Width = Literal["wide", "middle", "narrow"]
"""Of a desk, a tablet (only where the drawing for a desk is too wide for it) and a phone."""


class Table(NamedTuple):
    """A plot's figures as a table."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Subject(NamedTuple):
    """The data of the plots."""

    result: Result
    traces: Sequence[Trace] = ()
    """One per cell; empty if only the result is available. Plots that need slices are then left out."""
    budget: float | None = None
    """The highest acceptable cost, as a share: 0.05."""


class Plot(NamedTuple):
    """One plot in one or more widths; in none if a chart would show no more than its note."""

    name: str
    """`forest`, `latency-cell-3`, …: unique in a run, and used as file name."""
    title: str
    finding: str
    """What it shows, in a sentence, for screen readers."""
    charts: dict[Width, Chart]
    table: Table
    cell: int | None = None
    note: str = ""
    """How to read it."""
    caption: str = ""
    """A shorter title for a page that already names the cell."""
    slim: bool = False
    """Whether the wide drawing fits a tablet."""
    arms: tuple[str, str] = ("plain", "encrypted")
    """What it calls them."""

    def drawn(self, width: Width = "wide", *, page: bool = False, heading: Sequence[str] = ()) -> str:
        """The SVG. A plot with only one width ignores `width`. `heading`: lines above the chart in a file."""
        chart = self.charts.get(width) or next(iter(self.charts.values()))
        return svg(chart, f"{self.title}: {self.finding}", page=page, heading=heading)


def every(of: Subject) -> Iterator[Plot]:
    """All plots of a run, kind by kind."""
    for kind in KINDS:
        for plot in REGISTRY.load(kind).plots(of):
            cells = of.result.cells if plot.cell is None else [of.result.cells[plot.cell]]
            yield _with_names(plot, pair_text.of(cells))


def _with_names(plot: Plot, pair: Pair) -> Plot:
    """The plot, whose texts, legend and rows call the arms by their own names."""
    if pair.kind == "off-on":
        return plot
    texts = pair_text.worded((plot.title, plot.finding, plot.table, plot.note, plot.caption), pair)
    title, finding, table, note, caption = texts
    charts = {
        width: Chart(_named(chart.spec, pair), _named(chart.data, pair), chart.one_of_many)
        for width, chart in plot.charts.items()
    }
    return plot._replace(
        title=title,
        finding=finding,
        table=table,
        note=note,
        caption=caption,
        charts=charts,
        arms=(pair.reference.name, pair.compared.name),
    )


def _named(value: Any, pair: Pair) -> Any:
    """A part of a chart: sentences and arms by name; names of fields and expressions stay as they are."""
    if isinstance(value, dict):
        return {key: pair.worded(part) if _is_text(key, part) else _named(part, pair) for key, part in value.items()}
    if value == list(ARMS):
        return [pair.reference.name, pair.compared.name]
    return [_named(part, pair) for part in value] if isinstance(value, list) else value


def _is_text(key: str, value: Any) -> bool:
    return isinstance(value, str) and (key in ("arm", "title", "text", "label"))


def write(of: Subject, output: Path, form: str) -> list[Path]:
    """Write every plot as a file of its own, SVG or PNG. Raises UsageError if it can't be written.

    `output` is a directory, or a file with the form's suffix; into a file, a run of one cell writes its first plot.
    """
    other = output.suffix.lower().lstrip(".")
    if other in FORMATS and other != form and not output.is_dir():
        raise UsageError(
            f"-o {output}: --format {form} doesn't write .{other}; use --format {other} or -o {output.with_suffix(f'.{form}')}"
        )
    charted = [plot for plot in every(of) if plot.charts]
    if not charted:
        raise UsageError(f"no plot for {output}: no cell of this run has a number")
    single = output.suffix.lower() == f".{form}" and not output.is_dir()
    if single and len(of.result.cells) > 1 and len(charted) > 1:
        raise UsageError(
            f"-o {output}: this run has {len(of.result.cells)} cells and {len(charted)} plots, but a file holds one; "
            f"name a directory with -o, e.g. -o {output.with_suffix('')}"
        )
    charted = charted[:1] if single else charted
    written = []
    try:
        (output.parent if single else output).mkdir(parents=True, exist_ok=True)
        for plot in charted:
            # A file needs the note, because no page around it explains the marks.
            drawn = plot.drawn(heading=[*heading(of.result, plot), *filter(None, [plot.note])])
            path = output if single else output / f"{re.sub(r'[^a-z0-9-]+', '-', plot.name.lower())}.{form}"
            path.write_bytes(png(drawn) if form == "png" else drawn.encode())
            written.append(path)
    except OSError as error:
        raise UsageError(f"can't write plots to {output}: {error.strerror}") from None
    return written


def report(of: Subject, output: Path, form: str) -> None:
    """Like `write`, but prints to standard error how many plots a single file leaves out."""
    written = write(of, output, form)
    left = sum(bool(plot.charts) for plot in every(of)) - len(written)
    if left:
        print(
            f"{output} holds the first plot; {left} more {'was' if left == 1 else 'were'} left out: "
            f"-o {output.with_suffix('')} writes every plot into a directory",
            file=sys.stderr,
        )


def heading(result: Result, plot: Plot) -> tuple[str, ...]:
    """Lines above a plot in a file of its own: its title, the cell or what all cells share, and the run."""
    if plot.cell is None:
        shown = cell_text.in_common(result.cells)
    else:
        cell = result.cells[plot.cell]
        shown = " · ".join(filter(None, (cell_text.heading(cell), cell.variant)))
    return tuple(filter(None, (plot.caption or plot.title, shown, f"ciphercost run {result.id}")))
