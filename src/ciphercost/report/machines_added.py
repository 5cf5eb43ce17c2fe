"""What encryption adds to an operation over several machines, from the machines' own cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.estimate.machines import OnMachine
from ciphercost.model.machines import AddedOn, AddedOverMachines
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.report.words import added_text
from ciphercost.report.words.added_text import AddedCost


def over(cells: Mapping[str, Cell], measured: Sequence[OnMachine]) -> AddedOverMachines | None:
    """`cells`: by machine; `measured`: the machines with a number. None if one of them does not tell it."""
    known = {on_machine.machine: added_text.of(cells[on_machine.machine]) for on_machine in measured}
    whole = added_text.over(list(known.values()))
    if whole is None:
        return None
    models: dict[str, list[str]] = {}
    for on_machine in measured:
        models.setdefault(on_machine.cpu, []).append(on_machine.machine)
    ordered = sorted(models.items(), key=lambda model: (-len(model[1]), model[0]))
    return AddedOverMachines(
        metric=whole.key,
        whose=whole.whose,
        overall=_on(whole, list(known)),
        machines=[
            _on(cost, [on_machine.machine], on_machine.cpu)
            for on_machine in measured
            if (cost := known[on_machine.machine]) is not None
        ],
        types=[
            _on(cost, names, cpu)
            for cpu, names in ordered
            if (cost := added_text.over([known[name] for name in names])) is not None
        ],
    )


def _on(cost: AddedCost, machines: list[str], cpu: str = "") -> AddedOn:
    return AddedOn(cost.added, cost.plain, cost.encrypted, machines, cpu)


def shown(cell: Cell, added: AddedOverMachines | None) -> Cell:
    """The cell with what it adds over machines in place of one machine's levels."""
    if added is None:
        return msgspec.structs.replace(cell, added={}, arms={})
    levels = (added.overall.plain, added.overall.encrypted)
    name = added.metric.removesuffix("_per_op")
    arms = {arm: {f"{name}_us_per_op": level} for arm, level in zip(ARMS, levels, strict=True)}
    return msgspec.structs.replace(cell, added={name: added.overall.added}, arms=arms)
