"""HTML: one self-contained page with a forest plot of each cell, without scripts or network requests."""

from __future__ import annotations

from ciphercost.report import machines_document
from ciphercost.report.formats import html
from ciphercost.report.machines_types import Concluded


def render(of: Concluded) -> str:
    return html.render_document(machines_document.of(of))
