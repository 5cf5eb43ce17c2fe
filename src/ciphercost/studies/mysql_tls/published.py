"""published: what the study printed -> tables to count with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from ciphercost.studies import Study

COUNTERS = ("user", "nice", "system", "iowait", "steal", "idle")
SUFFIX = {"plain": "tls_off", "encrypted": "tls_on"}
ROW_SECONDS = 5.0
ROUNDING = 0.25
"""Percentage points by which a row may differ from the mean of the rows above it and still be their average: sar weights by clock ticks."""
EDGE = 99.0
"""%idle from which a row shows a machine that does nothing: before the load began, or after it ended."""
QUERIES = 10_000
TIMES = "Table VI"
CPU = {"select": "Table II", "insert": "Table III", "update": "Table IV", "delete": "Table V"}
SOURCES = {
    **{table: f"CPU counters during {operation.upper()}, a row for each 5 s" for operation, table in CPU.items()},
    TIMES: "average response time of each operation, seconds",
}
"""What its tables hold."""


class Column(msgspec.Struct, frozen=True):
    """One arm's half of one CPU table."""

    rows: tuple[dict[str, float], ...]
    """Five seconds each; a value that was left blank is absent."""
    average: dict[str, float]
    """The last row, where it is the average of those above it and no row of its own; else empty."""

    def mean(self, counter: str) -> float:
        return fmean(row[counter] for row in self.rows if counter in row)

    def mean_as_quoted(self, counter: str) -> float:
        """With the row of averages counted as if it were one of five seconds."""
        every = (*self.rows, self.average) if self.average else self.rows
        return fmean(row[counter] for row in every if counter in row)

    def inner(self) -> Column:
        """Without the rows in which the machine does nothing."""
        return Column(tuple(row for row in self.rows if row["idle"] < EDGE), {})

    @property
    def edges(self) -> int:
        return len(self.rows) - len(self.inner().rows)

    @property
    def seconds(self) -> float:
        return len(self.rows) * ROW_SECONDS


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
    """One arm's rows; the last is taken for the average only if every counter says so. Pure."""
    read = [{name: float(row[key]) for name in COUNTERS if row[key := f"{name}_percent_{suffix}"]} for row in rows]
    body, last = Column(tuple(read[:-1]), {}), read[-1]
    if all(abs(body.mean(name) - value) <= ROUNDING for name, value in last.items() if name != "iowait"):
        return Column(body.rows, last)
    return Column(tuple(read), {})
