"""All that is found in the logs of a database server: classes of operations, connections, arrivals, and what is left out. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ciphercost.importers.logs._sql import Event, Fact, Ignored, Logged
from ciphercost.importers.statements.classes import TOO_MANY, Class, Classes
from ciphercost.importers.statements.transactions import Operation, Transactions
from ciphercost.model.result import Warning_
from ciphercost.model.traffic import Arrivals, Bin, Connections, Hour, LeftOut, OperationClass, Traffic

FINE = 24
"""Bins of times per power of e: each is 4 % wide."""
BACKWARDS_S = 1.0
"""Seconds by which a line may be older than one before it: entries of several processes are not in order."""
SLOW_S = 0.01
"""If no statement took less, the log holds only slow ones."""


class Place(NamedTuple):
    file: str
    line: int


class _Session(NamedTuple):
    operations: int
    begun: bool
    """Its login is in the log."""


class Found:
    """Collects what the readers of one or more logs yield."""

    def __init__(self, dialect: str, *, writes: bool = False) -> None:
        self.dialect, self.writes = dialect, writes
        self.classes = Classes()
        self.statements = 0
        """Statements read, kept or not."""
        self.entries = 0
        self.kept = 0
        """Statements of the operations that are kept."""
        self._left: dict[str, tuple[int, Place]] = {}
        self._lengths: Counter[int] = Counter()
        self._open: dict[str, _Session] = {}
        self._most_open = self._begins = 0
        self._seconds: Counter[int] = Counter()
        self._hours: dict[int, list[float]] = {}
        self._busy: Counter[int] = Counter()
        self._begin, self._end = math.inf, 0.0
        self._least = math.inf
        self._timed = 0
        self._backwards: tuple[int, Place] | None = None
        self._file = ""

    def read(self, events: Iterable[Event], file: str) -> None:
        """Take all events of a file. A transaction or connection does not reach over the file's end."""
        transactions = Transactions(self.dialect, writes=self.writes)
        self._file = file
        latest = 0.0
        for event in events:
            if isinstance(event, Logged):
                self.statements += event.count
                if event.at:
                    if event.at < latest - BACKWARDS_S:
                        self._went_back(event)
                        latest = event.at
                    latest = max(latest, event.at)
                self._operations(transactions.take(event))
                self._session(event.session)
                if event.seconds:
                    self._least = min(self._least, event.seconds)
                    self._timed += 1
            elif isinstance(event, Ignored):
                self.left_out(event.why, event.line, event.lines)
            else:
                self._fact(event, transactions)
        self._operations(transactions.finish())
        for name in list(self._open):
            self._close(name)

    def left_out(self, why: str, line: int, lines: int = 1, file: str = "") -> None:
        count, place = self._left.get(why, (0, Place(file or self._file, line)))
        self._left[why] = (count + lines, place)

    def reasons(self) -> list[LeftOut]:
        """What was left out, the most frequent reason first."""
        ordered = sorted(self._left.items(), key=lambda item: -item[1][0])
        return [LeftOut(why, count, place.file, place.line) for why, (count, place) in ordered]

    def _went_back(self, event: Logged) -> None:
        count, place = self._backwards or (0, Place(self._file, event.line))
        self._backwards = (count + 1, place)

    def _fact(self, fact: Fact, transactions: Transactions) -> None:
        match fact.what:
            case "failed":
                transactions.failed(fact.session, fact.sql)
            case "took":
                transactions.took(fact.session, fact.seconds)
            case "begin":
                self._operations(transactions.end(fact.session))
                self._close(fact.session)
                self._open[fact.session] = _Session(0, begun=True)
                self._begins += 1
                if fact.at:
                    self._hour(fact.at)[2] += 1
            case "end":
                self._operations(transactions.end(fact.session))
                self._close(fact.session)

    def _session(self, name: str) -> None:
        if name and name not in self._open:
            self._open[name] = _Session(0, begun=False)
        self._most_open = max(self._most_open, len(self._open))

    def _close(self, name: str) -> None:
        session = self._open.pop(name, None)
        if session is not None and session.operations:
            self._lengths[session.operations] += 1

    def _operations(self, operations: Iterator[Operation]) -> None:
        for operation in operations:
            calls = operation.at.count if len(operation.steps) == 1 else 1
            for step in operation.dropped:
                self.left_out(step.why, step.logged.line)
            size = sum(step.logged.count for step in operation.steps)
            why = operation.why or ("" if self.classes.add(operation, self._file) else TOO_MANY)
            if why:
                self.left_out(why, operation.at.line, size)
                continue
            self.kept += size
            session = self._open.get(operation.at.session)
            if session is not None:
                self._open[operation.at.session] = session._replace(operations=session.operations + 1)
            self._arrived(operation.at.at, calls, operation.seconds)

    def _arrived(self, at: float, calls: int, seconds: float) -> None:
        if not at:
            return
        self._begin, self._end = min(self._begin, at), max(self._end, at + seconds)
        self._seconds[int(at)] += calls
        hour = self._hour(at)
        hour[0] += calls
        hour[1] += seconds * calls
        if seconds:
            self._busy[int(at) // 60] += round(seconds * calls * 1e6)

    def _hour(self, at: float) -> list[float]:
        return self._hours.setdefault(int(at) // 3600 * 3600, [0.0, 0.0, 0.0])

    # ── the result ────────────────────────────────────────────────────────────────────────────────────────────────

    def traffic(self, formats: list[str], files: int, lines: int) -> Traffic:
        """What was found, for the page and the workload file."""
        classes = self.classes.ordered()
        return Traffic(
            kind="sql",
            formats=formats,
            files=files,
            lines=lines,
            operations=sum(each.count for each in classes),
            left_out=self.reasons(),
            begin=self._begin if self._end else 0.0,
            end=self._end,
            classes=[of_class(each, name) for each, name in zip(classes, names(classes), strict=True)],
            connections=self._connections(),
            arrivals=self._arrivals(),
            hours=[
                Hour(start, round(count), 0, opened, seconds)
                for start, (count, seconds, opened) in sorted(self._hours.items())
            ],
            clients=0,
            paths=len(classes),
            notes=self._notes(),
        )

    @property
    def most_open(self) -> int:
        """Connections that were open at once at most, as far as the log shows."""
        return self._most_open

    def _connections(self) -> Connections:
        if not self._lengths:
            return Connections()
        lengths = counted(self._lengths)
        if self._begins:
            return Connections("logged", "logins in the log", lengths)
        how = "one connection for each process or thread in the log, because no logins are logged"
        return Connections("estimate", how, lengths)

    def _arrivals(self) -> Arrivals:
        concurrent = Counter(round(microseconds / 60e6) for microseconds in self._busy.values())
        return Arrivals(
            per_second=counted(Counter(self._seconds.values())),
            busiest_second=max(self._seconds.values(), default=0),
            concurrent=counted(concurrent),
        )

    def _notes(self) -> list[Warning_]:
        notes = []
        if self._backwards:
            count, place = self._backwards
            text = f"the clock goes backwards in {count:,} places, the first at {place.file}, line {place.line}"
            notes.append(Warning_("log-clock-backwards", text))
        if self._timed and self._timed >= 0.9 * self.statements and self._least > SLOW_S:
            text = (
                f"every statement took at least {self._least * 1e3:,.0f} ms, so the log seems to hold only slow ones; log all of them "
                "(long_query_time = 0, log_min_duration_statement = 0) to get the mix"
            )
            notes.append(Warning_("log-only-slow", text))
        return notes


def names(classes: list[Class]) -> list[str]:
    """A name for each class that holds nothing of the user's: `SELECT 1`, `UPDATE 2`."""
    seen: Counter[str] = Counter()
    written = []
    for each in classes:
        verb = each.verb if len(each.shapes) == 1 else f"transaction with {each.verb}"
        seen[verb] += 1
        written.append(f"{verb} {seen[verb]}")
    return written


def of_class(each: Class, name: str) -> OperationClass:
    times = [Bin(each.seconds / each.timed, each.timed)] if each.timed else []
    return OperationClass(name, each.count, method=each.verb, times=times)


def counted(values: Counter[int]) -> list[Bin]:
    """A histogram, exact up to 64 bins and else with bins 4 % wide."""
    if len(values) <= 64:
        return [Bin(float(value), count) for value, count in sorted(values.items())]
    sums: dict[int, list[float]] = {}
    for value, count in values.items():
        both = sums.setdefault(round(math.log(max(value, 1)) * FINE), [0.0, 0.0])
        both[0] += value * count
        both[1] += count
    return [Bin(total / count, round(count)) for _, (total, count) in sorted(sums.items())]
