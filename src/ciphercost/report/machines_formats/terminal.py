"""Terminal text, 80 columns wide: the answer, then each cell with its machines, CPU models and all machines together."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report.layout import figure_rows, wrap
from ciphercost.report.machines_types import Concluded
from ciphercost.report.words import figure_text, machines_text


def render(of: Concluded) -> str:
    return figure_text.printable("\n".join(_lines(of)))


def _lines(of: Concluded) -> Iterator[str]:
    for each in machines_text.sentences(of):
        yield from wrap(each)
    for number in range(len(of.cells)):
        yield ""
        yield from _cell(of, number)
    yield ""
    for machine in of.run.machines:
        said = machine.cpu or (machine.reason if machine.state == "lost" else "not measured yet")
        yield from wrap(f"{machine.name}: {said}", "", "  ")
    if said := machines_text.further(of):
        yield from wrap(said)


def _cell(of: Concluded, number: int) -> Iterator[str]:
    cell, shown = of.run.cells[number], of.cells[number]
    yield from wrap(cell.title, "", "  ")
    for metric in machines_text.metrics(cell, shown):
        head = (f"{figure_text.label(shown, metric)}:", "", "95 % CI", "")
        rows = [(line.name, line.cost, line.bounds, "") for line in machines_text.lines(of, cell, metric)]
        yield from figure_rows([head, *rows])
        if between := cell.overhead[metric].between:
            yield from wrap(machines_text.differ(between), "    ", "      ")
    if cell.machines:
        yield from wrap(f"verdict: {machines_text.verdict(cell)}", "  ", "    ")
        yield from wrap(f"covers {machines_text.covers(cell)}", "  ", "    ")
    for said in machines_text.lost(cell):
        yield from wrap(f"! {said}", "  ", "    ")
