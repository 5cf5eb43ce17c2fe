"""A result in a notebook: a few lines of text, or a small HTML table without styles or scripts. Pure."""

from __future__ import annotations

from html import escape

from ciphercost.estimate import disturbance, failures
from ciphercost.model.result import Cell, Result
from ciphercost.report import disturbed
from ciphercost.report.words import cell_text, figure_text, pair_text

MOST = 30
"""Cells that the `repr` of a result shows at most."""
HEAD = ("cell", "figure", "what encryption costs", "95 % interval", "plain → encrypted")


def line(result: Result) -> str:
    """The `repr` of a result: the run, and a line per cell with its main figure and whether that is resolved."""
    shared = cell_text.in_common(result.cells) if len(result.cells) > 1 else ""
    cells = f"{len(result.cells)} cell{'s' * (len(result.cells) != 1)}"
    lines = [f"<ciphercost.Result {result.id}: {cells}{f' of {shared}' * bool(shared)}"]
    if warning := disturbed.warning(result.cells):
        lines.append(f"  ! {warning}")
    named = list(zip(cell_text.names(result.cells), result.cells, strict=True))
    for name, cell in named[:MOST]:
        metric = figure_text.lead_metric(cell)
        figures = [row for row in figure_text.rows(cell) if row.key == metric]
        cost = "; ".join(f"{figure.label} {figure.cost} ({figure.interval})" for figure in figures)
        lines.append(f"  {name}: {_standing(cell, cost)}")
    if len(named) > MOST:
        lines.append(f"  and {len(named) - MOST} more")
    return figure_text.printable("\n".join(lines) + ">")


def cell_line(cell: Cell) -> str:
    """The `repr` of a cell, one line: what was measured, its main cost with the interval, and whether that is resolved."""
    name = " ".join(filter(None, (f"{cell.engine}:{cell.mechanism}", cell.workload, cell.variant)))
    text = f"<ciphercost.Cell {name}: {_standing(cell, figure_text.priced(cell))}>"
    return " ".join(figure_text.printable(text).split())


def _standing(cell: Cell, cost: str) -> str:
    """`37.1 % more server CPU per operation (95 % CI 36.4–37.8 %), differs`, or the status and the reason."""
    metric = figure_text.lead_metric(cell)
    resolution = figure_text.resolution(cell, metric) if metric else ""
    noisy = "disturbed" * bool(disturbance.state(cell))
    failing = (
        f"the {pair_text.name(cell, failures.more(cell.failures))} arm fails more often"
        if cell.failures and failures.differ(cell.failures)
        else ""
    )
    return ", ".join(filter(None, (cell_text.standing(cell), cost or cell.reason[:200], resolution, noisy, failing)))


def html(result: Result) -> str:
    """The answer, and every figure of every cell. A cell without figures has its reason."""
    rows = []
    for name, cell in zip(cell_text.names(result.cells), result.cells, strict=True):
        figures = list(figure_text.rows(cell))
        if not figures:
            rows.append(
                f"<tr><th scope=row>{escape(name)}</th><td colspan=4>{escape(f'{cell_text.standing(cell)}: {cell.reason}')}</td></tr>"
            )
        named = name + (f" ({cell_text.standing(cell)})" if cell_text.standing(cell) else "")
        for number, figure in enumerate(figures):
            head = f"<th scope=rowgroup rowspan={len(figures)}>{escape(named)}</th>" if not number else ""
            cells = "".join(
                f"<td>{escape(text)}</td>" for text in (figure.label, figure.cost, figure.interval, figure.levels)
            )
            rows.append(f"<tr>{head}{cells}</tr>")
    columns = "".join(
        f"<th scope=col>{escape(text)}</th>" for text in pair_text.worded(HEAD, pair_text.of(result.cells))
    )
    return figure_text.printable(
        f"<table><caption>{escape(disturbed.answer(result))}</caption><thead><tr>{columns}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
