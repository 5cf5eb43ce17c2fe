"""Turns rows of CPU shares from sar, sadf or atop into one reading, and avoids known mistakes of published studies.
Pure.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ciphercost.importers.formats import Bad
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

PARTS = ("user", "nice", "system", "iowait", "steal", "idle")
NEAR_AVERAGE, APART = 0.25, 3.0
"""Percentage points. sar weighs its average by clock ticks, so it differs a little from the mean of the printed rows. A
normal row that happens to be near the mean can be skipped without harm, because the mean stays the same."""
IDLE_EDGE = 0.5
"""As a share of the median row's busy share. Rows below it at the edges of a run lie before or after the load."""


class Row(NamedTuple):
    """One row, in percent of all CPU time. `at`: its end in seconds since 1970, by the tool's clock; nan: unknown."""

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
        """The share that is not idle, waiting for disks, or used by another virtual machine."""
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
    may_average: bool = True,
    notes: list[Warning_] | None = None,
) -> Reading:
    """Make one reading. `averages`: number of skipped rows that were labelled averages; `may_average`: the tool prints an average.

    Raises Bad if no row is left.
    """
    notes = list(notes or [])
    if averages:
        notes.append(
            Warning_("average-row", f"{averages} average rows were skipped because they repeat the rows above them")
        )
    if may_average and unlabelled_average(rows):
        rows = rows[:-1]
        text = "the last row is an unlabelled average of the rows above it; it was skipped (a published study counted it as a sample)"
        notes.append(Warning_("average-row", text))
    if not rows:
        raise Bad(line, f"no row has the CPU shares over all CPUs; run {tool} so that it prints them")
    kept = edges(rows)
    if left := len(rows) - len(kept):
        share = sum(row.busy for row in rows) / len(rows)
        text = f"{left} of {len(rows)} rows, at the edges, were idle and were skipped; with them {share:.1f} % of the CPU would be in use"
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
    """Whether the last row is the mean of the rows above it in every column."""
    if len(rows) < 4:
        return False
    table = np.array([[getattr(row, part) for part in PARTS] for row in rows])
    above = table[:-1]
    return bool((np.abs(table[-1] - above.mean(axis=0)) <= NEAR_AVERAGE).all() and np.ptp(above, axis=0).max() > APART)


def edges(rows: list[Row]) -> list[Row]:
    """Return the rows without idle ones at the beginning and the end."""
    if len(rows) < 3:
        return rows
    least = IDLE_EDGE * float(np.median([row.busy for row in rows]))
    busy = [number for number, row in enumerate(rows) if row.busy >= least]
    return rows[busy[0] : busy[-1] + 1] if busy else rows
