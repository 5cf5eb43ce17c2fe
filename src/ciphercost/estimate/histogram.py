"""Reads HdrHistogram V2 (compressed, base64) into sparse counts, and computes quantiles. Pure; numpy only.

The reference library (`hdrh`) holds a dense array of 270 kB for each histogram; a slice fills a few hundred to a few
thousand of its cells. Pairs (index, count) are smaller and faster; tests compare them with `hdrh` cell by cell.
"""

from __future__ import annotations

import binascii
import math
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

COMPRESSED_COOKIE = 0x1C849304
ENCODING_COOKIE = 0x1C849303
HEADER = struct.Struct(">IIIIQQd")
"""Cookie, payload length, normalizing offset, significant digits, lowest and highest value, conversion ratio."""


class Layout(NamedTuple):
    """How an index maps to a value: one by one below 2^half·2, then in octaves of 2^half cells each."""

    unit: int
    """Magnitude (log2) of the smallest step."""
    half: int
    """Magnitude (log2) of half a sub-bucket count; 10 for three significant digits."""


class Histogram(NamedTuple):
    """Counts of the non-empty cells in increasing order of index; an index may occur more than once."""

    layout: Layout
    indices: Ints
    counts: Ints

    @property
    def total(self) -> int:
        return int(self.counts.sum())


def decode(text: str | bytes) -> Histogram:
    """A histogram from its text. Raises ValueError if it is not a compressed V2 histogram."""
    try:
        raw = binascii.a2b_base64(text)
        cookie, length = struct.unpack_from(">II", raw)
        if cookie & ~0xF0 != COMPRESSED_COOKIE or length != len(raw) - 8:
            raise ValueError("not a compressed HdrHistogram V2")
        payload = zlib.decompress(raw[8:])
        cookie, length, _, digits, lowest, _, _ = HEADER.unpack_from(payload)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not a compressed HdrHistogram V2: {error}") from None
    if cookie & ~0xF0 != ENCODING_COOKIE or length > len(payload) - HEADER.size or not 1 <= digits <= 5 or lowest < 1:
        raise ValueError("not an HdrHistogram V2 payload")
    layout = Layout(int(math.log2(lowest)), math.ceil(math.log2(2 * 10**digits)) - 1)
    words = _zigzag_leb128(np.frombuffer(payload, np.uint8, length, HEADER.size))
    # A positive word is the count of one cell, a negative one a run of empty cells.
    filled = np.flatnonzero(words > 0)
    steps = np.maximum(-words, 1)
    indices = np.cumsum(steps) - 1
    return Histogram(layout, indices[filled], words[filled])


def _zigzag_leb128(data: NDArray[np.uint8]) -> Ints:
    """All numbers of a ZigZag LEB128 byte string (seven bits per byte, least significant first, at most nine bytes)."""
    if len(data) == 0:
        return np.empty(0, np.int64)
    if data[-1] >= 0x80:
        raise ValueError("HdrHistogram cut off in the middle of a number")
    ends = np.flatnonzero(data < 0x80)
    words = data[ends].astype(np.int64)
    if len(ends) < len(data):
        lengths = np.diff(ends, prepend=-1)
        # Nearly all numbers are one byte long: only the others are put together, from their last byte to their first.
        longer = np.flatnonzero(lengths > 1)
        for back in range(1, int(lengths.max())):
            if back > 8:
                raise ValueError("HdrHistogram with a number of more than nine bytes")
            longer = longer[lengths[longer] > back]
            words[longer] = (words[longer] << 7) | (data[ends[longer] - back] & 0x7F)
    return (words >> 1) ^ -(words & 1)


def merge(histograms: Sequence[Histogram]) -> Histogram:
    """One histogram of all counts. Raises ValueError for none, or if layouts differ."""
    layout = histograms[0].layout if histograms else None
    if layout is None or any(h.layout != layout for h in histograms):
        raise ValueError("only histograms of one layout can be merged")
    indices = np.concatenate([h.indices for h in histograms])
    order = np.argsort(indices, kind="stable")
    return Histogram(layout, indices[order], np.concatenate([h.counts for h in histograms])[order])


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
