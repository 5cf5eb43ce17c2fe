"""clock: how far a node's clock is from the controller's, by NTP's method. Pure.

All times are seconds of CLOCK_MONOTONIC, which no time service sets back. Processes of one machine share it; the clocks of
two machines differ by days, and the offset is measured again and again, since they do not run at exactly the same speed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec


class Sample(msgspec.Struct, frozen=True):
    """One question to a node: when it was sent and its answer received here, and what the node's clock showed between."""

    sent: float
    seen: float
    received: float

    @property
    def round_trip(self) -> float:
        return self.received - self.sent

    @property
    def offset(self) -> float:
        """The node's clock − ours, if both ways took as long."""
        return self.seen - (self.sent + self.received) / 2


class Offset(msgspec.Struct, frozen=True):
    """A node's clock − the controller's, in seconds. The truth is at most `error` away, however the round trip divides."""

    seconds: float = 0.0
    error: float = 0.0

    def there(self, here: float) -> float:
        """The node's reading at a moment of the controller's clock."""
        return here + self.seconds

    def here(self, there: float) -> float:
        """The controller's reading at a moment of the node's clock."""
        return there - self.seconds


SHARED = Offset()
"""Of a node on the controller's own machine."""


def offset(samples: Iterable[Sample]) -> Offset:
    """The offset by the sample with the shortest round trip. Raises ValueError without samples, or if time ran backwards."""
    best = min(samples, key=lambda sample: sample.round_trip)
    if best.round_trip < 0:
        raise ValueError("an answer was received before its question was sent")
    return Offset(best.offset, best.round_trip / 2)


def now() -> float:
    """CLOCK_MONOTONIC, in seconds."""
    return time.monotonic()
