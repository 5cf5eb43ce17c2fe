"""The average cost of a server over its workloads, as publications state it: `4.67 ± 4.45 %`. It has no interval. Pure.

Cost of a cell: ratio of the arms' arithmetic means of time per operation, − 1. A workload's is the mean over its cells, a server's the
mean over its workloads; the ± is the standard deviation of the workloads' costs, which do different things, so it is no error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.estimate.imported_copies import once
from ciphercost.model.facts import RunFacts
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.spec import ARMS


class Average(NamedTuple):
    """One server's average cost over its workloads."""

    server: str
    workloads: int
    cells: int
    cost: float
    """Relative difference in time per operation; 0.1: 10 % more."""
    sd: float
    """Standard deviation over the workloads' costs."""
    once: float | None
    """The cost with each copied run counted once; None: no run is a copy."""

    def text(self) -> str:
        less = "less" if self.cost < 0 else "more"
        counted = "" if self.once is None else f"; {100 * self.once:+.2f} % with copied runs counted once"
        return (
            f"{self.server}: {abs(100 * self.cost):.2f} % {less} time per operation on average over {self.workloads} workloads in {self.cells} "
            f"cells{counted}; the workloads' costs have a standard deviation of {100 * self.sd:.2f} %, which is no interval"
        )


def averages(facts: RunFacts, record: ImportedRecord) -> list[Average]:
    """The average of each server that has costs of two workloads or more."""
    by_server: dict[str, dict[str, list[list[Reading]]]] = {}
    for number, known in enumerate(facts.cells):
        runs = [reading for reading in record.readings if reading.cell == number]
        if all(any(_time(run) for run in runs if run.arm == arm) for arm in ARMS):
            named = {run.server for run in runs}
            server = named.pop() if len(named) == 1 else ""
            by_server.setdefault(server or known.spec.engine, {}).setdefault(known.spec.workload, []).append(runs)
    return [
        Average(server, len(cells), sum(map(len, cells.values())), *_cost(cells), _once(cells))
        for server, cells in by_server.items()
        if len(cells) >= 2
    ]


def _cost(cells: dict[str, list[list[Reading]]]) -> tuple[float, float]:
    """(mean, standard deviation) of the workloads' costs."""
    costs = [statistics.fmean(_ratio(runs) - 1 for runs in workload) for workload in cells.values()]
    return statistics.fmean(costs), statistics.stdev(costs)


def _once(cells: dict[str, list[list[Reading]]]) -> float | None:
    counted = {name: [list(_kept(runs)) for runs in workload] for name, workload in cells.items()}
    if all(len(a) == len(b) for name in cells for a, b in zip(cells[name], counted[name], strict=True)):
        return None
    return _cost(counted)[0]


def _kept(runs: Sequence[Reading]) -> Iterator[Reading]:
    by_arm, _ = once({arm: [run for run in runs if run.arm == arm] for arm in ARMS})
    for arm in ARMS:
        yield from by_arm[arm]


def _ratio(runs: Sequence[Reading]) -> float:
    """Encrypted ÷ plain, of the arithmetic means of the time per operation."""
    plain, encrypted = (
        statistics.fmean(time for run in runs if run.arm == arm and (time := _time(run))) for arm in ARMS
    )
    return encrypted / plain


def _time(run: Reading) -> float:
    """Seconds for each operation; 0: unknown."""
    if rate := run.figures.get("throughput", 0.0):
        return 1 / rate if math.isfinite(1 / rate) else 0.0
    return run.figures.get("latency_mean", 0.0) / 1e3
