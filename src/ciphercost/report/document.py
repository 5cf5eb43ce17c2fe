"""What reports say about a cell, once: blocks in reading order. Terminal, Markdown and the page render them. Pure.

A format decides how a block looks and may leave one out; what a block says, and which blocks there are, is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate import bottleneck
from ciphercost.estimate.notation import interval, number, worded
from ciphercost.measure import round_trips
from ciphercost.model.result import Cell
from ciphercost.report import capacity, money, objective_text
from ciphercost.report.blocks import Block, Curve, Figures, Findings, Note, Standing, Topic, Warnings
from ciphercost.report.words import (
    added_text,
    cell_text,
    command_text,
    connection_text,
    figure_text,
    pair_text,
    rotation_text,
    verdict_text,
)

COST = ("what encryption costs", "", "", "plain → encrypted")
"""Head of a cell's figures: what they are, and the arms whose levels they have."""


def of_cell(cell: Cell, everything: Sequence[Cell] = (), *, details: bool = True) -> list[Block]:
    """What is known of a cell. `everything`: the cells of the run. `details`: figures too that say why an operation costs more."""
    return pair_text.worded(list(_blocks(cell, everything, details)), cell.pair)


def _blocks(cell: Cell, everything: Sequence[Cell], details: bool) -> Iterator[Block]:
    if cell.status != "ok":
        failed = [proof for proof in cell.proofs if not proof.passed and proof.detail not in cell.reason]
        yield Standing(cell_text.standing(cell), cell.reason, failed)
    if cell.overhead:
        rows = figure_text.rows(cell) if details else figure_text.costs(cell)
        lines = [(row.label, row.cost, row.interval, row.levels) for row in rows]
        if (added := added_text.of(cell)) is not None:
            lines.insert(0, (f"added {added.whose.partition(' with')[0]}", *added_text.figures(added), ""))
        yield Figures("cost", lines, COST)
        yield from _about_figures(cell, everything, details)
        yield Note("verdict", verdict_text.verdict(cell), "verdict")
        yield Note("proof", cell_text.proof_line(cell))
    yield from _about_connections(cell)
    yield from _about_load(cell, everything)
    if stored := list(cell_text.storage(cell)):
        yield Figures("storage", stored, COST)
    if sizes := [(f"stored bytes, {what}", growth, "", both) for what, growth, both in cell_text.stored(cell)]:
        yield Figures("stored", sizes, COST)
    if cell.key_rotation is not None:
        for text in rotation_text.lines(cell.key_rotation):
            yield Note("rotation", text, "key rotation")
    elif "rotation_s" in cell.key_life:
        yield Note("rotation", f"{number(cell.key_life['rotation_s'])} s", "key rotation")
    if cell.findings:
        yield Findings(cell_text.by_severity(cell.findings))
    if cell.warnings:
        yield Warnings([warning.text for warning in cell.warnings])


def _about_connections(cell: Cell) -> Iterator[Block]:
    """Storms, and memory per connection."""
    if cell.storm is not None:
        head = (connection_text.storm_head(cell.storm), "", "", connection_text.LEVELS)
        yield Figures("storm", list(connection_text.storm(cell)), head)
        for text in connection_text.storm_lines(cell):
            yield Note("storm", text)
    if cell.connection_memory is not None:
        head = (connection_text.memory_head(cell), "", "", connection_text.LEVELS)
        yield Figures("memory", list(connection_text.memory(cell)), head)
        for text in connection_text.memory_lines(cell):
            yield Note("memory", text)


def _about_figures(cell: Cell, everything: Sequence[Cell], details: bool) -> Iterator[Block]:
    """What a cell's figures mean, and what they do not contain."""
    for text in figure_text.without_ratio(cell, details=details):
        yield Note("no ratio", text)
    if opening := figure_text.opening(cell):
        yield Note("opening", opening)
    if cell.against_reference is not None:
        yield Note("reference", figure_text.beside(cell.against_reference), f"against {_reference(cell, everything)}")
    for text in cell_text.taken_apart(cell, everything):
        yield Note("control", text)
    if cell.predicted:
        yield Note("prediction", figure_text.prediction(cell))
    if "duration" not in cell.overhead and (planned := capacity.line(cell)):
        yield Note("capacity", planned, "capacity planning")
    if priced := money.line(cell):
        yield Note("money", priced)
    if limited := bottleneck.line(cell):
        yield Note("limit", limited)
    if cell.objective is not None:
        yield Note("objective", objective_text.line(cell))
        if cell.objective.curve:
            yield Curve(objective_text.head(cell.objective), list(objective_text.rows(cell.objective)))


def _about_load(cell: Cell, everything: Sequence[Cell]) -> Iterator[Note]:
    """What made the load and what lay between client and server."""
    topics: tuple[tuple[Topic, Iterator[str]], ...] = (
        ("agents", cell_text.fleet(cell)),
        ("agents", command_text.load(cell)),
        ("hop", cell_text.hop(cell)),
        ("link", cell_text.link(cell)),
        ("log", cell_text.logged(cell)),
        ("retries", cell_text.retried(cell)),
        ("statements", iter(round_trips.lines(cell.chatter, cell.traffic))),
    )
    for topic, texts in topics:
        for text in texts:
            yield Note(topic, text)
    for key, estimate in cell.client_against_reference.items():
        what, _, arm = key.rpartition("_")
        name = what.replace("_", " ").replace("cpu", "CPU")
        label = f"{name}, {arm} arm, against the client of {_reference(cell, everything)}"
        yield Note("client", f"{worded(estimate)} ({interval(estimate)})", label)


def _reference(cell: Cell, everything: Sequence[Cell]) -> str:
    """The cell that this one is compared with. Without the run's other cells it has no name."""
    return cell_text.against(everything, cell) if everything else "the first cell"
