"""Reads memtier_benchmark's table `ALL STATS`, or the averages of several runs (`-x`). Pure."""

from __future__ import annotations

import re

from ciphercost.importers.formats import Bad, Lines, above_zero, digits, line_of, number
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TABLE = re.compile(r"(ALL STATS|BEST RUN RESULTS|WORST RUN RESULTS|AGGREGATED AVERAGE RESULTS \((\d+) runs\))\s*")
MARK = re.compile(
    r"^(?:ALL STATS|AGGREGATED AVERAGE RESULTS|BEST RUN RESULTS|Type +Ops/sec +Hits/sec |\[RUN #\d+ \d+%,)",
    re.MULTILINE,
)
SETTING = re.compile(r"(\d+)\s+(Threads|Connections per thread|Requests per client|Seconds)\s*")
COLUMNS = {
    "Ops/sec": "throughput",
    "Avg. Latency": "latency_mean",
    "p50 Latency": "latency_p50",
    "p99 Latency": "latency_p99",
}
OLD_LATENCY = "Latency"
"""The column of the mean up to version 1.3."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run, from its row `Totals`."""
    readings: list[Reading] = []
    told: dict[str, int] = {}
    columns: list[str] = []
    title, runs, began = "ALL STATS", 0, 0
    for line in lines:
        if match := SETTING.fullmatch(line.strip()):
            told[match[2]] = int(match[1])
            began = began or lines.number
        elif match := TABLE.fullmatch(line.strip()):
            title, runs, began = match[1], int(match[2] or 0), lines.number
        elif line.startswith("Type ") and "Ops/sec" in line:
            columns, began = (
                re.split(r"\s{2,}|\s(?=Ops/sec|Hits/sec|Misses/sec|KB/sec)", line.strip()),
                began or lines.number,
            )
        elif line.startswith("Totals ") and columns and not title.startswith(("BEST", "WORST")):
            words = line.split()
            if lines.cut or len(words) != len(columns):
                raise Bad(
                    lines.number, f"the row 'Totals' has {len(words)} of {len(columns)} values; import the whole output"
                )
            readings.append(reading(dict(zip(columns, words, strict=True)), told, runs, began))
    if not readings:
        raise Bad(
            lines.number, "the table has no row 'Totals', which has the result; import memtier_benchmark's whole output"
        )
    return readings


def reading(row: dict[str, str], told: dict[str, int], runs: int, line: int) -> Reading:
    """Return one run, or the mean of `runs`."""
    if OLD_LATENCY in row:
        row["Avg. Latency"] = row[OLD_LATENCY]
    figures = {figure: number(row[name]) for name, figure in COLUMNS.items() if row.get(name, "---") != "---"}
    if not figures.get("throughput", 0.0) > 0:
        raise Bad(line, "memtier_benchmark did no operation, so there is nothing to compare")
    notes = []
    if runs > 1:
        text = f"the mean of {runs} runs, whose spread is not printed; run them one by one, each into its own file"
        notes.append(Warning_("iterations-hidden", text))
    clients = told.get("Threads", 0) * told.get("Connections per thread", 0)
    return Reading(
        tool="memtier_benchmark",
        line=line,
        engine="redis or valkey",
        workload="sets and gets",
        clients=clients,
        operations=clients * told.get("Requests per client", 0),
        seconds=float(told.get("Seconds", 0)),
        digits=digits(row["Ops/sec"]),
        figures=above_zero(figures),
        notes=notes,
    )
