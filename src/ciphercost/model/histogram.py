"""Reads and writes HdrHistogram V2 (compressed, base64) as sparse counts, and adds histograms cell by cell. Pure; numpy only.

The reference library (`hdrh`) holds a dense array of 270 kB for each histogram; a slice fills a few hundred to a few
thousand of its cells. Pairs (index, count) are smaller and faster; tests compare them with `hdrh` cell by cell.
"""

from __future__ import annotations

import binascii
import functools
import math
import struct
import threading
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

COMPRESSED_COOKIE = 0x1C849304
ENCODING_COOKIE = 0x1C849303
SIGNED = [(byte >> 1) ^ -(byte & 1) for byte in range(128)]
"""Numbers of one byte: positive ones are the count of a cell, negative ones a run of empty cells."""
MORE = bytes(range(128, 256))
"""Bytes of a number that are not its last."""
NUMBERS = bytes(number & 0xFF for number in SIGNED) + MORE
STEPS = bytes(max(-number, 1) for number in SIGNED) + MORE
COUNTS = bytes(max(number, 0) for number in SIGNED) + MORE
"""Tables for bytes.translate, which is faster than numpy's lookup: a number, by how many cells it goes on, and what it counts."""
TOGETHER = 1 << 16
"""Bytes of numbers that are decoded together: enough to spread numpy's fixed costs, few enough to stay in the cache."""
EXACT = 2**53
"""Below this a float represents every whole number."""
PREFIX = struct.Struct(">II")
"""Cookie and length of what follows, compressed."""
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
    layout, payload = _payload(text)
    words = _zigzag_leb128(payload)
    # A positive word is the count of one cell, a negative one a run of empty cells.
    filled = np.flatnonzero(words > 0)
    steps = np.maximum(-words, 1)
    indices = np.cumsum(steps) - 1
    return Histogram(layout, indices[filled], words[filled])


def decode_sum(texts: Sequence[str | bytes]) -> Histogram:
    """One histogram of all counts, with every cell once: as `summed` of `decode`, in a fifth of the time for many texts.

    Raises ValueError for none, if one is not a compressed V2 histogram, or if layouts differ.
    """
    parts = [_payload(text) for text in texts]
    layouts = {layout for layout, _ in parts}
    if len(layouts) != 1:
        raise ValueError("only histograms of one layout can be merged")
    dense = np.zeros(0, np.int64)
    group: list[bytes] = []
    size = 0
    for _, payload in parts:
        if payload[-1:] >= b"\x80":
            raise ValueError("HdrHistogram cut off in the middle of a number")
        if payload:
            group.append(payload)
            size += len(payload)
        if size > TOGETHER:
            dense, group, size = _added(dense, _dense(group)), [], 0
    if group:
        dense = _added(dense, _dense(group))
    cells = np.flatnonzero(dense)
    return Histogram(layouts.pop(), cells, dense[cells])


def _added(one: Ints, other: Ints) -> Ints:
    """The sum of two arrays of counts. May change the longer one."""
    short, long = sorted((one, other), key=len)
    long[: len(short)] += short
    return long


class _Tables(threading.local):
    """Two arrays of a thread that are used again and again: fresh memory costs more than what is computed in it."""

    def __init__(self) -> None:
        self._steps, self._counts = np.empty(0, np.int64), np.empty(0, np.float64)

    def of(self, length: int) -> tuple[Ints, NDArray[np.float64]]:
        """Both, of this length, with any content; valid until the next call."""
        if length > len(self._steps):
            self._steps, self._counts = np.empty(length, np.int64), np.empty(length, np.float64)
        return self._steps[:length], self._counts[:length]


_tables = _Tables()


def _dense(payloads: Sequence[bytes]) -> Ints:
    """Counts by cell of all these numbers together; each payload counts its cells from 0."""
    data = b"".join(payloads)
    more, longer, values = _longer(data)
    # Runs of empty cells count nothing; that is faster than taking them out.
    steps, counts = _tables.of(len(data) - len(more))
    steps[:] = np.frombuffer(data.translate(STEPS, MORE), np.uint8)
    counts[:] = np.frombuffer(data.translate(COUNTS, MORE), np.uint8)
    counted = np.maximum(values, 0)
    steps[longer], counts[longer] = np.maximum(-values, 1), counted
    # Back to cell 0 where a payload begins.
    begins = np.cumsum([0, *map(len, payloads[:-1])])
    begins -= np.searchsorted(more, begins)
    lengths = np.add.reduceat(steps, begins)
    steps[begins[1:]] -= lengths[:-1]
    steps[0] -= 1
    cells = np.cumsum(steps, out=steps)
    if max(SIGNED) * len(counts) + sum(counted.tolist()) < EXACT:
        return np.bincount(cells, weights=counts).astype(np.int64)
    dense = np.zeros(int(cells.max()) + 1, np.int64)
    exact = np.frombuffer(data.translate(COUNTS, MORE), np.uint8).astype(np.int64)
    exact[longer] = counted
    np.add.at(dense, cells, exact)
    return dense


