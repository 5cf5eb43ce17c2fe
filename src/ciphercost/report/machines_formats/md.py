"""Markdown: the answer, a table of each cell with its machines, and how much they differ."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report.formats.md import MOST, SHORT, escaped, fitting, item, row
from ciphercost.report.machines_types import Concluded
from ciphercost.report.words import figure_text, machines_text


def render(of: Concluded) -> str:
    """At most MOST characters. What does not fit is left out from the end, with a note."""
    first, *further = machines_text.sentences(of)
    head = [f"### {escaped(first)}", "", *(line for each in further for line in (escaped(each), ""))]
    pieces = ["\n".join(_cell(of, number)) for number in range(len(of.cells))]
    room = MOST - sum(len(line) + 1 for line in head) - 400
    shown = list(fitting(pieces, room))
    lost = len(pieces) - len(shown)
    shown += [f"\n{lost} more cells did not fit into a comment."] * bool(lost)
    return "\n".join([*head, *shown]).rstrip("\n")


def _cell(of: Concluded, number: int) -> Iterator[str]:
    cell, shown = of.run.cells[number], of.cells[number]
    yield f"**{escaped(cell.title, SHORT)}**"
    yield ""
    for metric in machines_text.metrics(cell, shown)[:1]:
        yield row("machine", "CPU", escaped(figure_text.label(shown, metric)), "95 % interval")
        yield row("---", "---", "---:", "---")
        for line in machines_text.lines(of, cell, metric):
            yield row(escaped(line.name), escaped(line.cpu, SHORT), line.cost, line.bounds)
        yield ""
        if between := cell.overhead[metric].between:
            yield item(machines_text.differ(between))
    if cell.machines:
        yield item(f"verdict: {machines_text.verdict(cell)}; covers {machines_text.covers(cell)}")
    for said in machines_text.lost(cell):
        yield item(said)
    yield ""
