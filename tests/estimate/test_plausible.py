"""Waits of a fixed length, and an encrypted arm that is faster: what the record shows, and what is computed no longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ciphercost.estimate import plausible, waits
from ciphercost.model.histogram import Histogram, Layout
from ciphercost.model.result import Cell, Estimate, Price, Wait, Warning_
from ciphercost.report import advice, capacity, comparison, cost_gate, formats, money
from ciphercost.report.comparison_types import Run
from ciphercost.report.words import verdict_text
from results import cell, estimate, result

LAYOUT = Layout(0, 10)
MS = 1_000_000


def histogram(latencies: list[float]) -> Histogram:
    """Of these latencies in ms."""
    values = np.sort(np.asarray(latencies) * MS).astype(np.int64)
    octave = np.maximum(0, np.floor(np.log2(np.maximum(values, 1))).astype(np.int64) - LAYOUT.half)
    indices = ((octave + 1) << LAYOUT.half) + (values >> octave) - (1 << LAYOUT.half)
    present, counts = np.unique(indices, return_counts=True)
    return Histogram(LAYOUT, present, counts)


# ── one arm's latencies ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ms", [40.0, 200.0, 1000.0, 57.0])
def test_a_timer_is_found_among_quick_operations(ms: float) -> None:
    random = np.random.default_rng(1)
    quick = random.lognormal(np.log(0.2), 0.4, 900).tolist()
    wait = waits.wait(histogram([*quick, *(ms + random.uniform(0, ms / 10, 100)).tolist()]))
    assert wait is not None
    assert wait.ms == pytest.approx(ms * 1.05, rel=0.05)
    assert wait.operations == pytest.approx(0.1, abs=0.01)
    assert wait.time > 0.9


@pytest.mark.parametrize(
    "latencies",
    [
        [],
        [0.2] * 1000,  # short
        [8.0] * 1000,  # a disk
        np.random.default_rng(2).lognormal(np.log(40), 0.6, 1000).tolist(),  # work and queues are spread
        [
            *np.random.default_rng(3).lognormal(np.log(2), 0.5, 1000).tolist(),
            *[40.0] * 20,
        ],  # a few, a third of the time
        [0.2, 40.0, 40.0],  # too few to tell
    ],
)
def test_work_is_no_timer(latencies: list[float]) -> None:
    assert waits.wait(histogram(latencies)) is None


# ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LEVELS: dict[str, dict[str, Any]] = {
    "plain": {
        "throughput": 91.0,
        "server_cpu_us_per_op": 68.0,
        "client_cpu_us_per_op": 46.0,
        "wire_bytes_per_op": 344.0,
    },
    "encrypted": {
        "throughput": 9445.0,
        "server_cpu_us_per_op": 43.0,
        "client_cpu_us_per_op": 24.0,
        "wire_bytes_per_op": 388.0,
    },
}
FAST = {"throughput": estimate(103.0, 0.1), "server_cpu_per_op": estimate(0.63, 0.1)}
WAIT = Wait(44.0, 0.95, 0.96)


def checked_cell(waits_: dict[str, Wait], overhead: dict[str, Estimate] | None = None, **more: Any) -> Cell:
    known: dict[str, Any] = {
        "engine": "url",
        "arms": LEVELS,
        "overhead": overhead or FAST,
        "waits": waits_,
        "warnings": [],
    }
    return plausible.checked(cell(**known | more), 0.01)


def codes(of: Cell) -> list[str]:
    return [warning.code for warning in of.warnings]


def test_a_wait_of_one_arm_is_the_reason_and_nothing_is_computed_from_it() -> None:
    doubtful = checked_cell({"plain": WAIT})
    assert codes(doubtful) == ["fixed-wait"]
    assert "TCP_NODELAY" in doubtful.warnings[0].text
    assert verdict_text.doubt(doubtful) in verdict_text.sentences(result(doubtful))[0]
    assert capacity.line(doubtful) == ""
    assert "not what encryption costs" in money.of(doubtful, Price(0.04, "hour", "$")).reason
    advised = advice.advise(result(doubtful), limit=0.1)
    assert (advised.answers[0].chosen, advised.exit_status) == (None, 4)
    gated = comparison.compare([Run("a", result(doubtful), [{}])], limit=0.1, strict=True)
    assert (gated.gates[0].outcome, gated.exit_status) == ("unresolved", 4)
    for name in ("terminal", "md", "html", "latex"):
        assert "servers become" not in formats.get(name)(result(doubtful)), name
    for name in ("bencher", "github-action-benchmark", "openmetrics"):
        assert "throughput" not in formats.get(name)(result(doubtful)), name
        assert "operations/s" not in formats.get(name)(result(doubtful)), name


def test_both_arms_that_wait_hide_the_cost_but_not_that_of_cpu() -> None:
    doubtful = checked_cell(
        {"plain": WAIT, "encrypted": Wait(43.0, 0.9, 0.9)},
        {"throughput": estimate(1.0, 0.001), "server_cpu_per_op": estimate(1.2)},
    )
    assert codes(doubtful) == ["fixed-wait-in-both-arms"]
    assert verdict_text.doubt(doubtful) in verdict_text.sentences(result(doubtful))[0]
    assert "servers become 12" in capacity.line(doubtful)
    longer = checked_cell({"plain": WAIT, "encrypted": Wait(201.0, 0.9, 0.9)}, {"throughput": estimate(0.2)})
    assert codes(longer) == ["fixed-wait"]
    assert "about 201 ms" in verdict_text.doubt(longer)


def test_no_wait_where_somebody_works_or_the_link_was_asked_for() -> None:
    busy = {arm: levels | {"server_cpu_us_per_op": 44_000.0, "throughput": 91.0} for arm, levels in LEVELS.items()}
    same = {"throughput": estimate(0.99, 0.02)}
    assert codes(checked_cell({"plain": WAIT}, same, arms=busy)) == []
    assert codes(checked_cell({"plain": WAIT, "encrypted": WAIT}, same, conditions={"delay": "20ms"})) == []
    assert codes(checked_cell({"plain": WAIT}, FAST, layer="control")) == []


@pytest.mark.parametrize(
    ("waiting", "more", "moved", "codes_"),
    [
        ({"plain": WAIT}, {}, 0.0, ["fixed-wait"]),  # other processes write: this server does not
        ({"plain": WAIT, "encrypted": WAIT}, {}, 0.0, ["fixed-wait-in-both-arms"]),
        ({"plain": WAIT}, {}, 150.0, ["fixed-wait"]),  # the disk is as busy in the arm without a wait
        ({"plain": WAIT, "encrypted": WAIT}, {}, 150.0, []),  # each may wait for the disk
        ({"encrypted": WAIT}, {"layer": "rest"}, 8192.0, []),  # as encryption at rest may cause
    ],
)
def test_a_disk_that_others_keep_busy_is_no_reason_for_a_wait(
    waiting: dict[str, Wait], more: dict[str, Any], moved: float, codes_: list[str]
) -> None:
    busy = {
        arm: levels | {"host": {"disk_busy": {"mean": 90.0}}, "write_bytes_per_op": moved, "read_bytes_per_op": 0.0}
        for arm, levels in LEVELS.items()
    }
    same = {"throughput": estimate(0.99, 0.02)}
    assert codes(checked_cell(waiting, same, arms=busy, **more)) == codes_
    unseen = {
        arm: {name: level for name, level in facts.items() if "_bytes" not in name} for arm, facts in busy.items()
    }
    for facts in unseen.values():
        del facts["server_cpu_us_per_op"]
    if moved:  # a server that can't be seen may use the disk as well
        assert codes(checked_cell(waiting, same, arms=unseen, **more)) == codes_


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "no reason was found"),
        ({"encryption": {"http": "HTTP/2"}}, "the plain arm speaks HTTP/1.1, the encrypted one HTTP/2"),
        (
            {"arms": {**LEVELS, "encrypted": LEVELS["encrypted"] | {"wire_bytes_per_op": 100.0}}},
            "the plain arm's answers are larger: 344",
        ),
        (
            {
                "arms": {
                    "plain": LEVELS["plain"] | {"connects": 100, "operations": 100},
                    "encrypted": LEVELS["encrypted"],
                }
            },
            "its port closes them",
        ),
        (
            {"arms": {"plain": LEVELS["plain"] | {"errors": 50}, "encrypted": LEVELS["encrypted"]}},
            "50 operations of the plain arm failed",
        ),
    ],
)
def test_an_encrypted_arm_that_is_faster_has_its_reason(more: dict[str, Any], reason: str) -> None:
    doubtful = checked_cell({}, {"throughput": estimate(1.2, 0.05)}, **more)
    assert codes(doubtful) == ["faster-encrypted"]
    assert reason in doubtful.warnings[0].text
    assert "can't cause" in verdict_text.sentences(result(doubtful))[0]
    assert capacity.line(doubtful) == ""


def test_a_faster_arm_within_the_margin_or_by_chance_is_no_reason_to_doubt() -> None:
    assert codes(checked_cell({}, {"throughput": estimate(1.005, 0.001)})) == []
    assert codes(checked_cell({}, {"throughput": estimate(1.1, 0.2)})) == []
    assert codes(checked_cell({}, {"latency_p50": estimate(0.5, 0.1)})) == ["faster-encrypted"]
    assert verdict_text.doubt(cell(warnings=[Warning_("steal", "")])) == ""
    assert cost_gate.gate(result(checked_cell({}, {"throughput": estimate(1.0, 0.01)})), 0, 0.1)[0].outcome == "pass"
