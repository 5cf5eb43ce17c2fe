"""Profiling: samples go to the slice in whose counted part they were taken, and to the end whose process they are of."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host.perf_text import Forked, Lost, Sample
from ciphercost.measure.profiling import Window, by_slice
from ciphercost.model.profile import End
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS

ENDS: dict[int, End] = {10: "server", 20: "client", 30: "hop"}


def window(number: int, *, failed: bool = False) -> Window:
    """From 1000 · number to 1000 · number + 500 ns."""
    arm = ARMS[number % 2]
    one_window = Window(SliceRecord(0, 1, "profile", number, "ABBA", 1, arm, 0.0, 0.5), 1000 * number)
    one_window.ended_ns = 0 if failed else 1000 * number + 500
    return one_window


@given(st.lists(st.tuples(st.sampled_from([10, 20, 30, 99]), st.integers(0, 5000)), max_size=40))
def test_each_sample_counts_once_in_its_window_and_strangers_nowhere(taken: list[tuple[int, int]]) -> None:
    samples = [Sample("x", pid, at, ("x`f", "x`main")) for pid, at in taken]
    slices = list(by_slice(samples, [window(number) for number in range(1, 4)], ENDS, 1e6, kernel=True))
    assert [profile.block for profile in slices] == [1, 2, 3]
    for profile in slices:
        counted = Counter[End]()
        for stack in profile.stacks:
            counted[stack.end] += stack.count
            assert [profile.frames[frame] for frame in stack.frames] == ["x`main", "x`f"]
        inside = [pid for pid, at in taken if 1000 * profile.block <= at <= 1000 * profile.block + 500 and pid in ENDS]
        assert counted == Counter(ENDS[pid] for pid in inside)


def test_a_process_belongs_to_the_end_that_started_it() -> None:
    samples: list[Sample | Lost | Forked] = [
        Forked(10, 11),
        Forked(11, 12),
        Forked(99, 98),
        *(Sample("postgres", pid, 1100, ("postgres`main",)) for pid in (11, 12, 98, 99)),
    ]
    (profile,) = by_slice(samples, [window(1)], ENDS, 1e6, kernel=True)
    assert [(stack.end, stack.count) for stack in profile.stacks] == [("server", 2)]


def test_a_failed_slice_has_no_samples_and_lost_ones_are_shared_out() -> None:
    samples: list[Sample | Lost | Forked] = [
        Lost(5),
        Sample("nginx", 10, 1100, ("nginx`_start",)),
        Sample("nginx", 10, 2100, ("nginx`_start",)),
    ]
    slices = list(by_slice(samples, [window(1), window(2, failed=True), window(3)], ENDS, 1e6, kernel=False))
    assert [profile.block for profile in slices] == [1, 3]
    assert [profile.lost for profile in slices] == [3, 2]
    assert [sum(stack.count for stack in profile.stacks) for profile in slices] == [1, 0]
    assert slices[0].whole == {"server": 1}
    assert not any(profile.kernel for profile in slices)


def test_no_window_means_no_slice() -> None:
    assert list(by_slice([Sample("nginx", 10, 1, ()), Lost(3)], [], ENDS, 1e6, kernel=True)) == []
