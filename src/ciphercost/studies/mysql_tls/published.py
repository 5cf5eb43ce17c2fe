"""The study's published tables and figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from ciphercost.studies import Study

COUNTERS = ("user", "nice", "system", "iowait", "steal", "idle")
SUFFIX = {"plain": "tls_off", "encrypted": "tls_on"}
ROUNDING = 0.25
"""Percentage points by which a row may differ from the mean of the rows above and still be their average: sar weights by clock ticks."""
QUERIES = 10_000
TIMES = "Table VI"
CPU = {"select": "Table II", "insert": "Table III", "update": "Table IV", "delete": "Table V"}
SOURCES = {
    **{table: f"CPU counters during {operation.upper()}, a row for each 5 s" for operation, table in CPU.items()},
    TIMES: "average response time of each operation, seconds",
}
"""What its tables hold."""
SOURCES[CPU["insert"]] += (
    "; its one blank %iowait cell (TLS, 5 s) is inferred from the other cells of its row, which add up to 100 %"
)


class Column(msgspec.Struct, frozen=True):
    """One arm's half of one CPU table."""

    rows: tuple[dict[str, float], ...]
    """Five seconds each; blank values are absent."""
    average: dict[str, float]
    """The last row if it is the average of those above it and not a row of its own; else empty."""

    @property
    def filled(self) -> tuple[dict[str, float], ...]:
        """The rows, with a single blank cell completed so that its row adds up to 100 %: an inference, not a published figure."""
        return tuple(filled(row) for row in self.rows)

    def mean(self, counter: str) -> float:
        return fmean(row[counter] for row in self.filled if counter in row)


def filled(row: dict[str, float]) -> dict[str, float]:
    """Complete a row of percentages with at most one blank to 100. Pure."""
    blank = [name for name in COUNTERS if name not in row]
    return row | {blank[0]: round(100 - sum(row.values()), 2)} if len(blank) == 1 else row


def times(study: Study) -> dict[str, dict[str, float]]:
    """Average response time in seconds, by operation and arm."""
    return {
        row["operation"]: {arm: float(row[f"seconds_{suffix}"]) for arm, suffix in SUFFIX.items()}
        for row in study.rows("response_time.csv")
    }


def cpu(study: Study) -> dict[str, dict[str, Column]]:
    """The CPU tables, by operation and arm."""
    tables: dict[str, list[dict[str, str]]] = {}
    for row in study.rows("cpu.csv"):
        tables.setdefault(row["operation"], []).append(row)
    return {name: {arm: column(rows, suffix) for arm, suffix in SUFFIX.items()} for name, rows in tables.items()}


def column(rows: Sequence[dict[str, str]], suffix: str) -> Column:
    """One arm's rows; the last is its average row only if every counter agrees. Pure."""
    read = [{name: float(row[key]) for name in COUNTERS if row[key := f"{name}_percent_{suffix}"]} for row in rows]
    body, last = Column(tuple(read[:-1]), {}), read[-1]
    if all(abs(body.mean(name) - value) <= ROUNDING for name, value in last.items()):
        return Column(body.rows, last)
    return Column(tuple(read), {})
