"""The document of a run over machines: its answer, then each cell with its machines, CPU models and all machines together. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ciphercost.model.machines import AddedOverMachines
from ciphercost.report.blocks import Block, Document, Note, Plotted, Section, Table, Text, Warnings
from ciphercost.report.machines_types import Concluded
from ciphercost.report.plots import Plot, Subject
from ciphercost.report.plots import Table as PlotTable
from ciphercost.report.words import figure_text, machines_text

HEAD = ("machine", "", "95 % interval", "CPU")
ADDED = ("machine", "adds to CPU/op", "95 % interval", "plain → encrypted", "CPU")


def of(concluded: Concluded) -> Document:
    """The document."""
    answer, *further = machines_text.sentences(concluded)
    run = concluded.run
    blocks: list[Block] = [Text(text) for text in further]
    blocks += [
        Section(cell.title, list(_cell(concluded, number)), folded=False) for number, cell in enumerate(run.cells)
    ]
    further_reports = [Text(sentence)] if (sentence := machines_text.further(concluded)) else []
    blocks.append(Section("Machines", [_machines(concluded), *further_reports], folded=False))
    ended = run.ended or "cut off before its end"
    return Document(
        "run over machines", f"ciphercost run {run.id} over machines", answer, blocks, command=run.command, ended=ended
    )


def _cell(concluded: Concluded, number: int) -> Iterator[Block]:
    cell, shown = concluded.run.cells[number], concluded.cells[number]
    if cell.added is not None:
        yield _added(cell.added)
    for metric in machines_text.metrics(cell, shown):
        lead = metric == cell.metric
        label = figure_text.label(shown, metric)
        rows: list[tuple[str, ...]] = [
            (line.name, line.cost, line.bounds, line.cpu) for line in machines_text.lines(concluded, cell, metric)
        ]
        head = (HEAD[0], label, *HEAD[2:])
        table = Table(label, head, rows, "figures", narrow=3, right=frozenset({1}), minor=not lead)
        yield Plotted(partial(_plot, concluded, number, table), table) if lead else table
        if between := cell.overhead[metric].between:
            yield Note("between", machines_text.differ(between))
    if cell.machines:
        yield Note("verdict", machines_text.verdict(cell), "verdict")
        yield Note("covers", f"covers {machines_text.covers(cell)}")
    if lost := list(machines_text.lost(cell)):
        yield Warnings(lost)


def _added(added: AddedOverMachines) -> Table:
    rows: list[tuple[str, ...]] = list(machines_text.added_rows(added))
    return Table(f"What encryption adds: {added.whose}", ADDED, rows, "figures", narrow=4, right=frozenset({1}))


def _plot(concluded: Concluded, number: int, table: Table) -> Plot:
    from ciphercost.report.plots import forest

    cell = concluded.run.cells[number]
    rows = machines_text.rows(concluded, number)
    between = cell.overhead[cell.metric].between
    plot = forest.in_order(
        Subject(concluded.result([row_cell for row_cell, _ in rows])), rows, name=f"machines-{number + 1}"
    )
    return plot._replace(
        title=cell.title,
        finding=machines_text.differ(between) if between else machines_text.ONE,
        caption=plot.title,
        table=PlotTable(table.head, table.rows),
    )


def _machines(concluded: Concluded) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            machine.name,
            machine.cpu or "CPU unknown",
            f"{len(machine.cells)} cell{'s' * (len(machine.cells) != 1)}",
            machine.reason if machine.state == "lost" else machine.state,
        )
        for machine in concluded.run.machines
    ]
    return Table("Machines of this run", ("machine", "CPU", "cells", "state"), rows)
