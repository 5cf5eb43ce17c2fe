"""Compare the study's columns of "% increases" and "% decreases" with the changes of its own means. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ciphercost.model.spec import ARMS
from ciphercost.studies import Study
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.web_tls.published import COLUMN, MEAN, bytes_in_words

SIGN = {"increases": 1.0, "decreases": -1.0}
"""Sign of a column, by its heading."""


class Change(NamedTuple):
    """One printed cell and what the means in the same row give, in per cent of HTTP; positive if HTTPS is above HTTP."""

    table: str
    counter: str
    size: int
    """Megabytes."""
    heading: str
    cell: str
    """As printed."""
    printed: float
    """The same with the sign of the column's heading."""
    given: float
    """By the means in the same row."""


def read(study: Study) -> list[Change]:
    """All 32 cells, table by table."""
    means = {
        (row["counter"], row["file_size_mb"]): tuple(row[COLUMN[arm]] for arm in ARMS)
        for row in study.rows("counters.csv")
        if row["statistic"] == MEAN
    }
    return [_change(row, *means[row["counter"], row["file_size_mb"]]) for row in study.rows("change.csv")]


def _change(row: Mapping[str, str], plain: str, encrypted: str) -> Change:
    http, https = float(plain), float(encrypted)
    cell = row["percent_as_printed"]
    return Change(
        row["table"],
        row["counter"],
        int(row["file_size_mb"]),
        row["column_heading"],
        cell,
        SIGN[row["column_heading"]] * float(cell),
        100 * (https / http - 1),
    )


def sheet(changes: Sequence[Change]) -> Sheet:
    """All cells, one row per file: printed, and computed from the means."""
    tables = list(dict.fromkeys(change.table for change in changes))
    rows = [
        (bytes_in_words(size * 10**6), *_row(changes, tables, size)) for size in dict.fromkeys(e.size for e in changes)
    ]
    return Sheet(
        "The study's own columns of change from HTTP to HTTPS, %: as printed / from its means",
        (
            "",
            *(
                f"Table {table}\n{next(NAMES[change.counter] for change in changes if change.table == table)}"
                for table in tables
            ),
        ),
        rows,
        'Signs follow the column\'s heading: "% decreases" 10.86 is -10.86.',
    )


NAMES = {
    "processor_time_percent": "processor",
    "memory_available_bytes": "memory",
    "network_bytes_per_s": "network",
    "disk_queue_length": "disk queue",
}


def _row(changes: Sequence[Change], tables: Sequence[str], size: int) -> Iterator[str]:
    for table in tables:
        change = next(candidate for candidate in changes if (candidate.table, candidate.size) == (table, size))
        digits = len(change.cell.partition(".")[2])
        yield f"{change.printed:+.{digits}f} / {change.given:+.{max(2, digits)}f}"
