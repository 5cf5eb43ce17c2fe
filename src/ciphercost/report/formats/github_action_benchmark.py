"""JSON for github-action-benchmark with `tool: customSmallerIsBetter`: a list of name, unit, value, range and extra.

The action compares a value with that of the last commit as a quotient, so a value is a ratio that grows with the cost, and never
near 0: encrypted ÷ plain, but plain ÷ encrypted for operations per second.
"""

from __future__ import annotations

import msgspec

from ciphercost.estimate import failures, notation
from ciphercost.model.result import Result
from ciphercost.report import tracked
from ciphercost.report.tracked import Tracked
from ciphercost.report.words import cell_text, figure_text, pair_text


def render(result: Result) -> str:
    """Indented JSON. A cell that was not proven, or has no number, is left out."""
    entries = [_entry(figure) for figure in tracked.figures(result) if figure.row.estimate.low > 0]
    return msgspec.json.format(msgspec.json.encode(entries), indent=2).decode()


def _entry(figure: Tracked) -> dict[str, str | float]:
    key, estimate = figure.row.key, figure.row.estimate
    value, low, high = estimate.ratio, estimate.low, estimate.high
    unit = "encrypted ÷ plain"
    if key in figure_text.MORE_IS_BETTER:
        value, low, high = 1 / value, 1 / high, 1 / low
        unit = "plain ÷ encrypted"
    label = figure_text.quantity(figure.cell, key)
    cost = notation.of_what(figure.row.cost, label)
    verdict = f"verdict of the cell: {figure.cell.verdict}" if figure.cell.verdict else ""
    basis = (
        f"95 % interval from {estimate.n} {'sessions' if figure.cell.mode == 'full' else 'blocks'}"
        if estimate.n
        else ""
    )
    failing = failures.what(figure.cell.failures) if figure.cell.failures else ""
    extra = [f"{cost} (95 % CI {figure.row.interval})", failing, cell_text.heading(figure.cell), verdict, basis]
    return {
        "name": f"{figure.id}: {label}",
        "unit": pair_text.worded(unit, figure.cell.pair),
        "value": value,
        "range": f"{low:.6g} to {high:.6g}",
        "extra": figure_text.printable("\n".join(filter(None, extra))),
    }
