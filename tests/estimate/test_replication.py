"""Replication: blocks in mirrored order give the ratios whatever drifts; what failed spoils its block, and the cell says so."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import replication
from ciphercost.model.replication import KINDS, ReplicationEvent
from ciphercost.plan import schedule
from results import cell

SECONDS = {"lag": 0.004, "catch-up": 0.5, "copy": 2.0}


def events(ratio: float, *, sessions: int = 1, blocks: int = 3, drift: float = 0.0) -> list[ReplicationEvent]:
    """Events in the plan's order: all of the encrypted arm's take `ratio` times as long."""
    planned = []
    for session in range(1, sessions + 1):
        coins = schedule.blocks(1, 0, session, schedule.REPLICATED)
        for _ in range(blocks):
            block = next(coins)
            for kind in KINDS:
                for position, arm in enumerate(block.arms[1:], start=1):
                    slow = math.exp(drift * position) * (ratio if arm == "encrypted" else 1)
                    planned.append(
                        ReplicationEvent(
                            0, session, block.number, block.order, position, arm, kind, SECONDS[kind] * slow, rate=500.0,
                            rows=20_000 * (kind == "catch-up"), bytes=5_000_000 * (kind == "copy"), by="a tool" * (kind == "copy"),
                        )
                    )  # fmt: skip
    return planned


@given(st.floats(0.5, 3), st.floats(-0.1, 0.1))
def test_the_mirrored_order_takes_a_drift_out_of_the_ratios(ratio: float, drift: float) -> None:
    found = replication.result(events(ratio, sessions=2, blocks=1, drift=drift), "full")
    assert found is not None
    assert (found.blocks, found.rate, found.rows, found.bytes, found.copied_by) == (2, 500, 20_000, 5_000_000, "a tool")
    for name, expected in (("lag", ratio), ("copy", ratio), ("catch_up", 1 / ratio)):
        assert found.ratios[name].ratio == pytest.approx(expected, rel=1e-6), name
        assert found.arms["encrypted"][name] / found.arms["plain"][name] == pytest.approx(expected, rel=1e-6)


def test_levels_have_their_units() -> None:
    found = replication.result(events(1.0), "quick")
    assert found is not None
    assert found.arms["plain"] == pytest.approx({"lag": 4.0, "catch_up": 40_000.0, "copy": 2.0})
    assert {name: ratio.unit for name, ratio in found.ratios.items()} == {
        "lag": "ms",
        "catch_up": "changes/s",
        "copy": "s",
    }


def test_what_failed_spoils_its_block_and_the_cell_says_so() -> None:
    every = events(1.5)
    first = next(one for one in every if one.kind == "copy")
    broken = [msgspec.structs.replace(one, seconds=0.0, error="no room") if one is first else one for one in every]
    found = replication.with_replication(cell(), broken, "quick")
    assert found.replication is not None
    assert found.replication.ratios["copy"].n == 2
    assert found.replication.ratios["lag"].n == 3
    (warning,) = [one for one in found.warnings if one.code == replication.FAILED]
    assert "copy 1 times" in warning.text
    assert "no room" in warning.text


def test_a_lag_that_grows_is_told() -> None:
    slow = [msgspec.structs.replace(one, rate=50_000.0) for one in events(1.5)]
    assert [one.code for one in replication.with_replication(cell(), slow, "quick").warnings][-1] == replication.BEHIND
    calm = replication.with_replication(cell(), events(1.5), "quick")
    assert all(one.code != replication.BEHIND for one in calm.warnings)


def test_one_block_is_too_few() -> None:
    assert replication.result(events(1.5, blocks=1), "quick") is None


def test_a_cell_without_a_number_has_none_of_these() -> None:
    unproven = msgspec.structs.replace(cell(), status="unproven")
    assert replication.with_replication(unproven, events(1.5), "quick") is unproven
