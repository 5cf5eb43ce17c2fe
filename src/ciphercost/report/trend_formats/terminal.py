"""Terminal text, 80 columns wide: the answer, what encryption adds, then each cell with its levels, its changes, and a line for each run."""

from __future__ import annotations

from ciphercost.report import trend_document
from ciphercost.report.renderers import terminal
from ciphercost.report.trend_types import Trend


def render(of: Trend) -> str:
    return terminal.text(trend_document.of(of))
