"""Statements of many connections, mixed → operations: a transaction, or a statement outside of one. Pure.

An operation is all statements from BEGIN to COMMIT or ROLLBACK. Where a client has switched `autocommit` off, a transaction begins with its
next statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ciphercost.importers.logs._sql import EMPTY, NOT_UTF8, Logged
from ciphercost.importers.statements.fingerprint import LONGEST_SHAPE, Unreadable, shape, split
from ciphercost.importers.statements.sorts import SETTINGS, WRITES, Sort, sort

BEGIN = {"postgresql": "BEGIN", "mysql": "START TRANSACTION"}
MOST_TEXTS = 20_000
"""Texts that are remembered: programs send the same ones often."""
MOST_STATEMENTS = 200
"""Statements of an operation."""
LONGEST = 1 << 18
"""Characters of an operation."""
UNREADABLE = "statements that are cut off: a quote or comment is not closed"
BYTES = "statements with bytes that are no UTF-8"
FAILED = "failed on the server, or their transaction did"
UNFINISHED = "transactions whose begin or end is not in the log"
LONG = f"transactions of more than {MOST_STATEMENTS} statements or {LONGEST >> 10} KiB"
NO_VALUES = "statements without their values in the log"
OUTSIDE = "COMMIT or ROLLBACK without a transaction"
BOUNDS = "BEGIN, COMMIT and ROLLBACK in a table of counters, which does not say what was between them"
_ON = re.compile(r"(?i)autocommit\s*:?=\s*(?:1|on|true)")


class Step(NamedTuple):
    """A statement of an operation."""

    logged: Logged
    shape: str
    sort: Sort
    why: str
    """Why it can't be replayed; empty: it can."""


_Part = tuple[str, str, Sort, str]
"""A statement of a text, its shape, what it does, and why it can't be replayed."""


def _parts(sql: str, dialect: str) -> tuple[_Part, ...]:
    """The statements that a client sent as one text."""
    if NOT_UTF8 in sql:
        return ((sql, "", "left out", BYTES),)
    try:
        shapes = [(part, text) for part in split(sql, dialect) if (text := shape(part, dialect))]
    except Unreadable:
        return ((sql, "", "left out", UNREADABLE),)
    found: list[_Part] = []
    for part, text in shapes:
        what, why = sort(text)
        if what == "autocommit off" and _ON.search(part):
            what = "autocommit on"
        found.append((part, text, what, why))
    return tuple(found) or ((sql, "", "left out", EMPTY),)


class Operation(NamedTuple):
    """What a client does at once."""

    steps: tuple[Step, ...]
    why: str
    """Why it is left out; empty: it is kept."""
    at: Logged
    """The statement that the reason is about, or its first."""
    dropped: tuple[Step, ...] = ()
    """Settings among its statements, which are left out of it."""

    @property
    def seconds(self) -> float:
        """Time that the server took; 0: not logged."""
        steps = self.steps
        if len(steps) == 1 and not self.dropped:
            return steps[0].logged.seconds
        return sum(step.logged.seconds for step in (*steps, *self.dropped))


class _Session:
    def __init__(self) -> None:
        self.open: list[Step] | None = None
        self.autocommit = True
        self.last: list[Step] = []
        """A statement outside of a transaction, until it is known whether it failed."""
        self.failed = False
        self.length = 0


