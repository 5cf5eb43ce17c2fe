"""Waits of a fixed length in an arm's operations, as its latencies show them. Pure.

A server that writes the header and the body of an answer apart, without TCP_NODELAY, sends the body only when the client has acknowledged the
header (Nagle's algorithm, RFC 896), and the client acknowledges a lone segment after 40 ms on Linux (TCP_DELACK_MIN). Then nearly every operation takes 40 to
48 ms in which nobody works. Work takes as long as there is work, so its times are spread; a timer's are in a narrow band.
"""

from __future__ import annotations

import numpy as np

from ciphercost.estimate.histogram import Total, bounds
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, decode
from ciphercost.model.result import Wait
from ciphercost.model.slices import SliceRecord

SHORTEST = 15e6
"""Shortest wait that is looked for, ns. Shorter ones can't be told from a disk or from a process that waits for a core."""
BAND = 1.2
"""Highest ÷ lowest latency of operations with the same wait: the kernel's timers have ticks of 4 ms."""
MUCH = 0.5
"""Share of an arm's time that must be in that band."""
ENOUGH = 10
"""Operations that must be in it."""
MOST_SLICES = 400
"""Slices of each arm that are read. A wait that is not in these is no property of the server, and decoding takes time."""


class Waits:
    """The latencies of one arm's slices, for a first look: at most MOST_SLICES of them."""

    def __init__(self) -> None:
        self._total = Total()
        self._slices = 0

    def add(self, record: SliceRecord) -> None:
        """Add a slice's latencies. Raises UsageError if they are damaged."""
        if self._slices >= MOST_SLICES or record.agent is None or not record.agent.histogram:
            return
        self._slices += 1
        try:
            self._total.add(decode(record.agent.histogram))
        except ValueError as error:
            raise UsageError(f"{checked.place(record)}: {error}") from None

    def fixed_wait(self) -> Wait | None:
        """The fixed wait in which this arm spends most of its time; None: there is none."""
        return wait(self._total.histogram())


def wait(histogram: Histogram) -> Wait | None:
    """The fixed wait of SHORTEST or longer in which operations spend MUCH of their time; None: there is none."""
    if len(histogram.counts) == 0:
        return None
    low, high = bounds(histogram.layout, histogram.indices)
    values = (low + high) / 2
    times = values * histogram.counts
    ends = np.searchsorted(values, values * BAND, side="right")
    reached = np.concatenate([[0.0], np.cumsum(times)])
    inside = np.where(values >= SHORTEST, reached[ends] - reached[:-1], 0.0)
    start = int(np.argmax(inside))
    end = int(ends[start])
    counts = histogram.counts[start:end]
    share = float(inside[start] / times.sum())
    if share < MUCH or counts.sum() < ENOUGH:
        return None
    middle = float(values[start:end][np.searchsorted(np.cumsum(counts), counts.sum() / 2)])
    return Wait(middle / 1e6, share, float(counts.sum() / histogram.counts.sum()))
