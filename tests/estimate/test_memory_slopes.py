"""Slopes of memory: exact lines are found exactly, noise is covered by the interval, and what encryption adds is the difference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import connection_memory
from ciphercost.model.connection_memory import MOMENTS, MemoryLevel
from ciphercost.model.spec import ARMS

STEPS = [0, 10, 20, 30, 40, 50, 60, 70, 80]


def levels(plain: float, encrypted: float, sessions: int = 1, noise: float = 0.0, seed: int = 1) -> list[MemoryLevel]:
    """Ramps in which each connection costs so many bytes at each moment."""
    random = np.random.default_rng(seed)
    return [
        MemoryLevel(
            0, session, arm, moment, count, round(5e6 + slope * count + random.normal(0, noise) if noise else 5e6 + slope * count), 1000, kernel=7 * count
        )
        for session in range(1, sessions + 1)
        for arm, slope in zip(ARMS, (plain, encrypted), strict=True)
        for moment in MOMENTS
        for count in STEPS
    ]  # fmt: skip


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 3))
def test_exact_lines_are_found_exactly(plain: int, encrypted: int, sessions: int) -> None:
    known = connection_memory.result(levels(plain, encrypted, sessions))
    assert known is not None
    assert (known.connections, known.steps, known.sessions) == (80, 8, sessions)
    for place, moment in enumerate(MOMENTS, 1):
        assert known.arms["plain"][moment]["server"].bytes == pytest.approx(place * plain, abs=0.5)
        added = known.added[moment]["server"]
        assert added.bytes == pytest.approx(place * (encrypted - plain), abs=0.5)
        assert added.low <= added.bytes <= added.high
        assert known.added[moment]["kernel"].bytes == pytest.approx(0, abs=1e-6)
        assert "hop" not in known.added[moment]


@pytest.mark.parametrize("sessions", [1, 4])
def test_the_interval_covers_what_noise_does_to_a_slope(sessions: int) -> None:
    covered = 0
    for seed in range(400):
        known = connection_memory.result(levels(1000, 31_000, sessions, noise=50_000, seed=seed))
        assert known is not None
        slope = known.added["handshake"]["server"]
        covered += slope.low <= 30_000 <= slope.high
    assert 370 <= covered <= 395


def test_without_a_ramp_of_both_arms_there_is_no_figure() -> None:
    every = levels(1, 2)
    assert connection_memory.result([]) is None
    assert connection_memory.result([level for level in every if level.arm == "plain"]) is None
    assert connection_memory.result([level for level in every if level.connections < 20]) is None
    short = [level for level in every if level.moment != "response"]
    found = connection_memory.result(short)
    assert found is not None
    assert list(found.added) == ["handshake", "traffic"]
