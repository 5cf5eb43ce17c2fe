"""Text on a run over machines: its answer, what an interval covers, and how much machines differ. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ciphercost.estimate import notation
from ciphercost.estimate.statistics import ALPHA
from ciphercost.model.machines import AddedOn, AddedOverMachines, Between, CellOverMachines
from ciphercost.model.result import Cell, Estimate
from ciphercost.report.machines_types import Concluded
from ciphercost.report.words import added_text, figure_text, verdict_text

ONE = "It covers one machine only; measure on two or more for an interval that covers others."
QUICK = "Each machine ran one session (quick), so differences between machines include what a restart changes."
TWO_KINDS = {2: "53 to 55 %", 3: "63 to 75 %", 4: "75 to 87 %"}
"""By number of machines: how often the 95 % interval holds the mean cost if 30 to 50 % of machines are of another kind, far from the rest
(`two_valued` in tests/simulations/simulate_machines.py; METHODOLOGY.md)."""
LARGEST = 20.0
"""Largest standard deviation of log ratios that is printed; more is no figure."""


class Line(NamedTuple):
    """One row of a cell's table."""

    name: str
    cost: str
    bounds: str
    cpu: str
    estimate: Estimate


def sentences(of: Concluded) -> list[str]:
    """The answer: the cost over machines, and how many machines it covers."""
    return [*verdict_text.sentences(of.result()), *coverage(of)]


def coverage(of: Concluded) -> Iterator[str]:
    """How many machines the intervals cover."""
    known = [cell for cell in of.run.cells if cell.machines]
    covered = {(cell.machines, cell.hosts) for cell in known}
    if covered == {(1, 1)}:
        yield ONE
    elif len(covered) == 1:
        yield f"The interval covers {covers(known[0])}."
    elif known:
        counts = [cell.machines for cell in known]
        yield f"The intervals cover {min(counts)} to {max(counts)} machines; each cell says how many."
    if few := next((count for count in sorted(TWO_KINDS) if count in {of_cell.machines for of_cell in known}), 0):
        yield (
            f"{few} machines are few: if there are two kinds of machine, far apart, all {few} are often of one kind, and the 95 % interval holds "
            f"the mean cost in only {TWO_KINDS[few]} of simulated runs; measure on 8 or more, or read the cost on each CPU model."
        )
    if known and of.run.spec.mode == "quick":
        yield QUICK
    lost = [machine for machine in of.run.machines if machine.state != "measured"]
    if lost:
        yield f"{len(lost)} of {len(of.run.machines)} machines {'is' if len(lost) == 1 else 'are'} missing: {', '.join(machine.name for machine in lost)}."


def covers(cell: CellOverMachines) -> str:
    """What the interval of the headline covers."""
    return cell.overhead[cell.metric].covers if cell.metric in cell.overhead else f"{cell.machines} machines"


def lines(of: Concluded, cell: CellOverMachines, metric: str) -> Iterator[Line]:
    """One metric: each machine, each CPU model with several machines or beside others, and all machines together."""
    over = cell.overhead[metric]
    models = {machine.name: machine.cpu for machine in of.run.machines}
    for cost in over.machines:
        yield _line(metric, cost.machine, models[cost.machine], cost.estimate)
    if len(over.types) > 1:
        for one in over.types:
            yield _line(metric, _of_model(one.machines), one.cpu, one.estimate)
    if len(over.machines) > 1:
        yield _line(metric, notation.every(len(over.machines), "machines"), "", over.overall)


def added_rows(added: AddedOverMachines) -> Iterator[tuple[str, str, str, str, str]]:
    """(name, `+6.02 µs`, its interval, `13 → 19 µs`, CPU): each machine, each CPU model beside others, and all machines together."""
    for on_machine in added.machines:
        yield _added(on_machine.machines[0], on_machine)
    for on_model in added.types if len(added.types) > 1 else []:
        yield _added(_of_model(on_model.machines), on_model)
    if len(added.machines) > 1:
        yield _added(notation.every(len(added.machines), "machines"), added.overall)


def _added(name: str, on: AddedOn) -> tuple[str, str, str, str, str]:
    added = on.added
    figure, interval = added_text.figure(added_text.part(added)), added_text.span(added.low, added.high, added.mean)
    return name, figure, interval, added_text.from_level(on.plain, on.encrypted), on.cpu


def _of_model(machines: Sequence[str]) -> str:
    return (
        f"{len(machines)} machines of this model" if len(machines) > 1 else f"one machine of this model: {machines[0]}"
    )


def _line(metric: str, name: str, cpu: str, estimate: Estimate) -> Line:
    return Line(name, figure_text.cost(metric, estimate), figure_text.bounds(metric, estimate), cpu, estimate)


def metrics(cell: CellOverMachines, shown: Cell) -> list[str]:
    """The metrics that reports print for a cell, its lead metric first."""
    return [key for key in figure_text.cost_metrics(shown) if key in cell.overhead]


def differ(between: Between) -> str:
    """Whether the machines differ, and how much."""
    sure = "p < 0.001" if between.p_value < 0.001 else f"p = {between.p_value:.2g}"
    first = "the machines differ" if between.p_value < ALPHA else "no difference between machines shows"
    sd, low, high = (math.exp(min(value, LARGEST)) for value in (between.sd, between.low, between.high))
    if max(sd, high) >= notation.DOUBLING:
        deviation, bounds = notation.factor(sd), notation.factors(low, high)
    else:
        digits = notation.decimals_of_width(100 * (high - low))
        deviation, first_bound, last = (f"{100 * (factor - 1):.{digits}f}" for factor in (sd, low, high))
        deviation, bounds = f"{deviation} %", f"{first_bound}–{last} %"
    return f"{first} ({sure}); standard deviation between machines {deviation} (95 % CI {bounds})"


def verdict(cell: CellOverMachines) -> str:
    """The verdict with the number of machines behind it."""
    return f"{cell.verdict or 'no number'} ({cell.machines} machine{'s' * (cell.machines != 1)})"


def lost(cell: CellOverMachines) -> Iterator[str]:
    """Machines without a number for this cell, with the reason."""
    for loss in cell.lost:
        yield f"no number from {loss.machine}: {loss.reason}"


def further(of: Concluded) -> str:
    """Where each machine's own report is."""
    measured = next((machine.name for machine in of.run.machines if machine.state == "measured"), "")
    return (
        f"each machine's own report: ciphercost report {shlex.quote(f'{of.place}/machines/{measured}')}"
        if measured
        else ""
    )


def rows(of: Concluded, number: int) -> list[tuple[Cell, str]]:
    """The rows of a cell's plot: each machine, then all together, as cells that have the headline's metric alone."""
    cell, shown = of.run.cells[number], of.cells[number]
    on_machines = of.on_machines[number]
    plot_rows = []
    for line in lines(of, cell, cell.metric):
        verdict_ = on_machines[line.name].verdict if line.name in on_machines else cell.verdict
        row_cell = msgspec.structs.replace(shown, overhead={cell.metric: line.estimate}, arms={}, verdict=verdict_)
        plot_rows.append((row_cell, " · ".join(filter(None, (line.name, line.cpu)))))
    return plot_rows
