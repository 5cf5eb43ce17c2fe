"""A plot, drawn in each of its widths."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from ciphercost.report.plots import Plot, Table


class Figure(NamedTuple):
    """A plot as the page shows it."""

    title: str
    finding: str
    note: str
    wide: Markup
    """Empty if the plot has only one width."""
    middle: Markup
    """For a tablet; empty if the plot has no such width."""
    narrow: Markup
    """Empty if there is no chart; the note then has the reason."""
    table: Table
    key: str = ""
    """Which legend of the arms the page adds: that of `latency` or `slices`; empty if the chart has its own."""
    slim: bool = False
    """Whether the wide drawing fits a tablet."""
    arms: tuple[str, str] = ("plain", "encrypted")
    """What the legend calls them."""


def figure(plot: Plot) -> Figure:
    """Draw a plot in each of its widths."""
    drawn = {width: Markup(plot.drawn(width, page=True)) for width in plot.charts}  # noqa: S704 - vl-convert escapes its texts
    kind = plot.name.partition("-")[0].replace("objective", "latency")
    key = kind if plot.cell is not None and kind in ("latency", "slices") else ""
    return Figure(
        plot.caption or plot.title,
        plot.finding,
        plot.note,
        drawn.get("wide", Markup()),
        drawn.get("middle", Markup()),
        drawn.get("narrow", Markup()),
        plot.table,
        key,
        plot.slim,
        plot.arms,
    )
