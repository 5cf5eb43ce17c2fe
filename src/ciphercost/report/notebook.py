"""A result in a notebook: a few lines of text, or a small HTML table without styles or scripts. Pure."""

from __future__ import annotations

from html import escape

from ciphercost.model.result import Result
from ciphercost.report import disturbed
from ciphercost.report.words import cell_text, figure_text

HEAD = ("cell", "figure", "what encryption costs", "95 % interval", "plain → encrypted")


def line(result: Result) -> str:
    """The `repr`: the run, and a line per cell with its main figure."""
    shared = cell_text.in_common(result.cells) if len(result.cells) > 1 else ""
    cells = f"{len(result.cells)} cell{'s' * (len(result.cells) != 1)}"
    said = [f"<ciphercost.Result {result.id}: {cells}{f' of {shared}' * bool(shared)}"]
    if warning := disturbed.warning(result.cells):
        said.append(f"  ! {warning}")
    for name, cell in zip(cell_text.names(result.cells), result.cells, strict=True):
        metric = figure_text.lead_metric(cell)
        figures = [each for each in figure_text.rows(cell) if each.key == metric]
        cost = "; ".join(f"{each.label} {each.cost} ({each.interval})" for each in figures)
        said.append(f"  {name}: {', '.join(filter(None, (cell_text.standing(cell), cost or cell.reason[:200])))}")
    return figure_text.printable("\n".join(said) + ">")


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
        for number, each in enumerate(figures):
            head = f"<th scope=rowgroup rowspan={len(figures)}>{escape(named)}</th>" if not number else ""
            cells = "".join(f"<td>{escape(text)}</td>" for text in (each.label, each.cost, each.interval, each.levels))
            rows.append(f"<tr>{head}{cells}</tr>")
    columns = "".join(f"<th scope=col>{escape(text)}</th>" for text in HEAD)
    return figure_text.printable(
        f"<table><caption>{escape(disturbed.answer(result))}</caption><thead><tr>{columns}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
