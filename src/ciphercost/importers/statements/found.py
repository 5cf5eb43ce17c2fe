"""All that is found in the logs of a database server: classes of operations, connections, arrivals, and what is left out. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ciphercost.importers.busiest_hour import BusiestHour
from ciphercost.importers.left_out import LeftOuts
from ciphercost.importers.logs._sql import Event, Fact, Ignored, Logged
from ciphercost.importers.quantised import Histogram, fewer
from ciphercost.importers.statements.classes import TOO_MANY, Class, Classes
from ciphercost.importers.statements.transactions import Operation, Transactions
from ciphercost.model.result import Warning_
from ciphercost.model.traffic import HOUR, Arrivals, Bin, Connections, Hour, OperationClass, Traffic

MOST_BINS = 100
"""Bins of a histogram."""
MOST_CLASSES = 150
"""Classes that are told apart in what was found; the others are one."""
MOST_OPEN = 20_000
"""Connections that are followed at once; of more, those that began first count as closed."""
MOST_SECONDS = 10_000
"""Seconds whose operations are counted before they go into the histogram: a transaction is counted when it ends, at the time of its begin."""
SHOW_EVERY = 1 << 14
"""Events between two reports of progress."""
BACKWARDS_S = 1.0
"""Seconds by which a line may be older than one before it: entries of several processes are not in order."""
NO_YEAR = 978_307_200
"""Seconds since 1970 below which a time has the year that stands for none (`_database_times.SYSLOG_YEAR`)."""
SLOW_S = 0.01
"""If no statement took less, the log holds only slow ones."""


class Place(NamedTuple):
    file: str
    line: int


class _Session(NamedTuple):
    operations: int
    latest: float = 0.0
    """When its last operation ended."""


class Found:
    """Collects what the readers of one or more logs yield."""

    def __init__(self, dialect: str, *, writes: bool = False) -> None:
        self.dialect = dialect
        self.classes = Classes()
        self.statements = 0
        """Statements read, kept or not."""
        self.kept = 0
        """Statements of the operations that are kept."""
        self.left_out = LeftOuts()
        self.zones: set[str] = set()
        self._lengths: Counter[int] = Counter()
        self._open: dict[str, _Session] = {}
        self._most_open = self._most_active = self._begins = 0
        self._minute, self._active = 0, set[str]()
        """The connections with a statement in the last minute."""
        self._seconds: Counter[int] = Counter()
        self._per_second, self._busiest = Histogram(), 0
        self._busiest_hour = BusiestHour(fractions=True)
        self._hours: dict[int, Hour] = {}
        self._busy: Counter[int] = Counter()
        self._idle = Histogram(1e-3)
        self._begin, self._end = math.inf, 0.0
        self._least = math.inf
        self._timed = 0
        self._backwards: tuple[int, Place] | None = None
        self._file = ""
        self._latest = 0.0
        self._transactions = Transactions(dialect, writes=writes)

    def read(self, events: Iterable[Event], file: str, shows: Callable[[], None] = lambda: None) -> None:
        """Take all events of a file. It continues the one before it, with its connections, unless it begins before that one's end."""
        transactions = self._transactions
        self._file = file
        fresh = True
        for number, event in enumerate(events):
            if not number % SHOW_EVERY:
                shows()
            if isinstance(event, Logged):
                at, calls = event.at, event.calls
                self.statements += calls
                if at:
                    if at < self._latest - BACKWARDS_S:
                        if fresh:
                            self._finish()
                        else:
                            self._went_back(event)
                        self._latest = at
                    elif at > self._latest:
                        self._latest = at
                    fresh = False
                    self._sent(at, calls)
                self._operations(transactions.take(event))
                if event.session:
                    self._session(event.session, at)
                if len(self._open) > MOST_OPEN:
                    for name in list(self._open)[: MOST_OPEN // 2]:
                        self._operations(transactions.end(name))
                        self._close(name)
                if event.seconds:
                    self._least = min(self._least, event.seconds)
                    self._timed += 1
            elif isinstance(event, Ignored):
                self.left_out.add(event.why, file, event.line, event.lines)
            else:
                self._fact(event, transactions)

    def _finish(self) -> None:
        """Close what is open."""
        self._operations(self._transactions.finish())
        for name in list(self._open):
            self._close(name)

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
                self._open[fact.session] = _Session(0)
                self._begins += 1
                if fact.at:
                    self._hour(fact.at).connections += 1
            case "end":
                self._operations(transactions.end(fact.session))
                self._close(fact.session)

    def _session(self, name: str, at: float) -> None:
        if name not in self._open:
            self._open[name] = _Session(0)
        minute = int(at) // 60
        if minute != self._minute:
            self._minute = minute
            self._active.clear()
        if name not in self._active:
            self._active.add(name)
            self._most_active = max(self._most_active, len(self._active))
        if len(self._open) > self._most_open:
            self._most_open = len(self._open)

    def _close(self, name: str) -> None:
        session = self._open.pop(name, None)
        if session is not None and session.operations:
            self._lengths[session.operations] += 1

    def _operations(self, operations: Iterator[Operation]) -> None:
        for operation in operations:
            steps = operation.steps
            calls = operation.at.calls if len(steps) == 1 else 1
            for step in operation.dropped:
                self.left_out.add(step.why, self._file, step.logged.line)
            size = steps[0].logged.calls if len(steps) == 1 else sum(step.logged.calls for step in steps)
            why = operation.why or ("" if self.classes.add(operation, self._file) else TOO_MANY)
            if why:
                self.left_out.add(why, self._file, operation.at.line, size)
                continue
            self.kept += size
            seconds = operation.seconds
            session = self._open.get(operation.at.session)
            if session is not None:
                at = operation.at.at
                if session.latest and at > session.latest:
                    self._idle.add(at - session.latest)
                latest = steps[-1].logged.at + steps[-1].logged.seconds if at else seconds
                self._open[operation.at.session] = _Session(session.operations + 1, latest)
            self._arrived(operation.at.at, calls, seconds)

    def _sent(self, at: float, statements: int) -> None:
        """So many statements were sent, whether they are kept or not."""
        if at < self._begin:
            self._begin = at
        if at > self._end:
            self._end = at
        self._hour(at).statements += statements

    def _arrived(self, at: float, calls: int, seconds: float) -> None:
        if not at:
            return
        if at < self._begin:
            self._begin = at
        if at + seconds > self._end:
            self._end = at + seconds
        self._seconds[int(at)] += calls
        self._busiest_hour.add(at, calls)
        if len(self._seconds) > MOST_SECONDS:
            self._count_seconds(MOST_SECONDS // 2)
        hour = self._hour(at)
        hour.operations += calls
        hour.seconds += seconds * calls
        if seconds:
            self._busy[int(at) // 60] += round(seconds * calls * 1e6)

    def _count_seconds(self, most: int) -> None:
        """Count the operations of the earliest seconds, so many of them."""
        for second in sorted(self._seconds)[:most]:
            count = self._seconds.pop(second)
            self._per_second.add(count)
            self._busiest = max(self._busiest, count)

    def _hour(self, at: float) -> Hour:
        number = int(at) // HOUR
        hour = self._hours.get(number)
        if hour is None:
            hour = self._hours[number] = Hour(number * HOUR)
        return hour

    # ── the result ────────────────────────────────────────────────────────────────────────────────────────────────

    def traffic(self, formats: list[str], files: int, lines: int) -> Traffic:
        """What was found, for the page and the workload file, after the last file."""
        self._finish()
        classes = self.classes.ordered()
        return Traffic(
            kind="sql",
            formats=formats,
            files=files,
            lines=lines,
            operations=sum(each.count for each in classes),
            left_out=self.left_out.found(),
            begin=self._begin if self._end else 0.0,
            end=self._end,
            classes=of_classes(classes),
            connections=self._connections(),
            arrivals=self._arrivals(),
            hours=[self._hours[number] for number in sorted(self._hours)],
            clients=0,
            paths=len(classes),
            notes=self._notes(),
        )

    @property
    def clients(self) -> int:
        """Connections that were in use at once at most: those with a statement in the same minute, of those that were open."""
        return min(self._most_open, self._most_active)

    def _connections(self) -> Connections:
        if not self._lengths:
            return Connections()
        lengths, idle = counted(self._lengths), fewer(self._idle.bins(), MOST_BINS)
        if self._begins:
            return Connections("logged", "logins in the log", lengths, idle=idle)
        how = "one connection for each process or thread in the log, because no logins are logged"
        return Connections("estimate", how, lengths, idle=idle)

    def _arrivals(self) -> Arrivals:
        self._count_seconds(len(self._seconds))
        concurrent = Histogram(1e-4)
        for microseconds in self._busy.values():
            concurrent.add(microseconds / 60e6)
        return Arrivals(
            per_second=fewer(self._per_second.bins(), MOST_BINS),
            busiest_second=self._busiest,
            concurrent=fewer(concurrent.bins(), MOST_BINS),
            busiest_hour=self._busiest_hour.arrived(self._hours.values(), self._begin, self._end),
        )

    def _notes(self) -> list[Warning_]:
        notes = []
        if len(self.zones) > 1:
            zones = ", ".join(sorted(zone or "none" for zone in self.zones))
            text = f"the lines have several time zones ({zones}); those without a number are taken as written, so hours may overlap"
            notes.append(Warning_("time-zones", text))
        if 0 < self._end < NO_YEAR:
            text = "syslog's times have no year, so all of them are shown in the year 2000"
            notes.append(Warning_("log-no-year", text))
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


def of_classes(classes: list[Class]) -> list[OperationClass]:
    """The classes as they are shown; those beyond MOST_CLASSES as one."""
    named = [of_class(each, name) for each, name in zip(classes, names(classes), strict=True)]
    rest = named[MOST_CLASSES:]
    other = OperationClass(f"{len(rest):,} rarer kinds", sum(each.count for each in rest), method="")
    return [*named[:MOST_CLASSES], *([other] if rest else [])]


def of_class(each: Class, name: str) -> OperationClass:
    return OperationClass(name, each.count, method=each.verb, times=fewer(each.times.bins(), MOST_BINS))


def counted(values: Counter[int]) -> list[Bin]:
    """A histogram of whole numbers."""
    return fewer(Histogram.of(values).bins(), MOST_BINS)
