"""Quantiles of histograms, and sums of many of them. Pure; `model.histogram` reads and writes their text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ciphercost.model.histogram import Histogram, Ints, Layout

Floats = NDArray[np.float64]


def bounds(layout: Layout, indices: Ints) -> tuple[Ints, Ints]:
    """Lowest value of each cell, and the lowest value above it."""
    octave = (indices >> layout.half) - 1
    below = octave < 0
    octave = np.where(below, 0, octave)
    sub = (indices & ((1 << layout.half) - 1)) + np.where(below, 0, 1 << layout.half)
    shift = octave + layout.unit
    return sub << shift, (sub + 1) << shift


def quantiles(histogram: Histogram, shares: Sequence[float]) -> Floats:
    """Values at the given shares (0 to 1), in the histogram's unit; interpolated within a cell; NaN if it is empty.

    Without interpolation a ratio of two medians could only move in steps of one cell, 0.1 %.
    """
    if len(histogram.counts) == 0:
        return np.full(len(shares), np.nan)
    reached = np.cumsum(histogram.counts)
    wanted = np.asarray(shares) * reached[-1]
    # A cell that stands twice is passed through in two parts; both have the same bounds, which moves a value by less
    # than a cell.
    cell = np.minimum(np.searchsorted(reached, wanted, side="left"), len(reached) - 1)
    low, high = bounds(histogram.layout, histogram.indices[cell])
    before = reached[cell] - histogram.counts[cell]
    inside = np.clip((wanted - before) / histogram.counts[cell], 0.0, 1.0)
    values: Floats = low + inside * (high - low)
    return values


def above(histogram: Histogram, value: float) -> float:
    """Number of values above one, in the histogram's unit; interpolated within its cell."""
    low, high = bounds(histogram.layout, histogram.indices)
    return float(np.clip((high - value) / (high - low), 0.0, 1.0) @ histogram.counts)


class Total:
    """All histograms of an arm, added up in one dense array."""

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self._counts: Ints = np.zeros(0, np.int64)

    def add(self, histogram: Histogram) -> None:
        """Add a histogram. Raises ValueError if its layout differs from the others'."""
        if self.layout not in (None, histogram.layout):
            raise ValueError("only histograms of one layout can be merged")
        self.layout = histogram.layout
        if len(histogram.indices) == 0:
            return
        need = int(histogram.indices[-1]) + 1
        if need > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(need - len(self._counts), np.int64)])
        np.add.at(self._counts, histogram.indices, histogram.counts)

    def histogram(self) -> Histogram:
        indices = np.flatnonzero(self._counts)
        return Histogram(self.layout or Layout(0, 10), indices, self._counts[indices])
