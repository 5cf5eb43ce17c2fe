"""Markdown: the answer, a table of each cell with its machines, and how much they differ."""

from __future__ import annotations

from ciphercost.report import machines_document
from ciphercost.report.machines_types import Concluded
from ciphercost.report.renderers import md


def render(of: Concluded) -> str:
    return md.text(machines_document.of(of))
