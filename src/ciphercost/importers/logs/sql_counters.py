"""Counters of statements as CSV: PostgreSQL's `pg_stat_statements`, and the digests of MySQL's and MariaDB's performance schema. Pure.

PostgreSQL's view holds no values, so of its statements those with `$1` can't be run. MySQL's table holds one statement with values for
each digest (`QUERY_SAMPLE_TEXT`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs._csv import rows
from ciphercost.importers.logs._sql import Event, Ignored, Logged, text

KIND = "sql"
REFUSED = "rows that do not fit the table's head"
NO_TEXT = "rows whose statement the server no longer knew"
CUT = "..."
"""Ends a sample that was longer than `performance_schema_max_sql_text_length`."""
_SEPARATORS = (",", ";", "\t", "|")


class _Columns(NamedTuple):
    dialect: str
    sql: int
    calls: int
    total: int | None
    """Time of all calls."""
    unit: float
    """Seconds of the time's unit."""
    sample: int | None
    last: int | None
    """When it ran last."""
    separator: str
    width: int
    """How many there are."""


def _columns(head: Sequence[bytes]) -> _Columns | None:
    """The columns that the first line names. None: it is no head of such a table."""
    line = text(head[0]).lstrip("\N{ZERO WIDTH NO-BREAK SPACE}")
    for separator in _SEPARATORS:
        names = [name.strip().strip('"').lower() for name in line.split(separator)]

        def at(*several: str, names: list[str] = names) -> int | None:
            return next((names.index(name) for name in several if name in names), None)

        query, calls = at("query"), at("calls")
        if query is not None and calls is not None:
            total = at("total_exec_time", "total_time")
            return _Columns("postgresql", query, calls, total, 1e-3, None, None, separator, len(names))
        digest, count = at("digest_text"), at("count_star")
        if digest is not None and count is not None:
            total = at("sum_timer_wait")
            last = at("last_seen")
            return _Columns("mysql", digest, count, total, 1e-12, at("query_sample_text"), last, separator, len(names))
    return None


def recognise(head: Sequence[bytes]) -> int:
    """The whole beginning if its first line names the columns of such a table."""
    return len(head) if head and _columns(head) else 0


def dialect(head: Sequence[bytes]) -> str:
    """Whose statements they are."""
    columns = _columns(head)
    return columns.dialect if columns else ""


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    columns = _columns(head)
    assert columns is not None
    for line, count, row in rows(lines, columns.separator):
        if row is None:
            yield Ignored(line, REFUSED, count)
        elif line > 1 and row:
            yield _event(row, columns, line, count, zones)


def _event(row: list[str], columns: _Columns, line: int, lines: int, zones: set[str]) -> Event:
    calls = row[columns.calls] if len(row) == columns.width else ""
    if not calls.isdecimal() or not int(calls):
        return Ignored(line, REFUSED, lines)
    sql = row[columns.sql].strip()
    if not sql or sql in ("NULL", "\\N", "<insufficient privilege>"):
        return Ignored(line, NO_TEXT, lines)
    sample = row[columns.sample].strip() if columns.sample is not None else ""
    values: tuple[str, ...] | None = ()
    if columns.dialect == "mysql":
        whole = bool(sample) and sample not in ("NULL", "\\N") and not sample.endswith(CUT)
        values = () if whole or "?" not in sql else None
        sql = sample if whole else sql
    elif "$1" in sql:
        values = None
    total = _number(row[columns.total]) * columns.unit if columns.total is not None else 0.0
    at = _times.of(row[columns.last], zones) if columns.last is not None else 0.0
    return Logged("", line, sql, at, "prepared", values, total / int(calls), int(calls))


def _number(text_: str) -> float:
    try:
        return max(0.0, float(text_))
    except ValueError:
        return 0.0
