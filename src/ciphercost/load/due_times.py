"""When the operations of a slice are due if they come as they came in a log. Pure."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Literal

from ciphercost.model.slices import Arrivals
from ciphercost.model.traffic import Arrived

Spacing = Literal["even", "random"]
TRIES = 50
"""Moments of the log that are tried until a slice has an operation to count."""


def of(
    arrived: Arrived | None, arrivals: Arrivals, rate: float, seconds: float, seed: int, discard: float
) -> tuple[Spacing, str | None]:
    """What an agent is told: how operations are spaced, and if they come as in a log, the microseconds between them."""
    if arrivals != "logged":
        return arrivals, None
    if arrived is None or not rate:
        return "random", None
    times = due_us(arrived, rate, seconds, seed, discard)
    return "even", " ".join(str(time - before) for before, time in pairwise((0, *times)))


def due_us(arrived: Arrived, rate: float, seconds: float, seed: int, discard: float = 0.0) -> list[int]:
    """Microseconds after a slice's start, ascending. The same arguments give the same times.

    The slice begins at a moment of the log drawn from `seed`; after the log's end comes its beginning. The log's time runs so fast that `rate`
    operations come per second on average. Within an interval of the log they come at random. If none is due after `discard`, the share of the
    slice that does not count, the slice begins where one is.
    """
    draw = random.Random(seed)  # noqa: S311 - nothing secret
    interval = arrived.interval_ms / 1e3 * arrived.rate / rate
    found = _window(arrived, interval, seconds, draw.random() * len(arrived.counts), draw)
    tries = 0
    while tries < TRIES and (not found or found[-1] < discard * seconds * 1e6):
        (busy,) = draw.choices(range(len(arrived.counts)), arrived.counts)
        before = draw.uniform(discard, 1.0) * seconds / interval
        found = _window(arrived, interval, seconds, (busy + draw.random() - before) % len(arrived.counts), draw)
        tries += 1
    return found


def _window(arrived: Arrived, interval: float, seconds: float, begin: float, draw: random.Random) -> list[int]:
    """The operations from `begin` on, in intervals of the log. `interval`: how long one takes in the slice, seconds."""
    counts = arrived.counts
    number = int(begin)
    at = (number - begin) * interval
    found: list[int] = []
    while at < seconds:
        times = sorted(at + draw.random() * interval for _ in range(counts[number % len(counts)]))
        found += [int(time * 1e6) for time in times if 0 <= time < seconds]
        number += 1
        at += interval
    return found