def _payload(text: str | bytes) -> tuple[Layout, bytes]:
    """The layout of a histogram, and its numbers as bytes. Raises ValueError."""
    try:
        raw = binascii.a2b_base64(text)
        cookie, length = PREFIX.unpack_from(raw)
        if cookie & ~0xF0 != COMPRESSED_COOKIE or length != len(raw) - PREFIX.size:
            raise ValueError("not a compressed HdrHistogram V2")
        payload = zlib.decompress(memoryview(raw)[PREFIX.size :])
        cookie, length, _, digits, lowest, _, _ = HEADER.unpack_from(payload)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not a compressed HdrHistogram V2: {error}") from None
    if cookie & ~0xF0 != ENCODING_COOKIE or length > len(payload) - HEADER.size or not 1 <= digits <= 5 or lowest < 1:
        raise ValueError("not an HdrHistogram V2 payload")
    return _layout(digits, lowest), payload[HEADER.size : HEADER.size + length]


@functools.lru_cache(64)
def _layout(digits: int, lowest: int) -> Layout:
    return Layout(int(math.log2(lowest)), math.ceil(math.log2(2 * 10**digits)) - 1)


def _zigzag_leb128(data: bytes) -> Ints:
    """All numbers of a ZigZag LEB128 byte string (seven bits per byte, least significant first, at most nine bytes)."""
    if data[-1:] >= b"\x80":
        raise ValueError("HdrHistogram cut off in the middle of a number")
    _, longer, values = _longer(data)
    words = np.frombuffer(data.translate(NUMBERS, MORE), np.int8).astype(np.int64)
    words[longer] = values
    return words


def _longer(data: bytes) -> tuple[Ints, Ints, Ints]:
    """Where bytes are that are not the last of their number, which numbers these are, and the values of those numbers.

    Nearly all numbers are one byte long. `data` must end with the last byte of a number.
    """
    octets = np.frombuffer(data, np.uint8)
    more = np.flatnonzero(octets >= 0x80)
    if not len(more):
        return more, more, more
    numbers = more - np.arange(len(more))
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    longer, lengths = numbers[first], np.diff(first, append=len(more))
    if lengths.max() > 8:
        raise ValueError("HdrHistogram with a number of more than nine bytes")
    final = more[first + lengths - 1]
    # From their last byte to their first.
    words = octets[final + 1].astype(np.int64)
    for back in range(int(lengths.max())):
        open_ = np.flatnonzero(lengths > back)
        words[open_] = (words[open_] << 7) | (octets[final[open_] - back] & 0x7F)
    return more, longer, (words >> 1) ^ -(words & 1)


def merge(histograms: Sequence[Histogram]) -> Histogram:
    """One histogram of all counts. Raises ValueError for none, or if layouts differ."""
    layout = histograms[0].layout if histograms else None
    if layout is None or any(h.layout != layout for h in histograms):
        raise ValueError("only histograms of one layout can be merged")
    indices = np.concatenate([h.indices for h in histograms])
    order = np.argsort(indices, kind="stable")
    return Histogram(layout, indices[order], np.concatenate([h.counts for h in histograms])[order])


def summed(histograms: Sequence[Histogram]) -> Histogram:
    """As `merge`, with every cell once. Raises ValueError for none, or if layouts differ."""
    joined = merge(histograms)
    if len(joined.indices) == 0:
        return joined
    first = np.flatnonzero(np.diff(joined.indices, prepend=-1))
    return Histogram(joined.layout, joined.indices[first], np.add.reduceat(joined.counts, first))


HIGHEST = 3_600_000_000_000
"""Highest value that an agent's histogram records: one hour in nanoseconds."""


def encode(histogram: Histogram, highest: int = HIGHEST) -> str:
    """The histogram's text, as the reference library writes it. Raises ValueError for a cell that occurs twice."""
    indices, counts = histogram.indices, histogram.counts
    if np.any(np.diff(indices) <= 0):
        raise ValueError("a histogram is written with every cell once, in increasing order")
    empty = np.diff(indices, prepend=-1) - 1
    # A run of empty cells is written as its negative length.
    words = np.empty(2 * len(indices), np.int64)
    words[0::2], words[1::2] = -empty, counts
    kept = np.ones(len(words), bool)
    kept[0::2] = empty > 0
    body = _to_zigzag_leb128(words[kept])
    digits = int(math.log10(1 << histogram.layout.half))
    header = HEADER.pack(ENCODING_COOKIE | 0x10, len(body), 0, digits, 1 << histogram.layout.unit, highest, 1.0)
    packed = zlib.compress(header + body)
    return binascii.b2a_base64(PREFIX.pack(COMPRESSED_COOKIE | 0x10, len(packed)) + packed, newline=False).decode()


def _to_zigzag_leb128(words: Ints) -> bytes:
    """Numbers as a ZigZag LEB128 byte string; see `_zigzag_leb128`."""
    left = ((words << 1) ^ (words >> 63)).astype(np.uint64)
    columns = []
    while True:
        columns.append((left & np.uint64(0x7F)).astype(np.uint8))
        left = left >> np.uint64(7)
        if not left.any():
            break
    table = np.stack(columns, axis=1)
    # Each number ends with its last group that is not 0; every group before it has the high bit.
    last = np.where(table.any(axis=1), table.shape[1] - 1 - np.argmax(table[:, ::-1] != 0, axis=1), 0)
    place = np.arange(table.shape[1])
    table |= np.where(place < last[:, None], 0x80, 0).astype(np.uint8)
    return bytes(table[place <= last[:, None]].tobytes())
