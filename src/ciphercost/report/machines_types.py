"""A run over machines, as reports and comparisons take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ciphercost.estimate.machines import OnMachine
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.machines import MachinesRun
from ciphercost.model.result import Cell, Result


class Concluded(NamedTuple):
    """The result over machines, with what reports need of the machines' records."""

    place: str
    """The run's directory, as the user named it."""
    run: MachinesRun
    cells: Sequence[Cell]
    """Each cell with its costs over machines; its other facts are those of the first machine that has a number for it."""
    on_machines: Sequence[Mapping[str, Cell]]
    """By cell: the machines' own cells, by machine."""
    values: Sequence[Sequence[OnMachine]]
    """By cell: the machines with a number, with their intervals."""
    facts: Mapping[str, Mapping[str, Any]] = {}
    """By machine: what its run detected of it."""

    def result(self, cells: Sequence[Cell] | None = None) -> Result:
        """These cells, by default those over machines, as a result, for words and plots that take one."""
        run = self.run
        return Result(
            FORMAT, run.id, run.started, run.tool, {}, run.seed, list(self.cells if cells is None else cells), run.ended,
            run.command, run.spec,
        )  # fmt: skip
