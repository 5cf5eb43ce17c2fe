"""PostgreSQL's log in JSON: jsonlog (from PostgreSQL 15 on), the records of CloudNativePG, and those of Google's Cloud SQL. Pure.

Cloud SQL puts a line of the text log into `textPayload`; `postgresql_text` reads that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from ciphercost.importers.logs import _database_times as _times
from ciphercost.importers.logs import postgresql_text
from ciphercost.importers.logs._postgresql import NO_MESSAGE, Message, Statements
from ciphercost.importers.logs._sql import Event, Ignored

KIND = "sql"
DIALECT = "postgresql"
NOT_JSON = "lines that are no JSON"
LEAST = 10
"""Times that must all fall for a log to count as one with the newest line first."""
MOST_REVERSED = 5_000_000
"""Lines of a log with the newest line first that are kept in memory to be read from its end."""
OLDER = f"lines older than the newest {MOST_REVERSED:,} of a log with the newest line first"


class _Entry(msgspec.Struct):
    """A record of jsonlog; CloudNativePG's has the names of csvlog's columns."""

    timestamp: str = ""
    log_time: str = ""
    pid: int = 0
    process_id: str = ""
    session_id: str = ""
    error_severity: str = ""
    message: str = ""
    detail: str = ""
    statement: str = ""
    query: str = ""


class _Line(_Entry):
    record: _Entry | None = None
    text_payload: str = msgspec.field(name="textPayload", default="")
    insert_id: Any = msgspec.field(name="insertId", default=None)


_decode = msgspec.json.Decoder(_Line).decode


def _parsed(line: bytes) -> _Line | None:
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def recognise(head: Sequence[bytes]) -> int:
    return sum(bool((entry := _parsed(line)) and _says(entry)) for line in head if line.startswith(b"{"))


def _says(entry: _Line) -> bool:
    found = entry.record or entry
    return bool(found.error_severity and found.session_id) or (
        bool(entry.text_payload) and postgresql_text.recognise([entry.text_payload.encode()]) == 1
    )


def _time(entry: _Entry, zones: set[str]) -> float:
    return _times.of(entry.timestamp or entry.log_time, zones)


def _descends(head: Sequence[bytes]) -> bool:
    """Whether the newest line comes first, as some tools print the log of a container."""
    entries = [entry.record or entry for line in head if (entry := _parsed(line))]
    times = [time for entry in entries if (time := _time(entry, set()))]
    return len(times) >= LEAST and times[0] > times[-1] and times == sorted(times, reverse=True)


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Event]:
    numbered: Iterator[tuple[int, bytes]] = enumerate(lines, 1)
    if _descends(head):
        kept = list(islice(numbered, MOST_REVERSED))
        if older := sum(1 for _ in numbered):
            yield Ignored(len(kept) + 1, OLDER, older)
        numbered = reversed(kept)
    payloads = [entry.text_payload for line in head if (entry := _parsed(line)) and entry.text_payload]
    if payloads:
        yield from postgresql_text.read_numbered(_payloads(numbered), [payload.encode() for payload in payloads], zones)
        return
    statements = Statements()
    for number, line in numbered:
        entry = _parsed(line)
        if entry is None:
            if line.strip():
                yield Ignored(number, NOT_JSON)
            continue
        found = entry.record or entry
        if not found.error_severity:
            yield Ignored(number, NO_MESSAGE)
            continue
        session = found.session_id or found.process_id or str(found.pid)
        yield from statements.take(
            Message(
                session,
                number,
                _time(found, zones),
                found.error_severity,
                found.message,
                found.detail,
                found.statement or found.query,
            )
        )
    yield from statements.finish()


def _payloads(numbered: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str | None]]:
    """The lines of the text log in lines of JSON; None: a line without one. A payload of several lines has the number of its first."""
    for number, line in numbered:
        entry = _parsed(line)
        if entry is None or not entry.text_payload:
            yield number, None
            continue
        first, *rest = entry.text_payload.split("\n")
        yield number, first
        for continued in rest:
            yield number, "\t" + continued.removeprefix("\t")
