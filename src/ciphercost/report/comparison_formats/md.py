"""Markdown for a comment on a pull request: the answer, a warning if machines differ, one table, and folded details."""

from __future__ import annotations

from ciphercost.report import comparison_document
from ciphercost.report.comparison_types import Comparison
from ciphercost.report.renderers import md


def render(of: Comparison) -> str:
    """At most MOST characters. What does not fit is left out from the end, with a note."""
    return md.text(comparison_document.of(of))
