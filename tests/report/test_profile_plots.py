"""The graph of differences: widths are sums of what functions add, nested, and add up to the added CPU time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import profile_tree
from ciphercost.report.plots.profile import THIN, Box, boxes

STACKS = st.dictionaries(
    st.lists(st.sampled_from(["a`f", "a`g", "b`?", "kernel`w"]), min_size=1, max_size=4).map(
        lambda stack: ("nginx", *stack)
    ),
    st.tuples(st.floats(0, 100), st.floats(0, 100)),
    min_size=1,
    max_size=10,
)


def above(box: Box, every: list[Box]) -> list[Box]:
    return [
        other
        for other in every
        if other.row == box.row - 1 and other.at <= box.at + 1e-9 and box.at + box.wide <= other.at + other.wide + 1e-9
    ]


@given(STACKS)
def test_frames_lie_below_their_callers_and_beside_each_other(
    stacks: dict[tuple[str, ...], tuple[float, float]],
) -> None:
    frames = profile_tree.tree(stacks)
    for sign in (1, -1):
        every = boxes(frames, sign)
        for box in every:
            assert box.wide >= 0
            assert box.row == 0 or len(above(box, every)) == 1
        for row in {box.row for box in every}:
            side = sorted((box.at, box.at + box.wide) for box in every if box.row == row)
            assert all(left[1] <= right[0] + 1e-9 for left, right in pairwise(side))


@given(STACKS)
def test_the_first_graph_less_the_second_is_the_difference(stacks: dict[tuple[str, ...], tuple[float, float]]) -> None:
    frames = profile_tree.tree(stacks)
    more, less = (sum(box.wide for box in boxes(frames, sign) if box.row == 0) for sign in (1, -1))
    roots = [frame for frame in frames if frame.parent < 0]
    added = sum(root.encrypted_us - root.plain_us for root in roots)
    assert more - less == pytest.approx(added, abs=2 * THIN * (more + less) + 1e-6)


def test_what_only_passes_on_is_not_drawn_unless_the_library_changes() -> None:
    frames = profile_tree.tree({("nginx", "a`main", "a`loop", "b`?", "kernel`write"): (0.0, 10.0)})
    assert [box.name for box in boxes(frames, 1)] == ["nginx", "a`loop", "b`?", "kernel`write"]
    assert boxes(frames, -1) == []
