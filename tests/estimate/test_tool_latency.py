"""The tool's own latencies: log ratios within blocks, left out where a slice lacks them or has too few operations."""

from __future__ import annotations

import math

import msgspec
import pytest

from ciphercost.estimate.tool_latency import ToolLatencies
from ciphercost.model.command_load import ToolFigures
from ciphercost.model.slices import AgentSlice, Block, SliceRecord
from ciphercost.model.spec import Mode


def block(number: int, session: int, plain: dict[str, float], ratio: float, operations: int) -> list[SliceRecord]:
    """Four slices in order ABBA, whose second half of the session is twice as slow: pairing removes it."""
    of = Block(number, "ABBA")
    slow = 2.0 if number % 2 else 1.0
    records = []
    for position, arm in enumerate(of.arms[1:], 1):
        factor = slow * (ratio if arm == "encrypted" else 1.0)
        answer = AgentSlice(arm, 1.0, operations, 0, 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, "")
        figures = ToolFigures(
            1.2, startup_s=0.2, tool="x", latency_ms={name: value * factor for name, value in plain.items()}
        )
        records.append(
            SliceRecord(0, session, "capacity", number, "ABBA", position, arm, 0.0, 1.0, agent=answer, reported=figures)
        )
    return records


def filled(operations: int = 5000, sessions: int = 3) -> ToolLatencies:
    known = ToolLatencies()
    for session in range(1, sessions + 1):
        for number in range(4):
            known.add(block(number, session, {"mean": 1.0, "p50": 0.9, "p99": 4.0}, 1.25, operations), 1)
    return known


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_the_ratio_is_that_within_blocks(mode: str) -> None:
    found = filled().intervals(mode, None)  # type: ignore[arg-type]
    assert set(found) == {"tool_latency_mean", "tool_latency_p50", "tool_latency_p99"}
    assert all(math.exp(interval.centre) == pytest.approx(1.25) for interval in found.values())
    levels = filled().levels(found, mode)  # type: ignore[arg-type]
    assert levels["encrypted"]["p99"] / levels["plain"]["p99"] == pytest.approx(1.25)


def test_a_percentile_of_few_operations_is_left_out() -> None:
    assert set(filled(operations=100).intervals("full", None)) == {"tool_latency_mean", "tool_latency_p50"}


def test_a_figure_that_one_slice_lacks_is_left_out() -> None:
    known = filled()
    known.add(block(9, 3, {"mean": 1.0}, 1.25, 5000), 1)
    assert set(known.intervals("full", None)) == {"tool_latency_mean"}
    known.drop(3)
    assert len(known.intervals("full", None)) == 3


def test_start_up_is_the_mean_of_each_arm() -> None:
    startup = filled().startup("full")
    assert startup["plain"] == {
        "process_s": pytest.approx(1.2),
        "startup_s": pytest.approx(0.2),
        "whole_process": False,
    }
    assert ToolLatencies().startup("full") == {}


def task(number: int, session: int, ratio: float, traffic: dict[str, float]) -> list[SliceRecord]:
    """A block of a task that takes `ratio` times as long in the encrypted arm, where traffic suffers twice as much."""
    records = []
    for record in block(number, session, {}, 1.0, 1):
        encrypted = record.arm == "encrypted"
        meanwhile = {"meanwhile": traffic["meanwhile"] / (2 if encrypted else 1)} if traffic else {}
        figures = ToolFigures(
            ratio if encrypted else 1.0,
            tool="pg_dump",
            operation="backup",
            output_bytes=500,
            traffic=traffic | meanwhile,
        )
        records.append(msgspec.structs.replace(record, reported=figures))
    return records


def tasks(traffic: dict[str, float]) -> ToolLatencies:
    known = ToolLatencies()
    for session in range(1, 4):
        for number in range(4):
            known.add(task(number, session, 1.3 * (1 + 0.01 * number), traffic), 1)
    return known


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_the_duration_of_a_task_has_a_ratio_and_levels(mode: Mode) -> None:
    known = tasks({})
    found = known.intervals(mode, None)
    assert set(found) == {"duration"}
    assert math.exp(found["duration"].centre) == pytest.approx(1.32, rel=0.01)
    levels = known.levels(found, mode)
    assert levels["encrypted"]["duration"] / levels["plain"]["duration"] == pytest.approx(1.32, rel=0.01)
    described = known.startup(mode)["plain"]
    assert (described["operation"], described["tool"], described["output_bytes"]) == ("backup", "pg_dump", 500)
    assert "traffic" not in described


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_what_a_task_does_to_traffic_has_an_interval_for_each_arm(mode: Mode) -> None:
    described = tasks({"quiet": 1000.0, "meanwhile": 800.0}).startup(mode)
    for arm, ratio in (("plain", 0.8), ("encrypted", 0.4)):
        traffic = described[arm]["traffic"]  # type: ignore[index]
        assert traffic["quiet"] == pytest.approx(1000)
        assert traffic["ratio"] == pytest.approx(ratio)
        assert traffic["low"] <= traffic["ratio"] * (1 + 1e-9)
        assert traffic["ratio"] <= traffic["high"] * (1 + 1e-9)


def test_without_traffic_in_every_slice_nothing_is_said_of_it() -> None:
    known = tasks({"quiet": 1000.0, "meanwhile": 800.0})
    known.add(task(9, 3, 1.3, {}), 1)
    assert "traffic" not in known.startup("full")["plain"]
