"""Terminal text, 80 columns wide: the answer, what encryption adds, then cell by cell."""

from __future__ import annotations

from ciphercost.report import comparison_document
from ciphercost.report.comparison_types import Comparison
from ciphercost.report.renderers import terminal


def render(of: Comparison) -> str:
    return terminal.text(comparison_document.of(of))
