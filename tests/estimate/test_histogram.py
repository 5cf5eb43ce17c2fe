"""Histograms are decoded like the reference library does."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import histogram
from ciphercost.model import histogram as codec

HIGHEST = 3_600_000_000_000
values = st.lists(st.tuples(st.integers(1, HIGHEST), st.integers(1, 2**40)), max_size=60)


def reference(pairs: list[tuple[int, int]], lowest: int = 1, digits: int = 3) -> HdrHistogram:
    hdr = HdrHistogram(lowest, HIGHEST, digits)
    for value, count in pairs:
        hdr.record_value(value, count)
    return hdr


@given(values)
def test_every_cell_is_decoded_as_the_reference_library_decodes_it(pairs: list[tuple[int, int]]) -> None:
    hdr = reference(pairs)
    decoded = codec.decode(hdr.encode())
    dense = np.array(hdr.encoder.get_counts())
    assert decoded.indices.tolist() == np.flatnonzero(dense).tolist()
    assert decoded.counts.tolist() == dense[decoded.indices].tolist()
    assert decoded.total == hdr.get_total_count()


@given(
    values.filter(bool),
    st.sampled_from([0.1, 0.5, 0.9, 0.99, 0.999, 1.0]),
    st.sampled_from([(1, 3), (1000, 3), (1, 2)]),
)
def test_a_quantile_is_in_the_same_cell_as_the_reference_librarys(
    pairs: list[tuple[int, int]], share: float, shape: tuple[int, int]
) -> None:
    lowest, digits = shape
    pairs = [(max(value, lowest), count % 1000 + 1) for value, count in pairs]
    hdr = reference(pairs, lowest, digits)
    quantile = float(histogram.quantiles(codec.decode(hdr.encode()), [share])[0])
    named = [hdr.get_value_at_percentile(100 * share * nudge) for nudge in (1 - 1e-9, 1.0)]
    low = hdr.get_lowest_equivalent_value(min(named))
    high = hdr.get_highest_equivalent_value(max(named)) + 1
    # The reference rounds the rank to an integer, so the next cell may be correct too.
    ranks = np.array([count for _, count in sorted(pairs)]).cumsum()
    edge = np.abs(ranks - share * ranks[-1]).min() <= 1
    assert low <= quantile <= high or edge


@given(values, values)
def test_merged_histograms_have_the_counts_of_both(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    parts = [codec.decode(reference(pairs).encode()) for pairs in (one, two)]
    whole = codec.decode(reference(one + two).encode())
    total = histogram.Total()
    for part in parts:
        total.add(part)
    summed = total.histogram()
    assert summed.indices.tolist() == whole.indices.tolist()
    assert summed.counts.tolist() == whole.counts.tolist()
    assert codec.merge(parts).total == whole.total


def test_a_median_is_interpolated_within_its_cell_so_that_ratios_do_not_move_in_steps() -> None:
    decoded = codec.decode(reference([(1_000_000, 100)]).encode())
    low, high = histogram.bounds(decoded.layout, decoded.indices)
    assert np.allclose(histogram.quantiles(decoded, [0.25, 0.75]), low[0] + np.array([0.25, 0.75]) * (high[0] - low[0]))


def test_an_empty_histogram_has_no_quantiles() -> None:
    assert np.isnan(histogram.quantiles(codec.decode(reference([]).encode()), [0.5])).all()


def cut(text: bytes) -> bytes:
    """The same histogram with its last number cut off in the middle."""
    raw = base64.b64decode(text)
    payload = bytearray(zlib.decompress(raw[8:]))
    payload[-1] |= 0x80
    packed = zlib.compress(bytes(payload))
    return base64.b64encode(raw[:4] + len(packed).to_bytes(4, "big") + packed)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HISTF",
        b"no base64 at all!",
        b"AAAABBBBCCCC",
        base64.b64encode(b"\x1c\x84\x93\x14\0\0\0\4abcd"),
        cut(reference([(5, 9)]).encode()),
    ],
)
def test_text_that_is_not_a_histogram_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="HdrHistogram"):
        codec.decode(text)


def test_histograms_of_different_layouts_are_never_added() -> None:
    fine, coarse = (codec.decode(reference([(5, 9)], digits=digits).encode()) for digits in (3, 2))
    total = histogram.Total()
    total.add(fine)
    with pytest.raises(ValueError, match="layout"):
        total.add(coarse)
    with pytest.raises(ValueError, match="layout"):
        codec.merge([fine, coarse])
