"""The study's published tables and figures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from ciphercost.studies import Study
from ciphercost.studies.sheet import Sheet

COUNTERS = ("user", "nice", "system", "iowait", "steal", "idle")
SUFFIX = {"plain": "tls_off", "encrypted": "tls_on"}
ROUNDING = 0.25
"""Percentage points by which a row may differ from the mean of the rows above and still be their average: sar weights by clock ticks."""
QUERIES = 10_000
ORDER = ("insert", "update", "delete", "select")
"""Operations as the paper lists them."""
SHORT = {"system": "sys", "iowait": "wait"}
"""Counters whose names are too long for a column."""
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


def cpu_sheets(study: Study) -> Iterator[Sheet]:
    """Every cell of the CPU tables as printed, the last row too, folded."""
    rows = list(study.rows("cpu.csv"))
    for operation, source in sorted(CPU.items(), key=lambda item: item[1]):
        printed = [
            (
                row["time_s"],
                *(row[f"{name}_percent_{SUFFIX[arm]}"] or "blank" for name in COUNTERS for arm in SUFFIX),
            )
            for row in rows
            if row["operation"] == operation
        ]
        head = ("s", *(f"%{SHORT.get(name, name)}\n{how}" for name in COUNTERS for how in ("off", "on")))
        cells = sum(map(len, printed)) - len(printed)
        title = f"As published, {source}: all {cells} cells of {operation.upper()}, TLS off and on"
        note = "sys: %system; wait: %iowait. Where the last row is the average of the rows above it, its time is not one of five seconds."
        yield Sheet(title, head, printed, note, folded=True)