class Transactions:
    """Makes operations of the statements of one log."""

    def __init__(self, dialect: str, *, writes: bool = False) -> None:
        self._dialect, self._writes = dialect, writes
        self._known = lru_cache(MOST_TEXTS)(lambda sql: _parts(sql, dialect))
        self._sessions: dict[str, _Session] = {}

    def take(self, logged: Logged) -> Iterator[Operation]:
        """Yield the operations that this statement ends."""
        session = self._sessions.get(logged.session)
        if session is None:
            session = self._sessions[logged.session] = _Session()
        if session.last:
            yield from self._settled(session)
        for step in self._steps(logged):
            if not logged.session and step.sort in ("begin", "end", "savepoint"):
                yield Operation((step,), BOUNDS, step.logged)
            elif not logged.session:
                yield self._finished([step])
            else:
                yield from self._step(session, step)

    def failed(self, name: str, sql: str) -> None:
        """A statement of this session failed, and with it the transaction that it was in.

        `sql`: the statement; empty: unknown. A log of durations alone does not hold it otherwise, and then the one before did not fail.
        """
        if session := self._sessions.get(name):
            same = bool(session.last) and sql.strip() == session.last[-1].logged.sql.strip()
            session.failed = session.failed or session.open is not None or same

    def took(self, name: str, seconds: float) -> None:
        """The last statement of this session took so many seconds."""
        session = self._sessions.get(name)
        steps = session.open or session.last if session else []
        if steps:
            steps[-1] = steps[-1]._replace(logged=steps[-1].logged._replace(seconds=seconds))

    def end(self, name: str) -> Iterator[Operation]:
        """Yield what was open in a session that has ended."""
        if session := self._sessions.pop(name, None):
            yield from self._settled(session)
            if session.open is not None:
                yield Operation(tuple(session.open), UNFINISHED, session.open[0].logged)

    def finish(self) -> Iterator[Operation]:
        """Yield what is open at the end of the log."""
        for name in list(self._sessions):
            yield from self.end(name)

    def _steps(self, logged: Logged) -> list[Step]:
        session, line, sql, at, sent, parameters, seconds, calls = logged
        return [
            Step(
                logged if part == sql else Logged(session, line, part, at, sent, parameters, seconds, calls),
                shape_,
                what,
                why,
            )
            for part, shape_, what, why in (
                self._known(sql) if len(sql) < LONGEST_SHAPE else _parts(sql, self._dialect)
            )
        ]

    def _step(self, session: _Session, step: Step) -> Iterator[Operation]:
        what = step.sort
        if what in ("autocommit on", "autocommit off"):
            session.autocommit = what == "autocommit on"
            yield Operation((step,), SETTINGS, step.logged)
        elif what == "begin":
            if session.open is not None:
                yield Operation(tuple(session.open), UNFINISHED, session.open[0].logged)
            session.open, session.failed, session.length = [step], False, 0
        elif what == "end":
            if session.open is None:
                yield Operation((step,), OUTSIDE, step.logged)
                return
            steps, session.open = [*session.open, step], None
            yield self._ended(session, steps)
        elif session.open is not None:
            session.open.append(step)
            session.length += len(step.logged.sql)
            if len(session.open) > MOST_STATEMENTS or session.length > LONGEST:
                yield Operation(tuple(session.open), LONG, session.open[0].logged)
                session.open = []  # what follows up to its end is left out with it
                session.failed = True
        elif not session.autocommit and what != "left out":
            opening = Step(
                step.logged._replace(sql=BEGIN[self._dialect], parameters=(), seconds=0.0, calls=0),
                "begin",
                "begin",
                "",
            )
            session.open, session.failed, session.length = [opening, step], False, 0
        else:
            session.last = [step]

    def _settled(self, session: _Session) -> Iterator[Operation]:
        """The statement outside of a transaction that came last, now that another one follows."""
        if session.last:
            steps, session.last = session.last, []
            yield self._ended(session, steps)

    def _ended(self, session: _Session, steps: list[Step]) -> Operation:
        """The operation that this session has ended, which may have failed."""
        failed, session.failed = session.failed, False
        return Operation(tuple(steps), FAILED, steps[0].logged) if failed else self._finished(steps)

    def _finished(self, steps: list[Step]) -> Operation:
        """The operation, with the reason to leave it out if there is one."""
        inside = len(steps) > 1
        dropped = tuple(step for step in steps if inside and step.why == SETTINGS)
        kept = tuple(step for step in steps if step not in dropped) if dropped else tuple(steps)
        for step in kept:
            if step.why and not (step.why == WRITES and self._writes):
                return Operation(tuple(steps), step.why, step.logged)
            if step.logged.parameters is None:
                return Operation(tuple(steps), NO_VALUES, step.logged)
            if len(step.logged.sql) > LONGEST:
                return Operation(tuple(steps), LONG, step.logged)
        return Operation(kept, "", kept[0].logged, dropped)
