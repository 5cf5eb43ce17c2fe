"""Compares runs over machines by CPU model: machines of one run with machines of the same model in another. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ciphercost.estimate import machines as estimates
from ciphercost.estimate.machines import OnMachine
from ciphercost.estimate.statistics import Interval
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.report import machines_added
from ciphercost.report.comparison_types import Comparison, Run
from ciphercost.report.machines_types import Concluded


class OfModel(NamedTuple):
    """What one run measured on machines with one CPU model, as if it were a run of its own."""

    cpu: str
    run: Run


class Group(msgspec.Struct, frozen=True):
    """One CPU model in several runs, or in one run that is checked against a budget."""

    cpu: str
    comparison: Comparison


def models(name: str, of: Concluded) -> list[OfModel]:
    """The CPU models of a run over machines, the most machines first. `name`: what reports call the run."""
    machines: dict[str, list[str]] = {}
    for machine in of.run.machines:
        if machine.cpu:
            machines.setdefault(machine.cpu, []).append(machine.name)
    ordered = sorted(machines.items(), key=lambda model: (-len(model[1]), model[0]))
    return [_model(name, of, number, cpu, names) for number, (cpu, names) in enumerate(ordered)]


def _model(name: str, of: Concluded, number: int, cpu: str, machines: Sequence[str]) -> OfModel:
    cells: list[Cell] = []
    intervals: list[Mapping[str, Interval]] = []
    for place, (shown, values) in enumerate(zip(of.cells, of.values, strict=True)):
        measured = [on_machine for on_machine in values if on_machine.cpu == cpu]
        cell, log_ratios = _cell(shown, measured, of)
        cell = machines_added.shown(cell, machines_added.over(of.on_machines[place], measured) if measured else None)
        cells.append(cell)
        intervals.append(log_ratios)
    count = f"{len(machines)} machine{'s' * (len(machines) != 1)}"
    base = of.result(cells)
    facts = _common([of.facts[machine] for machine in machines if machine in of.facts])
    result = msgspec.structs.replace(base, id=f"{base.id}:{number + 1}", machine=facts | {"cpu": cpu})
    return OfModel(cpu, Run(f"{name}, {count}", result, intervals))


def _cell(shown: Cell, measured: Sequence[OnMachine], of: Concluded) -> tuple[Cell, Mapping[str, Interval]]:
    """The cell over the machines of one model, and its log ratios."""
    if not measured:
        return msgspec.structs.replace(
            shown, status="failed", reason="no machine of this model has a number", overhead={}
        ), {}
    mode = of.run.spec.mode
    names = [name for name in measured[0].overhead if all(name in on_machine.intervals for on_machine in measured)]
    keys = [key for key in measured[0].intervals if all(key in on_machine.intervals for on_machine in measured)]
    overhead = {name: estimates.estimate(name, measured, mode) for name in names}
    return msgspec.structs.replace(shown, overhead=overhead), {key: estimates.interval(key, measured) for key in keys}


def _common(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all machines of a model have in common."""
    first = facts[0] if facts else {}
    return {
        name: value for name, value in first.items() if all(machine_facts.get(name) == value for machine_facts in facts)
    }


def of_run(run: Run) -> OfModel:
    """An ordinary run, by the CPU model of its machine."""
    return OfModel(str(run.result.machine.get("cpu", "unknown CPU")), run)


def grouped(runs: Sequence[Sequence[OfModel]], *, one: bool) -> list[tuple[str, list[Run]]]:
    """The runs to compare with each other, by CPU model, the reference's models first. `one`: a model of one run is enough.

    The models of a single run over machines are compared with each other. Raises UsageError if no model is in two runs.
    """
    if len(runs) == 1 and not one:
        if len(runs[0]) < 2:
            raise UsageError(
                "all machines of this run have one CPU model; compare it with another run, or with --fail-over, e.g. --fail-over 10%"
            )
        return [("each CPU model against the first", [model.run._replace(name=model.cpu) for model in runs[0]])]
    by_cpu: dict[str, list[Run]] = {}
    for run in runs:
        for model in run:
            by_cpu.setdefault(model.cpu, []).append(model.run)
    wanted = {cpu: cpu_runs for cpu, cpu_runs in by_cpu.items() if one or len(cpu_runs) > 1}
    if not wanted:
        names = "; ".join(", ".join(model.cpu for model in run) or "no machine" for run in runs)
        raise UsageError(f"these runs have no CPU model in common ({names}); compare machines of one model")
    return list(wanted.items())
