"""Counts the operations of each moment of the busiest hour of a log, so that a replay can send them as they came. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ciphercost.model.traffic import HOUR, Arrived, Hour, busiest

HELD = 4
"""Hours whose counts are held: lines of an hour may stand between those of the next one. The one with fewest operations goes first."""
MOST = 20_000
"""Intervals that a workload's file has at most."""
FINEST_MS = 10
ROUNDING = 1e-3
"""Of an interval: a time since 1970 is exact to less than that."""
INTERVALS_MS = (10, 20, 50, 100, 200, 500, 1000)


class BusiestHour:
    """`add` every operation, or every second's, then ask for the `counts`."""

    def __init__(self, *, fractions: bool) -> None:
        """`fractions`: whether times have fractions of seconds."""
        self._per_second = 1000 // FINEST_MS if fractions else 1
        self._held: dict[int, array[int]] = {}
        self._hour = -1
        self._now = array("I")

    def add(self, at: float, count: int) -> None:
        """So many operations came at this time, in seconds since 1970."""
        hour = int(at) // HOUR
        if hour != self._hour:
            self._begin(hour)
        self._now[int((at - hour * HOUR) * self._per_second + ROUNDING)] += count

    def _begin(self, hour: int) -> None:
        self._hour = hour
        if hour not in self._held:
            if len(self._held) >= HELD:
                del self._held[min(self._held, key=lambda held: sum(self._held[held]))]
            self._held[hour] = array("I", bytes(4 * (HOUR * self._per_second + 1)))
        self._now = self._held[hour]

    def arrived(self, hours: Iterable[Hour], begin: float, end: float) -> Arrived | None:
        """What came in the busiest of these hours. `begin`, `end`: the first and last operation's times. None: unknown."""
        hour = busiest(hours)
        return self.counts(hour.start, hour.operations, begin, end) if hour else None

    def counts(self, start: int, operations: int, begin: float, end: float) -> Arrived | None:
        """The counts of the hour that begins at `start`, from `begin` to `end`, the first and last operation's times.

        `operations`: of that hour; None is returned if other ones were counted here.
        """
        held = self._held.get(start // HOUR)
        if held is None or sum(held) != operations:
            return None
        first = int((max(begin, start) - start) * self._per_second + ROUNDING)
        last = int((min(end, start + HOUR) - start) * self._per_second + ROUNDING) + 1
        last = min(last, HOUR * self._per_second)
        finest = 1000 // self._per_second
        whole = self._per_second == 1 or not any(held[at] for at in range(len(held)) if at % self._per_second)
        interval = next(each for each in INTERVALS_MS if each >= finest and (last - first) * finest <= MOST * each)
        interval = 1000 if whole else interval
        step = interval // finest
        first -= first % step
        return Arrived(interval, tuple(sum(held[at : at + step]) for at in range(first, max(last, first + 1), step)))
