"""Counts values in a histogram of bounded size: bins of a fixed relative width, each with the sum of its values. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from ciphercost.model.traffic import Bin

PER_OCTAVE = 128
"""Bins per factor of two: a bin is 0.54 % wide, so no quantile is further off."""
EXACT = 256
"""Whole numbers up to this one have bins of their own."""


class Histogram:
    """Values of 0 or more. A bin's value is the mean of what was counted in it, so totals stay exact."""

    def __init__(self, unit: float = 1.0) -> None:
        """`unit`: the smallest value that matters."""
        self._unit = unit
        self._bins: dict[int, list[float]] = {}

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> Histogram:
        """A histogram of values, each with how often it came."""
        histogram = cls()
        histogram.add_all(counts.items())
        return histogram

    def add(self, value: float, count: int = 1) -> None:
        self.add_all(((value, count),))

    def add_all(self, counted: Iterable[tuple[float, int]]) -> None:
        """Add many values, each with how often it came."""
        unit, bins, log2 = self._unit, self._bins, math.log2
        for value, count in counted:
            scaled = value / unit
            at = int(scaled) if scaled < EXACT else EXACT + int(PER_OCTAVE * log2(scaled / EXACT))
            held = bins.get(at)
            if held is None:
                bins[at] = [value * count, count]
            else:
                held[0] += value * count
                held[1] += count

    def merge(self, other: Histogram) -> None:
        """Add what another histogram of the same unit has counted."""
        for at, (total, count) in other._bins.items():
            held = self._bins.setdefault(at, [0.0, 0])
            held[0] += total
            held[1] += count

    def bins(self) -> list[Bin]:
        return [Bin(total / count, int(count)) for _, (total, count) in sorted(self._bins.items())]


def fewer(bins: Iterable[Bin], most: int) -> list[Bin]:
    """At most so many bins: neighbours are merged that differ least for what they hold, so that count and sum stay as they are."""
    merged = list(bins)
    while len(merged) > most:
        costs = [_cost(low, high) for low, high in pairwise(merged)]
        # Many at once, none next to another: one by one would take long for thousands.
        limit = sorted(costs)[max(0, min(len(merged) - most, len(costs)) // 4)]
        rest: list[Bin] = []
        at = 0
        left = len(merged) - most
        while at < len(merged):
            if left and at < len(costs) and costs[at] <= limit:
                rest.append(_merged(merged[at], merged[at + 1]))
                at, left = at + 2, left - 1
            else:
                rest.append(merged[at])
                at += 1
        merged = rest
    return merged


def _cost(low: Bin, high: Bin) -> float:
    """By how much merging moves values, in relation to their size: the weighted sum of squared differences of logarithms."""
    apart = math.log((high.value + 1) / (low.value + 1))
    return apart**2 * low.count * high.count / (low.count + high.count)


def _merged(low: Bin, high: Bin) -> Bin:
    count = low.count + high.count
    return Bin((low.value * low.count + high.value * high.count) / count, count)
