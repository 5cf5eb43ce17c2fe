"""Rotations of keys: the first of a session is discarded, durations and the traffic's change come with intervals that contain them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import key_rotation
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.result import Cell
from ciphercost.report.words import rotation_text
from results import cell


def slices(
    *seconds: float, sessions: int = 1, size: int = 500_000_000, traffic: bool = True, number: int = 0
) -> list[KeyRotationSlice]:
    """Rotations of these durations in each session, after one that takes ten times as long; traffic is half as fast meanwhile."""
    return [
        KeyRotationSlice(
            0, session, number + place, "data" if size else "keys", "PRAGMA rekey", duration, size,
            quiet=1000.0 * traffic, meanwhile=500.0 * traffic, meanwhile_s=duration * traffic,
        )
        for session in range(1, sessions + 1)
        for place, duration in enumerate((10 * seconds[0], *seconds))
    ]  # fmt: skip


@given(st.lists(st.floats(0.001, 1000), min_size=2, max_size=8))
def test_the_first_is_discarded_and_the_interval_contains_the_figure(seconds: list[float]) -> None:
    found = key_rotation.result(slices(*seconds), "quick")
    assert found is not None
    assert (found.rotations, found.sessions, found.bytes) == (len(seconds), 1, 500_000_000)
    for level, times in ((found.seconds, 1.0), (found.seconds_per_gb, 2.0)):
        assert level is not None
        assert level.low * (1 - 1e-9) <= level.value <= level.high * (1 + 1e-9)
        assert min(seconds) * times * (1 - 1e-9) <= level.value <= max(seconds) * times * (1 + 1e-9)
    assert found.meanwhile is not None
    assert found.meanwhile.ratio == pytest.approx(0.5)


def test_in_full_mode_sessions_are_the_unit() -> None:
    every = slices(1.0, 1.0, sessions=2) + [
        msgspec.structs.replace(one, session=one.session + 2) for one in slices(4.0, 4.0, sessions=2)
    ]
    found = key_rotation.result(every, "full")
    assert found is not None
    assert found.seconds.value == pytest.approx(2.0)
    assert found.sessions == 4


def test_without_data_or_traffic_these_figures_are_left_out() -> None:
    found = key_rotation.result(slices(0.01, 0.012, 0.011, size=0, traffic=False), "quick")
    assert found is not None
    assert (found.seconds_per_gb, found.meanwhile, found.quiet) == (None, None, 0.0)
    text = " ".join(rotation_text.lines(found))
    assert "per GB" not in text
    assert " ms (95 % CI" in text
    assert "only the keys" in text


def test_one_rotation_gives_no_interval() -> None:
    assert key_rotation.result(slices(1.0), "quick") is None


def test_a_cell_without_numbers_gets_none() -> None:
    failed: Cell = msgspec.structs.replace(cell(), status="failed")
    assert key_rotation.with_rotation(failed, slices(1.0, 1.0), "quick").key_rotation is None
    found = key_rotation.with_rotation(cell(), slices(1.0, 1.0), "quick")
    assert any("A new key takes 1 s" in text for text in rotation_text.sentences([found]))
