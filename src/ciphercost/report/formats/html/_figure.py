"""_figure: a plot -> drawn, in the widths that it has."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from ciphercost.report.plots import Plot, Table


class Figure(NamedTuple):
    """A plot as it stands in the page."""

    title: str
    finding: str
    note: str
    wide: Markup
    """Empty where the plot has one width."""
    narrow: Markup
    """Empty where there is no chart: then the note says why."""
    table: Table
    key: str = ""
    """Which signs stand for the arms: `latency`'s or `slices`'s, where the chart does not say itself."""


def figure(plot: Plot) -> Figure:
    """Drawn, in the widths that it has."""
    own = {width: Markup(plot.drawn(width, page=True)) for width in plot.charts}  # noqa: S704 - vl-convert escapes its texts
    key = plot.name.partition("-")[0] if plot.cell is not None else ""
    return Figure(
        plot.caption or plot.title,
        plot.finding,
        plot.note,
        own.get("wide", Markup()),
        own.get("narrow", Markup()),
        plot.table,
        key,
    )
