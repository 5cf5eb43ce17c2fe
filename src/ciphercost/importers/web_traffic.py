"""Counts the requests of web servers' logs, line by line, in memory that does not grow with the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ciphercost.importers.busiest_hour import BusiestHour
from ciphercost.importers.connection_lengths import HELD as HELD_CLIENTS
from ciphercost.importers.connection_lengths import KEEP_ALIVE, MOST_REQUESTS, ONE_REQUEST, ConnectionLengths
from ciphercost.importers.distinct import Distinct
from ciphercost.importers.left_out import LeftOuts
from ciphercost.importers.logs import Request
from ciphercost.importers.quantised import Histogram
from ciphercost.model.result import Warning_
from ciphercost.model.traffic import HOUR, Arrivals, Hour, OperationClass, Traffic

SHOW_EVERY = 1 << 14
"""Lines between two reports of progress."""
BACKWARDS = 60
"""Seconds by which times may go backwards before it is reported: servers log a request when it ends, or when it began."""
HELD = 1 << 15
"""Different values that are held before they are counted in a histogram."""
PATHS_HELD = 1 << 18
UNENCRYPTED = frozenset((b"", b"-"))
"""TLS protocols that logs write where there is none."""
METHODS = frozenset(
    (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"PROPFIND", b"CONNECT", b"TRACE")
)
"""Methods that have classes of their own."""


class _Class:
    """Requests of one method and status."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        """How often each size came since they were counted last."""
        self.times: dict[int, int] = {}
        """The same of microseconds: logs with nanoseconds hardly repeat a time."""
        self.by_size = Histogram()
        self.by_time = Histogram(1e-5)
        self.count = self.bytes_out = self.bytes_in = 0

    def counted(self) -> tuple[int, int]:
        """Count what came since then. Returns the requests and their bytes."""
        sized = [(int(text) if text.isdigit() else 0, often) for text, often in self.sizes.items()]
        count = sum(self.sizes.values())
        bytes_out = sum(size * often for size, often in sized)
        self.by_size.add_all(sized)
        self.by_time.add_all((microseconds / 1e6, often) for microseconds, often in self.times.items())
        self.sizes.clear()
        self.times.clear()
        self.count += count
        self.bytes_out += bytes_out
        return count, bytes_out


class WebTraffic:
    """What the lines of one log after another say: `add` each file, then ask for the `traffic`."""

    def __init__(self, keep_alive: int = KEEP_ALIVE, *, keep_paths: bool = False) -> None:
        """`keep_alive`: seconds after which an idle connection counts as closed, where the log does not tell.

        `keep_paths`: count each path, without its query, of GET and HEAD requests that were answered with success.
        """
        self.lines = self.files = 0
        self.formats: list[str] = []
        self.left_out = LeftOuts()
        self.zones: set[str] = set()
        self.paths: dict[tuple[bytes, bytes], list[int]] = {}
        """Requests and bytes by method and path, if they are kept."""
        self.forgotten_paths = 0
        """Requests of paths that were too rare to be kept."""
        self._keep_paths = keep_paths
        self._connections = ConnectionLengths(keep_alive)
        self._classes: dict[tuple[bytes, bytes], _Class] = {}
        self._hours: dict[int, Hour] = {}
        self._hour = -1
        self._opened_in_hour = 0
        self._minutes: dict[int, float] = {}
        self._concurrent = Histogram(1e-4)
        self._per_second = Histogram()
        self._busiest_hour = BusiestHour(fractions=False)
        self._busiest = 0
        self._begin, self._latest = 2**62, 0
        self._distinct_paths = Distinct()
        self._back = 0
        self._first_back: tuple[str, int, int] | None = None
        """File, line and seconds of the first time that went backwards."""
        self._encrypted = self._known_encrypted = 0

    def add(
        self, name: str, format_: str, items: Iterable[Request | str], shows: Callable[[int], None] = lambda _: None
    ) -> None:
        """Count a file's lines. `name`: the file's, for messages; `shows`: called now and then."""
        self.files += 1
        self.formats += [format_] if format_ not in self.formats else []
        classes, connections, keep_paths = self._classes, self._connections, self._keep_paths
        distinct, limit, kept = self._distinct_paths, self._distinct_paths.limit, self._distinct_paths.kept
        held_by_client, keep_alive = connections.held, connections.keep_alive
        gaps, lengths, room = connections.gaps, connections.lengths, HELD_CLIENTS
        opened = timed = known_encrypted = encrypted = 0
        took = 0.0
        now, in_second, number = -1, 0, 0
        for number, item in enumerate(items, 1):
            if not number % SHOW_EVERY:
                shows(self.lines + number)
            if isinstance(item, str):
                self.left_out.add(item, name, number)
                continue
            at, client, method, path, status, size, protocol, more = item
            if at == now:
                in_second += 1
            else:
                self._second(now, in_second, timed, took)
                self._opened_in_hour += opened
                opened = timed = 0
                took = 0.0
                now, in_second = at, 1
                self._at(at, name, number)
            of = classes.get((method, status))
            if of is None:
                of = classes[method, status] = _Class()
            sizes = of.sizes
            sizes[size] = sizes.get(size, 0) + 1
            hashed = hash(path)
            if hashed < limit and hashed not in kept:
                distinct.add(hashed)
                limit, kept = distinct.limit, distinct.kept
            if keep_paths:
                self._path(method, path, status, size)
            if more is not None:
                seconds, bytes_in, connection, nth, tls, resumed = more
                if seconds >= 0:
                    timed += 1
                    took += seconds
                    times = of.times
                    microseconds = int(seconds * 1e6 + 0.5)
                    times[microseconds] = times.get(microseconds, 0) + 1
                if bytes_in > 0:
                    of.bytes_in += bytes_in
                if tls is not None:
                    known_encrypted += 1
                    encrypted += tls not in UNENCRYPTED
                if connection:
                    opened += connections.on(connection, at, nth, client=client, resumed=resumed)
                    continue
            # A call would take longer than what it does: `connections.request` says what this is.
            held = held_by_client.get(client)
            if held is None:
                held_by_client[client] = [at, 1]
                opened += 1
                if (hashed := hash(client)) < connections.clients.limit:
                    connections.clients.add(hashed)
                if len(held_by_client) > room:
                    connections.forget(at)
            elif 0 <= (gap := at - held[0]) <= keep_alive and held[1] < MOST_REQUESTS and protocol not in ONE_REQUEST:
                held[0] = at
                held[1] += 1
                gaps[gap] = gaps.get(gap, 0) + 1
            else:
                length = held[1]
                lengths[length] = lengths.get(length, 0) + 1
                held[0] = at
                held[1] = 1
                opened += 1
        self._second(now, in_second, timed, took)
        self._opened_in_hour += opened
        self._known_encrypted += known_encrypted
        self._encrypted += encrypted
        self.lines += number

    def _second(self, at: int, count: int, timed: int, seconds: float) -> None:
        """So many requests came in one second; `timed` of them took so many seconds in all."""
        if count:
            self._per_second.add(count)
            self._busiest_hour.add(at, count)
            self._busiest = max(self._busiest, count)
        if timed:
            self._minutes[at // 60] = self._minutes.get(at // 60, 0.0) + seconds
            self._hour_of(at // HOUR).seconds += seconds

    def _at(self, at: int, name: str, number: int) -> None:
        """The time of the next requests, which is another one."""
        if at // HOUR != self._hour:
            self._count_hour()
            self._hour = at // HOUR
        elif any(len(each.sizes) > HELD or len(each.times) > HELD for each in self._classes.values()):
            self._count_held()
        if at > self._latest:
            self._latest = at
        elif self._latest - at > BACKWARDS:
            self._back += 1
            self._first_back = self._first_back or (name, number, self._latest - at)
        if at < self._begin:
            self._begin = at

    def _count_hour(self) -> None:
        """Count what is held, and the minutes of the hour that has ended."""
        self._count_held()
        for seconds in self._minutes.values():
            self._concurrent.add(seconds / 60)
        self._minutes.clear()

    def _count_held(self) -> None:
        """Count in histograms, and in their hour, the requests since this was done last."""
        counts = [each.counted() for each in self._classes.values()]
        if (operations := sum(count for count, _ in counts)) > 0:
            hour = self._hour_of(self._hour)
            hour.operations += operations
            hour.bytes_out += sum(bytes_out for _, bytes_out in counts)
            hour.connections += self._opened_in_hour
            self._opened_in_hour = 0

    def _hour_of(self, number: int) -> Hour:
        hour = self._hours.get(number)
        if hour is None:
            hour = self._hours[number] = Hour(number * HOUR)
        return hour

    def _path(self, method: bytes, path: bytes, status: bytes, size: bytes) -> None:
        if method not in (b"GET", b"HEAD") or (status[:1] != b"2" and status != b"304"):
            return
        held = self.paths.setdefault((method, path.partition(b"?")[0]), [0, 0, 0])
        held[0] += 1
        if size.isdigit() and status[:1] == b"2":
            held[1] += int(size)
            held[2] += 1
        if len(self.paths) > PATHS_HELD:
            often = sorted(self.paths, key=lambda key: -self.paths[key][0])
            for key in often[PATHS_HELD // 2 :]:
                self.forgotten_paths += self.paths.pop(key)[0]

    def traffic(self) -> Traffic:
        """What all lines said."""
        connections = self._connections.found()
        self._count_hour()
        if self._known_encrypted:
            connections.encrypted = self._encrypted / self._known_encrypted
        operations = sum(each.count for each in self._classes.values())
        return Traffic(
            kind="web",
            formats=self.formats,
            files=self.files,
            lines=self.lines,
            operations=operations,
            left_out=self.left_out.found(),
            begin=self._begin if operations else 0,
            end=self._latest,
            classes=_grouped(self._classes),
            connections=connections,
            arrivals=self._arrivals(),
            hours=[self._hours[number] for number in sorted(self._hours)],
            clients=self._connections.clients.count(),
            paths=self._distinct_paths.count(),
            notes=self._notes(),
        )

    def _arrivals(self) -> Arrivals:
        busiest_hour = self._busiest_hour.arrived(self._hours.values(), self._begin, self._latest)
        return Arrivals(self._per_second.bins(), self._busiest, self._concurrent.bins(), busiest_hour)

    def _notes(self) -> list[Warning_]:
        notes = []
        if self._first_back is not None:
            name, line, seconds = self._first_back
            text = f"the clock goes backwards by more than {BACKWARDS} s in {self._back:,} places, first in {name}, line {line:,} (by {seconds:,} s)"
            notes.append(Warning_("clock-backwards", text))
        if len(self.zones) > 1:
            zones = ", ".join(sorted(self.zones))
            notes.append(
                Warning_("time-zones", f"the lines have several time zones ({zones}); all times were converted to UTC")
            )
        if "" in self.zones:
            notes.append(Warning_("no-time-zone", "times have no time zone and count as UTC, so hours may be shifted"))
        return notes


def _grouped(classes: dict[tuple[bytes, bytes], _Class]) -> list[OperationClass]:
    """The classes by method and first digit of the status; 304 and 204, which have no body, stay apart. The most frequent first."""
    groups: dict[tuple[str, str], list[_Class]] = {}
    for (method, status), held in classes.items():
        groups.setdefault((_method(method), _status(status)), []).append(held)
    found = []
    for (name, kind), members in groups.items():
        sizes, times = Histogram(), Histogram(1e-5)
        for held in members:
            sizes.merge(held.by_size)
            times.merge(held.by_time)
        found.append(
            OperationClass(
                name=f"{name} {kind}",
                count=sum(held.count for held in members),
                method=name,
                status=kind,
                bytes_out=sum(held.bytes_out for held in members),
                bytes_in=sum(held.bytes_in for held in members),
                sizes=sizes.bins(),
                times=times.bins(),
            )
        )
    return sorted(found, key=lambda each: (-each.count, each.name))


def _method(method: bytes) -> str:
    return method.decode() if method in METHODS else "other"


def _status(status: bytes) -> str:
    text = status.decode(errors="replace")
    return text if text in ("204", "304") else f"{text[:1]}xx" if text.isdigit() and len(text) == 3 else "no status"
