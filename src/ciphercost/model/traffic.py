"""What was found in a server's logs, and what a workload made from them keeps of it. No logic but sums over the numbers."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Share
from ciphercost.model.result import Warning_

Kind = Literal["web", "sql"]
"""The language of the logged operations: requests of a web server, or SQL statements."""


class Bin(msgspec.Struct, array_like=True, frozen=True):
    """How often a value was seen. A histogram is a list of bins with ascending values."""

    value: Amount
    """The mean of the values that were counted."""
    count: Count


class OperationClass(msgspec.Struct, omit_defaults=True):
    """Operations that are alike: requests of one method and kind of answer, or statements of one shape."""

    name: str
    """As people see it: `GET 2xx`. Holds no path, literal or name of the user's."""
    count: Count
    method: str = ""
    """GET, POST; SELECT, INSERT."""
    status: str = ""
    """Of a request: 2xx, 304, 4xx …; of a statement: empty, or `error`."""
    bytes_out: Count = 0
    """Bytes of all their answers."""
    bytes_in: Count = 0
    """Bytes of all the requests, if logged."""
    sizes: list[Bin] = []
    """Bytes of an answer. Empty: not logged."""
    times: list[Bin] = []
    """Seconds that the server took. Empty: not logged."""


class LeftOut(msgspec.Struct):
    """Lines of a log that count for nothing, for one reason."""

    reason: str
    lines: Count
    file: str
    """The file in which the first of them is, without its folders."""
    line: Count
    """The line of that file."""


class Connections(msgspec.Struct, omit_defaults=True):
    """How operations share connections."""

    basis: Literal["logged", "estimate", "unknown"] = "unknown"
    how: str = ""
    """What it was counted from, for people."""
    lengths: list[Bin] = []
    """Operations that one connection carried, and how many connections did."""
    resumed: Share | None = None
    """Share of the connections that resumed an earlier session. None: not logged."""
    encrypted: Share | None = None
    """Share of the operations that were encrypted. None: not logged."""
    idle: list[Bin] = []
    """Seconds between two operations of a connection."""

    @property
    def opened(self) -> int:
        return total(self.lengths)

    @property
    def per_connection(self) -> float:
        """Operations of a connection on average; 0: unknown."""
        return mean(self.lengths)


class Arrived(msgspec.Struct, frozen=True):
    """How many operations came in each interval of a period. A replay repeats it."""

    interval_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)]
    counts: tuple[Count, ...]

    @property
    def seconds(self) -> float:
        return len(self.counts) * self.interval_ms / 1e3

    @property
    def rate(self) -> float:
        """Operations per second on average."""
        return sum(self.counts) / self.seconds if self.counts else 0.0


class Arrivals(msgspec.Struct, omit_defaults=True):
    """When operations came."""

    per_second: list[Bin] = []
    """Operations in one second, and in how many seconds there were so many; seconds without any are left out."""
    busiest_second: Count = 0
    """Operations in the busiest second."""
    concurrent: list[Bin] = []
    """Operations in progress at once on average in a minute, and the number of such minutes. Empty: times are not logged."""
    busiest_hour: Arrived | None = None
    """In the part of the busiest hour that the logs cover. None: unknown, as where the clock went back and forth between hours."""


HOUR = 3600
"""Seconds."""


class Hour(msgspec.Struct, array_like=True):
    """What came in one hour. Hours without operations and statements are left out."""

    start: Count
    """Seconds since 1970 at its beginning."""
    operations: Count = 0
    bytes_out: Count = 0
    connections: Amount = 0.0
    """New connections, if known. An estimate where `Connections.basis` is one."""
    seconds: Amount = 0.0
    """Time that the server took for all of them, if logged."""
    statements: Count = 0
    """Of a database's log: statements of all kinds, with those of transactions and those that a replay leaves out. 0: not counted."""


class Traffic(msgspec.Struct, omit_defaults=True):
    """What was found in the logs."""

    kind: Kind
    formats: list[str]
    """Names of the logs' formats."""
    files: Count = 1
    lines: Count = 0
    """Lines read, with those that were left out."""
    operations: Count = 0
    left_out: list[LeftOut] = []
    begin: Amount = 0.0
    """Seconds since 1970 of the first operation."""
    end: Amount = 0.0
    classes: list[OperationClass] = []
    connections: Connections = msgspec.field(default_factory=Connections)
    arrivals: Arrivals = msgspec.field(default_factory=Arrivals)
    hours: list[Hour] = []
    clients: Count = 0
    """Different addresses, about; 0: not counted."""
    paths: Count = 0
    """Different paths or statements, about; 0: not counted."""
    notes: list[Warning_] = []
    """What a reader should know: mixed time zones, a clock that went backwards, an estimate."""

    @property
    def seconds(self) -> float:
        """Length of the period."""
        return self.end - self.begin

    @property
    def bytes_out(self) -> int:
        return sum(each.bytes_out for each in self.classes)

    @property
    def busiest(self) -> Hour | None:
        """The hour with most operations."""
        return busiest(self.hours)

    @property
    def busiest_rate(self) -> float:
        """Operations per second in the part of the busiest hour that the logs cover; 0: there are none."""
        if (hour := self.busiest) is None:
            return 0.0
        return hour.operations / self.covered(hour)

    @property
    def resolution(self) -> float:
        """Seconds by which the last operation may be later than its time: 1 for logs whose times are whole seconds."""
        return 1.0 if self.begin == int(self.begin) and self.end == int(self.end) else 0.0

    def covered(self, hour: Hour) -> float:
        """Seconds of an hour that the logs cover, at least 1."""
        return max(1.0, min(self.end + self.resolution, hour.start + HOUR) - max(self.begin, hour.start))


def busiest(hours: Iterable[Hour]) -> Hour | None:
    """The hour with most operations."""
    return max(hours, key=lambda hour: hour.operations, default=None)


def total(bins: Iterable[Bin]) -> int:
    return sum(each.count for each in bins)


def mean(bins: Sequence[Bin]) -> float:
    """The mean of the counted values; 0 if there are none."""
    count = total(bins)
    return sum(each.value * each.count for each in bins) / count if count else 0.0


def quantile(bins: Sequence[Bin], share: float) -> float:
    """The value below or at which this share of the counted values lies; 0 if there are none. Bins ascend."""
    if not bins:
        return 0.0
    sums = list(accumulate(each.count for each in bins))
    return bins[min(len(bins) - 1, bisect.bisect_left(sums, share * sums[-1]))].value
