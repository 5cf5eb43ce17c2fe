"""Lines below a cell's figures that every report has, in their order: what its cost means, what made its load, which proofs failed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.estimate import limit
from ciphercost.model.result import Cell
from ciphercost.report import capacity, money
from ciphercost.report.words import cell_text


class Note(NamedTuple):
    """One line."""

    label: str
    """What a report prints before it, unless the cell's name stands there; empty: nothing."""
    text: str

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


def consequences(cell: Cell) -> Iterator[Note]:
    """What the cost means: CPU time and servers to plan for, money, and the resource that limits each arm."""
    notes = (
        Note("capacity planning", capacity.line(cell)),
        Note("", money.line(cell)),
        Note("", limit.line(cell)),
    )
    yield from (note for note in notes if note.text)


def load(cell: Cell) -> Iterator[str]:
    """What made the load, what it went through, and what the server logged of it."""
    for lines in (cell_text.fleet, cell_text.hop, cell_text.link, cell_text.logged):
        yield from lines(cell)


def failed_proofs(cell: Cell) -> Iterator[str]:
    """The proofs that failed, except those that the reason of the cell's status has."""
    for proof in cell.proofs:
        if not proof.passed and proof.detail not in cell.reason:
            yield f"FAILED {proof.witness} witness, {proof.arm} arm: {proof.detail}"
