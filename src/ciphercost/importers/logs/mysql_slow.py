"""The slow query log of MySQL, MariaDB and Percona Server, which holds every statement with `long_query_time = 0`. Pure.

An entry is a block of lines that begin with `# `, then `use`, `SET timestamp=…;` and the statement. Values of prepared statements are
written into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs._sql import (
    BANNER,
    BEFORE,
    LONG_STATEMENT,
    LONGEST,
    OVERLONG,
    TOO_LONG,
    Event,
    Fact,
    Ignored,
    Logged,
    numbered,
    text,
)

KIND = "sql"
DIALECT = "mysql"
_HEAD = re.compile(
    r"# (?:Time: |User@Host: |User: |Client: |Thread_id: |Query_time: |administrator command: |Bytes_sent: |Schema: |Log_slow_|\s*InnoDB_|No InnoDB |QC_Hit: "
    r"|Full_scan: |Filesort: |explain: |Tmp_|Rows_affected: |Stored_routine: )"
)
_TIME = re.compile(r"# Time: (.*)")
_USER = re.compile(r"# (?:User(?:@Host)?|Client): (.*?)(?:\s+Id:\s*(\d+))?\s*$")
_THREAD = re.compile(r"# Thread_id: (\d+)")
_TOOK = re.compile(r"# Query_time: (\d+(?:\.\d+)?)")
_ADMIN = re.compile(r"# administrator command: (.*?);?\s*$")
_USE = re.compile(r"use [^;]+;\s*", re.IGNORECASE)
_STAMP = re.compile(r"SET timestamp=(\d+(?:\.\d+)?)(?:,[^;]*)?;\s*", re.IGNORECASE)
_INSERT_ID = re.compile(r"SET (?:last_insert_id|insert_id)=\d+(?:,[^;]*)?;\s*", re.IGNORECASE)
_PREAMBLE = re.compile(r"(?:use |SET (?:timestamp|last_insert_id|insert_id)=)[^;]*;\s*$|\s*$", re.IGNORECASE)
_BANNER = re.compile(
    r".*, Version: .*(?: started with:|embedded library).*|Tcp port: .*|TCP Port: .*|Time\s+Id Command\s+Argument"
)
ADMIN = "commands that are no statements (Quit, Prepare, Ping …)"
EMPTY = "entries without a statement"


def recognise(head: Sequence[bytes]) -> int:
    """How many lines belong to entries, which begin with lines that no other log has."""
    count, inside = 0, False
    for line in map(text, head):
        inside = inside or line.startswith(("# User@Host: ", "# Time: ", "# Query_time: ", "# User: ", "# Client: "))
        count += inside or _BANNER.fullmatch(line) is not None
    return count if inside else 0


class _Entry:
    """An entry as far as it was read."""

    def __init__(self, line: int, at: float) -> None:
        self.line, self.at = line, at
        self.user = self.thread = ""
        self.seconds = 0.0
        self.admin: str | None = None
        self.sql: list[str] = []
        self.length = 0
        self.lines = 0

    @property
    def in_statement(self) -> bool:
        """Whether a statement has begun: more than `use` and `SET timestamp`."""
        return any(not _PREAMBLE.match(line) for line in self.sql)

    def head(self, line: str) -> None:
        if user := _USER.match(line):
            self.user = user[1]
            self.thread = user[2] or self.thread
        elif thread := _THREAD.match(line):
            self.thread = thread[1]
        elif took := _TOOK.match(line):
            self.seconds = float(took[1])
        elif admin := _ADMIN.match(line):
            self.admin = admin[1]

    def events(self) -> Iterator[Event]:
        session = self.thread or self.user or "-"  # some tools leave both out
        sql = "\n".join(self.sql).strip()
        at = self.at
        while match := _USE.match(sql) or _STAMP.match(sql) or _INSERT_ID.match(sql):
            if match.re is _STAMP:
                # From MySQL 8.0.14 and MariaDB 10.x on the time of its start; before, often of its end.
                at = at or float(match[1])
            sql = sql[match.end() :]
        sql = sql.removesuffix(";")
        if self.length >= LONGEST:
            yield Ignored(self.line, LONG_STATEMENT, self.lines)
        elif self.admin is not None:
            if self.admin.lower() in ("quit", "connect", "change user"):
                yield Fact(session, self.line, "end" if self.admin.lower() == "quit" else "begin", at)
            yield Ignored(self.line, ADMIN, self.lines)
        elif sql:
            yield Logged(session, self.line, sql, at, "simple", (), self.seconds)
        else:
            yield Ignored(self.line, EMPTY, self.lines)


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    del head
    at = 0.0
    entry: _Entry | None = None
    for number, line in numbered(lines):
        if line.startswith("# administrator command: ") and entry is not None and not entry.in_statement:
            entry.head(line)
            entry.lines += 1
        elif line.startswith("#") and _HEAD.match(line) and (entry is None or _begins(entry, line)):
            if entry is None or entry.sql or entry.admin is not None:
                if entry is not None:
                    yield from entry.events()
                entry = _Entry(number, at)
            if time := _TIME.match(line):
                at = entry.at = _times.short(time[1].strip(), zones)
            entry.head(line)
            entry.lines += 1
        elif line.startswith(OVERLONG):
            entry = None
            yield Ignored(number, TOO_LONG)
        elif _BANNER.fullmatch(line):
            yield Ignored(number, BANNER)
        elif entry is None:
            yield Ignored(number, BEFORE)
        elif line.startswith("#") and not entry.sql:
            entry.lines += 1  # a field of another version
        else:
            entry.lines += 1
            entry.length += len(line)
            if entry.length < LONGEST and (line.strip() or entry.sql):
                entry.sql.append(line)
    if entry is not None:
        yield from entry.events()


def _begins(entry: _Entry, line: str) -> bool:
    """Whether a heading is no comment of the statement before it: an entry has a time or a user first, or follows a `;`."""
    over = bool(entry.sql) and entry.sql[-1].rstrip().endswith(";")
    return over or not entry.in_statement or line.startswith(("# Time: ", "# User@Host: "))
