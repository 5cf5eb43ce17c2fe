"""Storms: blocks in mirrored order give the ratio whatever drifts, failed storms spoil their block, and refusals are counted."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import storms
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, Layout, encode
from ciphercost.model.slices import AgentSlice
from ciphercost.model.storms import StormSlice
from ciphercost.plan import schedule
from results import cell

LENGTH, RATE = 0.5, 4000.0


def answer(operations: int, latency_ms: float, errors: int = 0) -> AgentSlice:
    """An agent's answer in which every operation took about as long."""
    low = int(latency_ms * 1e6)
    # Cells of 2^11 each: below that, one for each value.
    octave = max(0, low.bit_length() - 11)
    index = ((octave + 1) << 10) + (low >> octave) - 1024 if octave else low
    histogram = encode(Histogram(Layout(0, 10), np.array([index]), np.array([operations])))
    return AgentSlice(
        arm="plain", seconds=LENGTH, operations=operations, errors=errors, rows=0, checksum="", cpu_user_ns=0, cpu_system_ns=0, bytes_sent=0,
        bytes_received=0, segments_sent=0, segments_received=0, connects=0, resumed=0, late=0, threads=1, histogram=histogram,
        error_kinds=f"53300={errors}" if errors else "",
    )  # fmt: skip


def slices(
    ratio: float, *, sessions: int = 1, blocks: int = 4, drift: float = 0.0, refused: int = 0, new: int = 2000
) -> list[StormSlice]:
    """Storms in the plan's order: during a storm everything takes 4 times as long, and `ratio` times that in the encrypted arm."""
    planned = []
    for session in range(1, sessions + 1):
        coins = schedule.blocks(1, 0, session)
        for _ in range(blocks):
            block = next(coins)
            for position, arm in enumerate(block.arms):
                slow = math.exp(drift * position) * (ratio if arm == "encrypted" else 1)
                planned.append(
                    StormSlice(
                        0, session, block.number, block.order, position, arm, "rate", "160", LENGTH, RATE, wanted=new + refused,
                        before=answer(2000, slow), during=answer(round(1e6 / slow), 4 * slow), after=answer(2000, slow),
                        back=answer(new, 8 * slow, refused * (arm == "encrypted")),
                    )
                )  # fmt: skip
    return planned


@given(st.floats(0.5, 3), st.floats(-0.1, 0.1))
def test_the_mirrored_order_takes_a_drift_out_of_the_ratio(ratio: float, drift: float) -> None:
    found = storms.result(slices(ratio, sessions=2, blocks=2, drift=drift), "full")
    assert found is not None
    assert found.blocks == 4
    assert found.ratios["throughput_during"].ratio == pytest.approx(1 / ratio, rel=1e-3)
    for name in ("latency_p50_during", "latency_p99_during", "back_p50", "back_p99", "back_last"):
        estimate = found.ratios[name]
        assert estimate.ratio == pytest.approx(ratio, rel=5e-3), name
        assert found.arms["encrypted"].levels[name] / found.arms["plain"].levels[name] == pytest.approx(estimate.ratio)
    assert found.arms["plain"].change["latency_p99_during"].ratio == pytest.approx(4, rel=5e-3)


def test_the_changes_of_both_arms_are_compared_in_the_same_blocks() -> None:
    """Before the storm both arms differ by a third; during it the encrypted one falls twice as far, in every block."""
    every = [
        msgspec.structs.replace(
            one,
            rate=0.0,
            kind="saturated",
            before=answer(3000 if one.arm == "plain" else 2000, 1.0),
            during=answer(1500 if one.arm == "plain" else 500, 1.0),
        )
        for one in slices(1.0, sessions=3, blocks=1)
    ]
    found = storms.result(every, "full")
    assert found is not None
    assert (found.kind, found.rate) == ("saturated", 0)
    assert found.arms["plain"].change["throughput_during"].ratio == pytest.approx(0.5)
    assert found.arms["encrypted"].change["throughput_during"].ratio == pytest.approx(0.25)
    assert found.change["throughput_during"].ratio == pytest.approx(0.5)


def test_a_failed_storm_spoils_its_block_and_the_cell_says_so() -> None:
    every = slices(2.0)
    broken = [
        msgspec.structs.replace(one, error="the server closed the connection") if number == 0 else one
        for number, one in enumerate(every)
    ]
    found = storms.with_storm(cell(), broken, "quick")
    assert found.storm is not None
    assert found.storm.blocks == 3
    assert any(one.code == storms.FAILED and "the server closed the connection" in one.text for one in found.warnings)
    none = storms.with_storm(cell(), [msgspec.structs.replace(one, error="gone") for one in every], "quick")
    assert none.storm is None
    assert any("no figures of storms" in one.text for one in none.warnings)


def test_new_connections_that_failed_are_counted_by_arm_and_reason() -> None:
    found = storms.with_storm(cell(), slices(1.5, refused=3), "quick")
    assert found.storm is not None
    arms = found.storm.arms
    assert (arms["plain"].refused, arms["encrypted"].refused) == (0, 24)
    assert arms["encrypted"].reasons == "53300=24"
    (warning,) = [one for one in found.warnings if one.code == storms.REFUSED]
    assert "encrypted: 24 of 16,024 (53300=24)" in warning.text


@pytest.mark.parametrize("damaged", ["53300", "53300=many", "=3", "53300=-1", "53300=" + "9" * 5000])
def test_reasons_that_are_damaged_are_an_error_that_names_the_file(damaged: str) -> None:
    every = slices(1.5, refused=3)
    back = every[1].back
    assert back is not None
    every[1] = msgspec.structs.replace(every[1], back=msgspec.structs.replace(back, error_kinds=damaged))
    with pytest.raises(
        UsageError, match=r"^storm.jsonl: session 1, block 0: error_kinds has '[^']{1,80}', not CODE=COUNT$"
    ):
        storms.result(every, "quick")


def test_a_quantile_needs_operations_beyond_it() -> None:
    found = storms.result(slices(1.5, new=100), "quick")
    assert found is not None
    assert {"back_p50", "back_last"} <= set(found.ratios)
    assert "back_p99" not in found.ratios


def test_fewer_than_two_blocks_give_no_figure() -> None:
    assert storms.result(slices(1.5, blocks=1), "quick") is None


def test_a_part_in_which_nothing_was_done_is_told() -> None:
    every = slices(1.5)
    assert storms.NOTHING not in {one.code for one in storms.with_storm(cell(), every, "quick").warnings}
    every[2] = msgspec.structs.replace(every[2], during=answer(0, 1.0))
    found = storms.with_storm(cell(), every, "quick")
    assert found.storm is not None
    assert "throughput_during" not in found.storm.ratios
    (warning,) = [one for one in found.warnings if one.code == storms.NOTHING]
    assert f"in a part of 1 of 16 storms ({every[2].arm}: during)" in warning.text


def test_a_figure_that_the_arms_have_in_different_sessions_is_left_out() -> None:
    """Only the same block's storms can be compared."""
    mute = {(1, "plain"), (3, "encrypted")}
    every = [
        msgspec.structs.replace(one, during=answer(0, 1.0)) if (one.session, one.arm) in mute else one
        for one in slices(1.5, sessions=3, blocks=1)
    ]
    found = storms.result(every, "full")
    assert found is not None
    assert "throughput_during" not in found.ratios
    assert found.ratios["throughput_before"].ratio == pytest.approx(1, rel=1e-3)
