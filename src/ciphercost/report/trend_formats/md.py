"""Markdown: the answer, a table of the cells, their changes, and a folded table of the runs of each."""

from __future__ import annotations

from ciphercost.report import trend_document
from ciphercost.report.renderers import md
from ciphercost.report.trend_types import Trend


def render(of: Trend) -> str:
    return md.text(trend_document.of(of))
