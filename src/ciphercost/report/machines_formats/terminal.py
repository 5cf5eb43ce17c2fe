"""Terminal text, 80 columns wide: the answer, then each cell with its machines, CPU models and all machines together."""

from __future__ import annotations

from ciphercost.report import machines_document
from ciphercost.report.machines_types import Concluded
from ciphercost.report.renderers import terminal


def render(of: Concluded) -> str:
    return terminal.text(machines_document.of(of))
