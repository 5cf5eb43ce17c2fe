"""PostgreSQL's csvlog. Pure.

Its columns: PostgreSQL's manual, "Using CSV-Format Log Output"; later versions add columns at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs._csv import rows
from ciphercost.importers.logs._postgresql import Message, Statements
from ciphercost.importers.logs._sql import Event, Ignored

KIND = "sql"
DIALECT = "postgresql"
_TIME, _PID, _SESSION, _SEVERITY, _MESSAGE, _DETAIL, _QUERY = 0, 3, 5, 11, 13, 14, 19
_LINE = re.compile(
    rb'"?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [^,"]*"?,(?:"(?:[^"]|"")*"|[^",]*),(?:"(?:[^"]|"")*"|[^",]*),\d*,(?:"[^"]*"|[^",]*),[0-9a-f]+\.[0-9a-f]+,'
)
REFUSED = "rows that are not of csvlog's columns"


def recognise(head: Sequence[bytes]) -> int:
    return sum(_LINE.match(line) is not None for line in head)


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    del head
    statements = Statements()
    for line, count, row in rows(lines):
        if row is None or len(row) <= _DETAIL or not row[_SEVERITY].isalnum():
            if row != []:  # an empty line is no row
                yield Ignored(line, REFUSED, count)
            continue
        yield from statements.take(
            Message(
                row[_SESSION] or row[_PID],
                line,
                _times.of(row[_TIME], zones),
                row[_SEVERITY],
                row[_MESSAGE],
                row[_DETAIL],
                row[_QUERY] if len(row) > _QUERY else "",
            )
        )
    yield from statements.finish()
