"""PostgreSQL's csvlog. Pure.

Its columns: PostgreSQL's manual, "Using CSV-Format Log Output"; later versions add columns at the end.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs._postgresql import Message, Statements
from ciphercost.importers.logs._sql import Event, Ignored, text

KIND = "sql"
DIALECT = "postgresql"
LONGEST = 1 << 26
"""Characters of a field."""
_TIME, _PID, _SESSION, _SEVERITY, _MESSAGE, _DETAIL, _QUERY = 0, 3, 5, 11, 13, 14, 19
_LINE = re.compile(
    rb'"?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [^,"]*"?,(?:"(?:[^"]|"")*"|[^",]*),(?:"(?:[^"]|"")*"|[^",]*),\d*,(?:"[^"]*"|[^",]*),[0-9a-f]+\.[0-9a-f]+,'
)
REFUSED = "rows that are not of csvlog's columns"


def recognise(head: Sequence[bytes]) -> int:
    return sum(_LINE.match(line) is not None for line in head)


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    del head
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    # A field may hold ends of lines, which the parser needs.
    reader = csv.reader(text(line).replace("\0", "") + "\n" for line in lines)
    statements = Statements()
    begin = 1
    while True:
        begin = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error:
            yield Ignored(begin, REFUSED, max(1, reader.line_num - begin + 1))
            continue
        if len(row) <= _DETAIL or not row[_SEVERITY].isalnum():
            if row:
                yield Ignored(begin, REFUSED, max(1, reader.line_num - begin + 1))
            continue
        yield from statements.take(
            Message(
                row[_SESSION] or row[_PID],
                begin,
                _times.of(row[_TIME], zones),
                row[_SEVERITY],
                row[_MESSAGE],
                row[_DETAIL],
                row[_QUERY] if len(row) > _QUERY else "",
            )
        )
    yield from statements.finish()
