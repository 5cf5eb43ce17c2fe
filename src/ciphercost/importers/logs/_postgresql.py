"""Messages of PostgreSQL's log, in whatever form they were written → statements. Pure.

What is logged with `log_statement`, `log_duration` and `log_min_duration_statement`: PostgreSQL's manual, chapter "Error Reporting and Logging".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.importers.logs._sql import EMPTY, Event, Fact, Ignored, Logged
from ciphercost.model.spec import QueryMode

_STATEMENT = re.compile(
    r"(?:duration: (?P<ms>\d+(?:\.\d+)?) ms\s*)?"
    r"(?:(?P<simple>statement|query)|(?P<fetch>execute fetch from)|(?P<step>execute|parse|bind|fastpath function call)(?=[ :]))?"
    r"(?: (?P<name>[^\n:]*?))?(?::\s+(?P<sql>.*)|\s*)",
    re.DOTALL,
)
"""`duration: 0.1 ms  execute S_1: SELECT …`. Each part may be missing."""
_SIMPLE, _TIMED = "statement: ", "duration: "
_PARAMETER = re.compile(r"\$(\d+) = (?:(NULL)\b|'((?:[^']|'')*)')(?:, |\Z)")
_PARAMETERS = re.compile(r"\s*parameters: (?=\$1 = )", re.IGNORECASE)
CUT = "..."
"""Ends a value that `log_parameter_max_length` cut off."""
_UNNAMED = ("", "<unnamed>")
FAILED = ("ERROR", "FATAL", "PANIC")
OTHER = "messages of the server that are no statements"
NO_MESSAGE = "JSON without a message of PostgreSQL"
FETCHED = "fetches of further rows"


class Message(NamedTuple):
    """An entry of the log."""

    session: str
    line: int
    at: float
    severity: str
    """LOG, ERROR, DETAIL …"""
    text: str
    detail: str | None = None
    """None: it comes as an entry of its own, if at all."""
    statement: str = ""
    """Of an error: the statement, if it comes with it."""


class Statements:
    """Makes events of the entries of one log, in their order."""

    def __init__(self) -> None:
        self._held: dict[str, Logged] = {}
        """By session: the statement whose parameters come in the next entry."""

    def take(self, message: Message) -> tuple[Event, ...]:
        """What this entry says, behind what was held back for it."""
        held = self._held.pop(message.session, None) if self._held else None
        if held is None:
            return self._said(message)
        if message.severity == "DETAIL":
            return (held._replace(parameters=parameters(message.text)),)
        return (held, *self._said(message))

    def _said(self, message: Message) -> tuple[Event, ...]:
        if message.severity == "LOG":
            event = self._log(message)
            return () if event is None else (event,)
        if message.severity in FAILED:
            return (Fact(message.session, message.line, "failed", message.at, sql=message.statement),)
        if message.severity == "STATEMENT":
            return (Fact(message.session, message.line, "failed", message.at, sql=message.text),)
        if message.severity in ("DETAIL", "HINT", "CONTEXT", "QUERY", "LOCATION"):
            return ()
        return (Ignored(message.line, OTHER),)

    def finish(self) -> Iterator[Event]:
        """Yield what was held back at the end of the log."""
        yield from self._held.values()
        self._held.clear()

    def _log(self, message: Message) -> Event | None:
        """None: it is held back."""
        session, line, at, _, text, detail, _ = message
        # The two most frequent forms, without a search.
        if text.startswith(_SIMPLE):
            sql = text[len(_SIMPLE) :].lstrip()
            return Logged(session, line, sql, at) if sql else Ignored(line, EMPTY)
        if text.startswith(_TIMED):
            ms, found, sql = text[len(_TIMED) :].partition(" ms  " + _SIMPLE)
            if found and sql and ms.replace(".", "", 1).isdecimal() and ms[0] != "." != ms[-1] and not sql[0].isspace():
                seconds = float(ms) / 1e3
                return Logged(session, line, sql, at - seconds, "simple", (), seconds)
        if text.startswith("disconnection:"):
            return Fact(session, line, "end", at)
        if text.startswith("connection authorized:"):
            return Fact(session, line, "begin", at)
        match = _STATEMENT.fullmatch(text) if text.startswith(("duration: ", "statement: ", "execute ")) else None
        if match is None:
            return Ignored(line, OTHER)
        ms, simple, fetch, step, name, sql = match.group("ms", "simple", "fetch", "step", "name", "sql")
        seconds = float(ms) / 1e3 if ms else 0.0
        if simple:
            return Logged(session, line, sql, at - seconds, "simple", (), seconds) if sql else Ignored(line, EMPTY)
        if step == "execute" and sql:
            sent: QueryMode = "extended" if (name or "").strip() in _UNNAMED else "prepared"
            if "$1" not in sql:
                return Logged(session, line, sql, at - seconds, sent, (), seconds)
            if detail is not None:
                return Logged(session, line, sql, at - seconds, sent, parameters(detail), seconds)
            self._held[session] = Logged(session, line, sql, at - seconds, sent, None, seconds)
            return None
        if fetch:
            return Ignored(line, FETCHED)
        if step:
            return Ignored(line, "steps before a statement runs (parse, bind)")
        if ms and not sql:
            return Fact(session, line, "took", at, seconds)
        return Ignored(line, OTHER)


def parameters(detail: str) -> tuple[str | None, ...] | None:
    """The values in `Parameters: $1 = '5', $2 = NULL`. None: there are none, or one was cut off."""
    begin = _PARAMETERS.match(detail)
    if begin is None:
        return None
    values: list[str | None] = []
    at = begin.end()
    while at < len(detail):
        match = _PARAMETER.match(detail, at)
        if match is None or int(match[1]) != len(values) + 1:
            return None
        value = None if match[2] else match[3].replace("''", "'")
        if value is not None and value.endswith(CUT):
            return None
        values.append(value)
        at = match.end()
    return tuple(values)
