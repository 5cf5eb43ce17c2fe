"""The content of the page of a run over machines. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.report.formats.html._content import Entry
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.machines_types import Concluded
from ciphercost.report.plots import Subject, Table, forest
from ciphercost.report.words import figure_text, machines_text


class Shown(NamedTuple):
    """One cell over machines."""

    anchor: str
    title: str
    said: list[str]
    plot: Figure | None
    tables: list[tuple[str, Table]]


class Page(NamedTuple):
    """Everything that the template shows."""

    title: str
    answer: str
    further: list[str]
    cells: list[Shown]
    machines: Table
    command: str
    ended: str
    contents: Sequence[Entry]


def page(of: Concluded) -> Page:
    """The page."""
    answer, *further = machines_text.sentences(of)
    shown = [_shown(of, number) for number in range(len(of.cells))]
    contents = [Entry(each.anchor, each.title) for each in shown]
    contents += [Entry("h-machines", "Machines")] + [Entry("h-again", "How to repeat it")] * bool(of.run.command)
    rows = [
        (each.name, each.cpu or "unknown", str(len(each.cells)), each.reason if each.state == "lost" else each.state)
        for each in of.run.machines
    ]
    return Page(
        f"ciphercost run {of.run.id} over machines",
        answer,
        further,
        shown,
        Table(("machine", "CPU", "cells", "state"), rows),
        of.run.command,
        of.run.ended or "cut off before its end",
        contents,
    )


def _shown(of: Concluded, number: int) -> Shown:
    cell, shown = of.run.cells[number], of.cells[number]
    said = list(_said(of, number))
    drawn, tables = None, []
    if cell.metric in cell.overhead:
        rows = machines_text.rows(of, number)
        own = of.result([each for each, _ in rows])
        between = cell.overhead[cell.metric].between
        finding = machines_text.differ(between) if between else machines_text.ONE
        plot = forest.in_order(Subject(own), rows, name=f"machines-{number + 1}")
        head = ("machine", figure_text.label(shown, cell.metric), "95 % interval", "CPU")
        lines = [(each.name, each.cost, each.bounds, each.cpu) for each in machines_text.lines(of, cell, cell.metric)]
        drawn = figure(plot._replace(title=cell.title, finding=finding, caption=plot.title, table=Table(head, lines)))
        for metric in machines_text.metrics(cell, shown)[1:]:
            head = ("machine", figure_text.label(shown, metric), "95 % interval", "CPU")
            lines = [(each.name, each.cost, each.bounds, each.cpu) for each in machines_text.lines(of, cell, metric)]
            tables.append((figure_text.label(shown, metric), Table(head, lines)))
    return Shown(f"cell-{number + 1}", cell.title, said, drawn, tables)


def _said(of: Concluded, number: int) -> Iterator[str]:
    cell = of.run.cells[number]
    if cell.machines:
        yield f"Verdict: {machines_text.verdict(cell)}. The interval covers {machines_text.covers(cell)}."
    if cell.metric in cell.overhead and (between := cell.overhead[cell.metric].between):
        said = machines_text.differ(between)
        yield f"{said[0].upper()}{said[1:]}."
    yield from (f"{said[0].upper()}{said[1:]}." for said in machines_text.lost(cell))
