"""The general log of MySQL and MariaDB. Pure.

It holds every statement as it arrived, whether it succeeded or not; those of prepared statements (`Execute`) with their values. MySQL from
5.7 on writes a time before each entry, MariaDB only where the second changes.
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
_ENTRY = re.compile(
    r"(?:(?P<iso>\d{4}-\d\d-\d\dT\S+)|(?P<short>\d{6} +\d{1,2}:\d\d:\d\d)|(?=\s))\s+(?P<id>\d+) "
    r"(?P<command>[A-Z][A-Za-z_]*(?: [A-Za-z]+)*)(?:(?:\t| {2,})(?P<text>.*)|\s*)",
    re.DOTALL,
)
"""The server writes tabs, which some tools turn into blanks."""
_COMMANDS = (
    *("Connect", "Query", "Quit", "Prepare", "Execute", "Close stmt", "Init DB", "Field List", "Ping", "Statistics", "Reset stmt"),
    *("Fetch", "Change user", "Processlist", "Sleep", "Set option", "Long Data", "Reset Connection", "Create DB", "Drop DB", "Refresh"),
    *("Shutdown", "Debug", "Time", "Delayed insert", "Daemon", "Binlog Dump", "Binlog Dump GTID", "Table Dump", "Connect Out", "Register Slave"),
    *("Register Replica", "Kill", "Error", "Bulk_execute", "Set Option", "Process Info", "Reset connection", "Clone", "Subscribe Group Replication Stream"),
)  # fmt: skip
"""All names that the server writes, so that no line of a statement is taken for an entry."""
COMMANDS = frozenset(command.lower() for command in _COMMANDS)
_BANNER = re.compile(
    r".*, Version: .*(?: started with:|embedded library)|Tcp port: .*|TCP Port: .*|Time\s+Id Command\s+Argument"
)
OTHER = "commands that are no statements (Prepare, Ping, Init DB …)"
REFUSED = "refused logins"


def _entry(line: str) -> re.Match[str] | None:
    match = _ENTRY.fullmatch(line)
    return match if match and match["command"].lower() in COMMANDS else None


def recognise(head: Sequence[bytes]) -> int:
    count, inside = 0, False
    for line in map(text, head):
        inside = inside or _entry(line) is not None
        count += inside or _BANNER.fullmatch(line) is not None
    return count if inside else 0


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    del head
    at = 0.0
    open_: re.Match[str] | None = None
    begin, more, length = 0, list[str](), 0
    for number, line in numbered(lines):
        match = _entry(line)
        if match is None:
            if line.startswith(OVERLONG):
                open_ = None
                yield Ignored(number, TOO_LONG)
            elif _BANNER.fullmatch(line):
                yield Ignored(number, BANNER)
            elif open_ is None:
                yield Ignored(number, BEFORE)
            elif length < LONGEST:
                more.append(line)
                length += len(line)
            continue
        if open_ is not None:
            yield _event(open_, begin, more, at, length)
        written = match["iso"] or match["short"]
        if written:
            at = _times.of(written, zones) if match["iso"] else _times.short(written, zones)
        open_, begin, more, length = match, number, [], 0
    if open_ is not None:
        yield _event(open_, begin, more, at, length)


def _event(match: re.Match[str], line: int, more: list[str], at: float, length: int) -> Event:
    session, command = match["id"], match["command"].lower()
    said = match["text"] or ""
    if length >= LONGEST:
        return Ignored(line, LONG_STATEMENT, 1 + len(more))
    if command in ("query", "execute"):
        return Logged(session, line, "\n".join((said, *more)), at, "simple" if command == "query" else "prepared")
    if command == "quit":
        return Fact(session, line, "end", at)
    if command == "connect":
        if said.startswith("Access denied"):
            return Ignored(line, REFUSED, 1 + len(more))
        return Fact(session, line, "begin", at)
    return Ignored(line, OTHER, 1 + len(more))
