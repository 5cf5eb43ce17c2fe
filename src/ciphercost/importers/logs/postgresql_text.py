"""PostgreSQL's log as text, with any `log_line_prefix`: of stderr, of syslog, and of Amazon RDS. Pure.

An entry begins at a line with a severity behind its prefix (`… LOG:  …`); the lines after it belong to it until the next one. The
session is `%c`, else the process in the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs._postgresql import NO_MESSAGE, Message, Statements
from ciphercost.importers.logs._sql import BEFORE, LONGEST, OVERLONG, TOO_LONG, Event, Ignored, numbered, text

KIND = "sql"
DIALECT = "postgresql"
_SEVERITIES = (
    *("LOG:", "DETAIL:", "STATEMENT:", "ERROR:", "FATAL:", "PANIC:", "WARNING:", "NOTICE:", "INFO:", "HINT:", "CONTEXT:", "QUERY:"),
    *("LOCATION:", "DEBUG:", "DEBUG1:", "DEBUG2:", "DEBUG3:", "DEBUG4:", "DEBUG5:"),
)  # fmt: skip
_BESIDE_LOG = ("DETAIL:", "STATEMENT:", "ERROR:", "CONTEXT:")
"""Severities whose text may hold `LOG:  `."""
LONGEST_PREFIX = 400
"""Characters before the severity."""
MOST_PREFIXES = 10_000
"""Prefixes without their times whose sessions are remembered."""
_SYSLOG = re.compile(
    r"(?:<\d+>\d? ?)?(?P<time>[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?:\S+ )?"
    r"(?P<who>[\w.-]+\[[^\]]+\]):? (?:\[[A-Z]+\] )?\[(?P<number>\d+)-(?P<part>\d+)\] ?(?P<rest>.*)",
    re.DOTALL,
)
_HEXADECIMAL = re.compile(r"\b[0-9a-f]{8}\.[0-9a-f]{1,8}\b")
_BRACKETED = re.compile(r"[\[(](\d+)[\])]")
_BARE = re.compile(r"(?<![\w.:-])(\d{1,10})(?![\w.:-])")
_NUMBER = re.compile(r"\d{2}")
_EPOCH = re.compile(r"\b1\d{9}\.\d{3}\b")
TOO_MANY_LINES = f"entries longer than {LONGEST >> 20} MiB"


class _Found(NamedTuple):
    """The line at which an entry begins."""

    prefix: str
    severity: str
    said: str


_Begun = tuple[str, int, float, str]
"""The session, line, time and severity of an entry."""


def _severity(line: str) -> _Found | None:
    """The first severity of a line, with what stands before and behind it."""
    end, found = LONGEST_PREFIX, ""
    usual = line.find("LOG:  ", 0, end)
    if usual >= 0:
        end, found = usual, "LOG:"
    for severity in _BESIDE_LOG if found else _SEVERITIES:
        at = line.find(severity, 0, end)
        if at >= 0:
            end, found = at, severity
    if not found or (end and (line[end - 1].isalnum() or line[end - 1] in "_'\"")):
        return None
    said = line[end + len(found) :]
    if not said.startswith((" ", "duration:")) and said:
        return None
    return _Found(line[:end], found[:-1], said.lstrip(" "))


def _entry(line: str) -> _Found | None:
    """The entry that begins at this line. A prefix has a time or a process, so a number."""
    found = _severity(line) if not line.startswith("\t") else None
    return found if found and _NUMBER.search(found.prefix) else None


def recognise(head: Sequence[bytes]) -> int:
    """How many of the lines are of this format, those that continue an entry too."""
    count, inside = 0, False
    for line in map(text, head):
        syslog = _SYSLOG.match(line)
        found = _entry(line) if syslog is None else _severity(syslog["rest"])
        inside = found is not None or (inside and (syslog is not None or line.startswith("\t")))
        count += inside
    return count


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    heads = list(map(text, head))
    if sum(_SYSLOG.match(line) is not None for line in heads) * 2 > len(heads):
        yield from _read_syslog(numbered(lines), zones)
        return
    yield from read_numbered(numbered(lines), head, zones)


def read_numbered(lines: Iterable[tuple[int, str | None]], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    """`lines`: with their numbers; None: a line that has another form."""
    session_of = _session([found.prefix for line in head if (found := _entry(text(line)))])
    statements = Statements()
    open_: list[str] = []
    length = 0
    message: _Begun | None = None
    for number, line in lines:
        if line is None:
            yield Ignored(number, NO_MESSAGE)
            continue
        if line.startswith(OVERLONG):
            message = None
            yield Ignored(number, TOO_LONG)
            continue
        found = _entry(line)
        if found is None:
            if message is None:
                yield Ignored(number, BEFORE)
            elif length < LONGEST:
                # PostgreSQL puts a tab before each further line.
                open_.append(line.removeprefix("\t"))
                length += len(line)
            continue
        if message is not None:
            yield from _finished(statements, message, open_, length)
        at, rest = _time(found.prefix, zones)
        message = session_of(rest), number, at, found.severity
        open_, length = [found.said], len(found.said)
    if message is not None:
        yield from _finished(statements, message, open_, length)
    yield from statements.finish()


def _finished(statements: Statements, begun: _Begun, lines: list[str], length: int) -> tuple[Event, ...]:
    session, number, at, severity = begun
    if length >= LONGEST:
        return (Ignored(number, TOO_MANY_LINES, len(lines)),)
    said = lines[0] if len(lines) == 1 else "\n".join(lines).rstrip("\n")
    return statements.take(Message(session, number, at, severity, said))


def _read_syslog(lines: Iterable[tuple[int, str]], zones: set[str]) -> Iterator[Event]:
    """An entry is a line with `[7-1]` and its parts `[7-2]` …, between which lines of other processes may stand."""
    statements = Statements()
    entries: dict[str, tuple[Message, list[str]]] = {}
    for number, line in lines:
        syslog = _SYSLOG.match(line)
        if syslog is None:
            yield Ignored(number, TOO_LONG if line.startswith(OVERLONG) else "lines of other programs")
            continue
        who, part, rest = syslog["who"], syslog["part"], syslog["rest"]
        found = _severity(rest)
        if found is None or (part != "1" and found.severity == "LOG"):
            if who in entries:
                # syslog writes a tab as #011; a part without one continues the line before it.
                entries[who][1].append("\n" + rest.removeprefix("#011") if rest.startswith("#011") else rest)
            else:
                yield Ignored(number, BEFORE)
            continue
        if who in entries:
            yield from _ended(statements, *entries[who])
        message = Message(who, number, _times.syslog(syslog["time"], zones), found.severity, "")
        entries[who] = (message, [found.said])
    for message, parts in entries.values():
        yield from _ended(statements, message, parts)
    yield from statements.finish()


def _ended(statements: Statements, message: Message, parts: list[str]) -> Iterator[Event]:
    yield from statements.take(message._replace(text="".join(parts).replace("#011", "\t")))


def _time(prefix: str, zones: set[str]) -> tuple[float, str]:
    """(the time in a prefix, the prefix without it)."""
    match = _times.STAMP.search(prefix)
    if match:
        return _times.stamp(match, zones), prefix[: match.start()] + prefix[match.end() :]
    epoch = _EPOCH.search(prefix)
    return (float(epoch[0]), prefix[: epoch.start()] + prefix[epoch.end() :]) if epoch else (0.0, prefix)


def _session(prefixes: Sequence[str]) -> Callable[[str], str]:
    """How a prefix of this log, without its time, names its session."""
    rests = [_time(prefix, set())[1] for prefix in prefixes]

    def by(pattern: re.Pattern[str]) -> Callable[[str], str]:
        @lru_cache(MOST_PREFIXES)
        def session(rest: str) -> str:
            match = pattern.search(rest)
            return match[match.lastindex or 0] if match else ""

        return session

    for pattern in (_HEXADECIMAL, _BRACKETED, _BARE):
        if sum(bool(pattern.search(rest)) for rest in rests) > 0.6 * len(rests):
            return by(pattern)
    return lambda rest: rest
