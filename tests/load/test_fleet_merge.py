"""Clocks of nodes, and answers of several agents made into one."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load.fleet import clock, fleet, merge
from ciphercost.model import histogram
from ciphercost.model.slices import AgentSlice

HIGHEST = histogram.HIGHEST
values = st.lists(st.tuples(st.integers(1, HIGHEST), st.integers(1, 2**40)), max_size=40)


def reference(pairs: list[tuple[int, int]]) -> HdrHistogram:
    filled = HdrHistogram(1, HIGHEST, 3)
    for value, count in pairs:
        filled.record_value(value, count)
    return filled


def answer(pairs: list[tuple[int, int]], **fields: object) -> AgentSlice:
    done = sum(count for _, count in pairs)
    usual: dict[str, object] = {
        "arm": "plain", "seconds": 0.4, "operations": done, "errors": 0, "rows": done, "checksum": "00000000000000ff",
        "cpu_user_ns": 5, "cpu_system_ns": 3, "bytes_sent": 100, "bytes_received": 200, "segments_sent": 1,
        "segments_received": 2, "connects": 4, "resumed": 1, "late": 0, "threads": 2, "work": done + 0.5,
        "histogram": reference(pairs).encode().decode(),
    }  # fmt: skip
    return msgspec.convert(usual | fields, AgentSlice)


# ── histograms ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(values)
def test_a_histogram_is_written_as_the_reference_library_reads_it(pairs: list[tuple[int, int]]) -> None:
    original = reference(pairs)
    text = histogram.encode(histogram.decode(original.encode()))
    read = HdrHistogram.decode(text)
    assert read.encoder.get_counts()[: original.counts_len] == original.encoder.get_counts()[: original.counts_len]
    assert read.get_total_count() == original.get_total_count()


@given(values.filter(bool))
def test_our_text_is_the_reference_librarys_but_for_its_compression(pairs: list[tuple[int, int]]) -> None:
    import base64
    import zlib

    theirs = reference(pairs).encode()
    ours = histogram.encode(histogram.decode(theirs))
    assert zlib.decompress(base64.b64decode(ours)[8:]) == zlib.decompress(base64.b64decode(theirs)[8:])


@given(st.lists(values, min_size=1, max_size=6))
def test_merged_histograms_have_every_cell_that_the_reference_library_adds_up(
    parts: list[list[tuple[int, int]]],
) -> None:
    whole = HdrHistogram(1, HIGHEST, 3)
    for pairs in parts:
        whole.add(reference(pairs))
    merged = merge.merge([answer(pairs) for pairs in parts])
    decoded = histogram.decode(merged.histogram)
    dense = np.array(whole.encoder.get_counts())
    assert decoded.indices.tolist() == np.flatnonzero(dense).tolist()
    assert decoded.counts.tolist() == dense[decoded.indices].tolist()
    assert decoded.total == merged.operations


@given(st.lists(values, min_size=1, max_size=6))
def test_texts_decoded_together_are_those_decoded_one_by_one(parts: list[list[tuple[int, int]]]) -> None:
    texts = [reference(pairs).encode() for pairs in parts]
    together, single = histogram.decode_sum(texts), histogram.summed([histogram.decode(text) for text in texts])
    assert together.layout == single.layout
    assert together.indices.tolist() == single.indices.tolist()
    assert together.counts.tolist() == single.counts.tolist()


def test_texts_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="one layout"):
        histogram.decode_sum([])
    with pytest.raises(ValueError, match="HdrHistogram"):
        histogram.decode_sum([reference([(5, 9)]).encode(), b"HISTF"])


def test_a_cell_that_occurs_twice_is_not_written() -> None:
    one = histogram.decode(reference([(5, 9)]).encode())
    with pytest.raises(ValueError, match="every cell once"):
        histogram.encode(histogram.merge([one, one]))
    assert histogram.summed([one, one]).counts.tolist() == [18]


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
def test_every_precision_is_written(digits: int) -> None:
    original = HdrHistogram(1, HIGHEST, digits)
    original.record_value(123_456, 7)
    read = HdrHistogram.decode(histogram.encode(histogram.decode(original.encode())))
    assert read.significant_figures == digits
    assert read.get_max_value() == original.get_max_value()


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_counts_add_up_and_the_window_stays() -> None:
    merged = merge.merge(
        [answer([(100, 3)]), answer([(200, 5)], seconds=0.4002, errors=2, first_error="no", cpu_user_ns=7)]
    )
    assert (merged.operations, merged.errors, merged.first_error, merged.cpu_user_ns) == (8, 2, "no", 12)
    assert merged.seconds == pytest.approx(0.4001)
    assert merged.work == 9.0
    assert (merged.threads, merged.connects, merged.resumed, merged.bytes_received) == (4, 8, 2, 400)
    assert set(AgentSlice.__struct_fields__) == {
        *merge.SUMMED, "arm", "seconds", "checksum", "histogram", "first_error", "error_kinds", "encrypted",
        "driver_version", "protocol", "cipher",
    }  # fmt: skip


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=8))
def test_checksums_add_up_like_an_agents_own_over_rows(sums: list[int]) -> None:
    merged = merge.merge([answer([], checksum=f"{checksum:016x}") for checksum in sums])
    assert merged.checksum == f"{sum(sums) % 2**64:016x}"
    other = merge.merge([answer([], checksum=f"{checksum:016x}") for checksum in reversed(sums)])
    assert other.checksum == merged.checksum
    changed = merge.merge(
        [answer([], checksum=f"{(checksum + (at == 0)) % 2**64:016x}") for at, checksum in enumerate(sums)]
    )
    assert changed.checksum != merged.checksum


def test_kinds_of_errors_are_counted_together_and_the_rarest_become_other() -> None:
    assert merge.error_kinds(["40001=12 connect=3", "connect=10", ""]) == "connect=13 40001=12"
    many = " ".join(f"k{number:02}={100 - number}" for number in range(20))
    assert merge.error_kinds([many, "other=5"]).split()[-1] == f"other={sum(100 - n for n in range(16, 20)) + 5}"


def test_what_does_not_belong_together_is_not_merged() -> None:
    with pytest.raises(ValueError, match="no answers"):
        merge.merge([])
    with pytest.raises(ValueError, match="one arm"):
        merge.merge([answer([]), answer([], arm="encrypted")])


@given(st.integers(1, 10_000), st.integers(1, 200))
def test_connections_are_dealt_out_evenly(total: int, members: int) -> None:
    dealt = merge.deal(total, members)
    assert sum(dealt) == total
    assert max(dealt) - min(dealt) <= 1


# ── seeds and phases ──────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 2**53 - 1))
def test_members_draw_different_values_and_both_arms_the_same(seed: int) -> None:
    seeds = [fleet.seed_of(seed, number) for number in range(200)]
    assert seeds[0] == seed
    assert len(set(seeds)) == 200
    assert all(0 <= member_seed < 2**53 for member_seed in seeds)


def test_members_with_an_even_rate_send_one_after_the_other() -> None:
    assert [fleet.phase(number, 1000.0, 0.1) for number in range(3)] == [0.0, 0.001, 0.002]
    assert fleet.phase(3, 1.0, 0.1) == 0.0
    assert fleet.phase(3, 0.0, 0.1) == 0.0


# ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

ways = st.lists(st.tuples(st.floats(0, 0.05), st.floats(0, 0.05)), min_size=1, max_size=9)


@given(st.floats(-1e6, 1e6), ways)
def test_the_true_offset_is_within_the_error_however_a_round_trip_divides(
    ahead: float, trips: list[tuple[float, float]]
) -> None:
    samples = [
        clock.Sample(at, at + there + ahead, at + there + back)
        for at, (there, back) in zip(np.arange(len(trips)) * 1.0 + 100.0, trips, strict=True)
    ]
    offset = clock.offset(samples)
    assert abs(offset.seconds - ahead) <= offset.error + 1e-6
    assert offset.error == pytest.approx(min(there + back for there, back in trips) / 2, abs=1e-9)
    assert offset.here(offset.there(5.0)) == pytest.approx(5.0, abs=1e-6)


def test_time_that_runs_backwards_is_no_sample() -> None:
    with pytest.raises(ValueError, match="before its question"):
        clock.offset([clock.Sample(2.0, 0.0, 1.0)])
