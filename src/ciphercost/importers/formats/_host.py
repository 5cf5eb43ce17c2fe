"""_host: rows of a CPU's shares -> one reading. Pure. What sar, sadf and atop have in common, and what studies got wrong with them."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ciphercost.importers.formats import Bad
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

PARTS = ("user", "nice", "system", "iowait", "steal", "idle")
NEAR_AVERAGE, APART = 0.25, 3.0
"""Percentage points. sar weighs its average by clock ticks, so that it isn't the mean of the printed rows to the last digit. A row
that is near the mean by chance is left out without harm: the mean stays what it was."""
IDLE_EDGE = 0.5
"""Of the middle row's busy share: rows at a run's edges below it are of before or after the load."""


class Row(NamedTuple):
    """One row, in per cent of all CPU time; `at`: its end, seconds since 1970 by whatever clock; nan: not known."""

    at: float
    seconds: float
    user: float
    nice: float
    system: float
    iowait: float
    steal: float
    idle: float

    @property
    def busy(self) -> float:
        """What is not idle, waiting for disks, or another machine's."""
        return max(0.0, 100 - self.idle - self.iowait - self.steal)


def reading(
    tool: str,
    rows: list[Row],
    memory: list[float],
    *,
    line: int,
    version: str = "",
    cpus: int = 0,
    clock: Literal["", "utc", "local"] = "",
    averages: int = 0,
    notes: list[Warning_] | None = None,
) -> Reading:
    """`averages`: rows that named themselves averages, and were left out. Raises Bad where no row is left."""
    notes = list(notes or [])
    if averages:
        notes.append(Warning_("average-row", f"{averages} average rows were left out: they repeat the rows above them"))
    if unlabelled_average(rows):
        rows = rows[:-1]
        text = "the last row is the average of the rows above it, without saying so: it was left out (a published study counted it again)"
        notes.append(Warning_("average-row", text))
    if not rows:
        raise Bad(line, f"there is no row of CPU shares of all CPUs in it: run {tool} so that it prints them")
    kept = edges(rows)
    if left := len(rows) - len(kept):
        share = sum(row.busy for row in rows) / len(rows)
        text = f"{left} of {len(rows)} rows at the edges were idle and are left out; with them the CPU's share in use would be {share:.1f} %"
        notes.append(Warning_("idle-edges", text))
    figures = {f"host_{part}": mean([getattr(row, part) for row in kept]) for part in PARTS} | {
        "host_busy": mean([row.busy for row in kept])
    }
    known = [row for row in rows if math.isfinite(row.at)]
    return Reading(
        tool=tool,
        version=version,
        line=line,
        kind="cpu",
        engine="machine",
        workload="CPU in use",
        clock=clock,
        cpus=cpus,
        seconds=math.fsum(row.seconds for row in kept),
        started=known[0].at - known[0].seconds if known else None,
        ended=known[-1].at if known else None,
        figures=figures | ({"memory_free_bytes": mean(memory)} if memory else {}),
        series={"host_busy": [row.busy for row in kept]},
        rows=[[row.at, row.seconds, row.busy] for row in known] if len(known) == len(rows) else [],
        notes=notes,
    )


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def unlabelled_average(rows: list[Row]) -> bool:
    """Whether the last row is the mean of those above it in every column."""
    if len(rows) < 4:
        return False
    table = np.array([[getattr(row, part) for part in PARTS] for row in rows])
    above = table[:-1]
    return bool((np.abs(table[-1] - above.mean(axis=0)) <= NEAR_AVERAGE).all() and np.ptp(above, axis=0).max() > APART)


def edges(rows: list[Row]) -> list[Row]:
    """The rows without idle ones at the beginning and the end."""
    if len(rows) < 3:
        return rows
    least = IDLE_EDGE * float(np.median([row.busy for row in rows]))
    busy = [number for number, row in enumerate(rows) if row.busy >= least]
    return rows[busy[0] : busy[-1] + 1] if busy else rows
