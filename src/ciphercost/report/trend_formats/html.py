"""HTML: one self-contained page with a plot of each cell, without scripts or network requests."""

from __future__ import annotations

from ciphercost.report import trend_document
from ciphercost.report.formats import html
from ciphercost.report.trend_types import Trend


def render(of: Trend) -> str:
    return html.render_document(trend_document.of(of))
