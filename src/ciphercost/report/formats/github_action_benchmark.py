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
    found = [_entry(each) for each in tracked.figures(result) if each.row.estimate.low > 0]
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def _entry(each: Tracked) -> dict[str, str | float]:
    key, estimate = each.row.key, each.row.estimate
    value, low, high = estimate.ratio, estimate.low, estimate.high
    unit = "encrypted ÷ plain"
    if key in figure_text.MORE_IS_BETTER:
        value, low, high = 1 / value, 1 / high, 1 / low
        unit = "plain ÷ encrypted"
    label = figure_text.quantity(each.cell, key)
    cost = notation.of_what(each.row.cost, label)
    verdict = f"verdict of the cell: {each.cell.verdict}" if each.cell.verdict else ""
    basis = (
        f"95 % interval from {estimate.n} {'sessions' if each.cell.mode == 'full' else 'blocks'}" if estimate.n else ""
    )
    failing = failures.what(each.cell.failures) if each.cell.failures else ""
    extra = [f"{cost} (95 % CI {each.row.interval})", failing, cell_text.heading(each.cell), verdict, basis]
    return {
        "name": f"{each.id}: {label}",
        "unit": pair_text.worded(unit, each.cell.pair),
        "value": value,
        "range": f"{low:.6g} to {high:.6g}",
        "extra": figure_text.printable("\n".join(filter(None, extra))),
    }
