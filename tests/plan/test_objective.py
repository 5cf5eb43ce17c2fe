"""An objective: what can be written, what contradicts it, how long its slices are, and that its time is announced."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import latency_objective, schedule, specs, toml
from test_real import ciphercost

CELL = CellSpec("postgresql", "tls", objective="p99=5ms")
FULL = Spec(cells=[CELL], time=240.0)


@pytest.mark.parametrize(
    ("text", "share", "seconds", "canonical"),
    [
        ("p99=5ms", 0.99, 0.005, "p99=5ms"),
        ("p50=250us", 0.5, 0.00025, "p50=250us"),
        ("p50=250µs", 0.5, 0.00025, "p50=250us"),
        (" p90 = 0.5 s ", 0.9, 0.5, "p90=500ms"),
        ("p99.9=1500ms", 0.999, 1.5, "p99.9=1.5s"),
        ("p99=1us", 0.99, 1e-6, "p99=1us"),
    ],
)
def test_an_objective_is_read_and_written_in_one_form(text: str, share: float, seconds: float, canonical: str) -> None:
    objective = latency_objective.parse(text)
    assert (objective.share, objective.seconds) == pytest.approx((share, seconds))
    assert objective.text == canonical
    assert latency_objective.parse(objective.text) == msgspec.structs.replace(
        objective, seconds=latency_objective.parse(objective.text).seconds
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5ms",
        "p99",
        "p99=",
        "p99=5",
        "p99<5ms",
        "p95=5ms",
        "p100=5ms",
        "p99=0ms",
        "p99=-1ms",
        "p99=61s",
        "p99=0.5us",
        "99=5ms",
    ],
)
def test_what_is_no_objective_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--objective: .*write e\.g\. p99=5ms"):
        latency_objective.parse(text)


@pytest.mark.parametrize(
    ("of_cell", "of_spec", "named"),
    [
        ({"rate": 100.0}, {}, "rate: it searches"),
        ({"regime": "latency"}, {}, "regime latency"),
        ({"regime": "latency", "max_rate": 100.0}, {}, "regime latency"),
        ({"max_latency": 0.1}, {}, "max_latency"),
        ({}, {"precision": 0.01}, "precision"),
        ({}, {"slice_seconds": 1.0}, "slice_seconds"),
        ({}, {"latency": False}, "no latency"),
    ],
)
def test_options_that_contradict_an_objective_are_refused(
    of_cell: dict[str, Any], of_spec: dict[str, Any], named: str
) -> None:
    spec = msgspec.structs.replace(FULL, cells=[msgspec.structs.replace(CELL, **of_cell)], **of_spec)
    with pytest.raises(UsageError, match=f"objective p99=5ms and {named}.*remove one of them"):
        specs.check(spec, load=False)


def test_cells_of_one_experiment_have_one_objective() -> None:
    cells = [msgspec.structs.replace(CELL, group="g", objective=objective) for objective in ("p99=5ms", "p99=6ms")]
    with pytest.raises(UsageError, match=r"group 'g'.*same objective"):
        specs.check(msgspec.structs.replace(FULL, cells=cells), load=False)


def test_a_latency_longer_than_its_slices_is_refused_with_the_time_that_it_needs() -> None:
    spec = msgspec.structs.replace(FULL, cells=[msgspec.structs.replace(CELL, objective="p99=1s")])
    with pytest.raises(UsageError, match=r"objective p99=1s: .*--time 240s .*use --time \d+s") as refused:
        specs.check(spec, load=False)
    needed = float(str(refused.value).rpartition("use --time ")[2].partition("s")[0])
    assert specs.check(msgspec.structs.replace(spec, time=needed), load=False)
    with pytest.raises(UsageError, match=f"use --time {needed:.0f}s"):
        specs.check(msgspec.structs.replace(spec, time=needed - 1), load=False)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--objective", "p99"), "'p99' is not an objective"),
        (("--objective", "p99=5ms", "--rate", "100"), "objective p99=5ms and rate"),
        (("--objective", "p99=5ms", "--no-latency"), "objective p99=5ms and no latency"),
        (("--objective", "p99=5ms", "--max-rate", "100"), "objective p99=5ms and regime latency"),
    ],
)
def test_the_command_refuses_them_before_anything_starts(tmp_path: Any, argv: tuple[str, ...], words: str) -> None:
    done = ciphercost("run", "postgresql:tls", *argv, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_spec_file_holds_the_objective(tmp_path: Any) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(toml.dump(FULL))
    assert toml.load(path).cells == [CELL]
    path.write_text(toml.dump(FULL).replace("p99=5ms", "p98=5ms"))
    with pytest.raises(UsageError, match="'p98=5ms' names p98"):
        toml.load(path)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_search_takes_its_share_of_the_announced_time_and_the_place_of_the_latency_phase() -> None:
    split = schedule.budget(FULL, CELL)
    assert 8 * split.objective_s == pytest.approx(schedule.OBJECTIVE * 240)
    assert split.latency_s == 0
    assert split.total_s == pytest.approx(240)
    assert schedule.time_estimate(FULL, setup_s=0) == pytest.approx(240)
    assert schedule.budget(FULL, CellSpec("postgresql", "tls")).objective_s == 0
    assert schedule.seconds([CELL]) == 240
    assert schedule.seconds([CellSpec("mysql", "innodb-tde", objective="p99=5ms")]) == 360


def test_slices_are_long_enough_for_the_quantile_and_for_the_queue_but_a_session_has_room_for_eight_blocks() -> None:
    objective = latency_objective.parse("p99=5ms")
    long = 2000.0
    for rate in (100.0, 1_000.0, 10_000.0):
        length = latency_objective.slice_length(objective, rate, long, 0.1)
        counted = 2 * (1 - schedule.DISCARD) * length * rate
        assert counted * (1 - objective.share) >= latency_objective.WANTED * (1 - 1e-9)
        assert length >= latency_objective.SETTLED * objective.settling(rate) * (1 - 1e-9)
        assert length >= latency_objective.BACKLOG * objective.seconds
    assert latency_objective.slice_length(objective, 100.0, 18.0, 0.1) == pytest.approx(18 / (4.5 * 8))
    assert latency_objective.slice_length(objective, 1e6, 18.0, 2.0) == 2.0, "never shorter than the closed loop's"
    lowest = latency_objective.lowest_rate(objective, 18.0, 0.1)
    assert 2 * 0.8 * latency_objective.room(18.0) * lowest * (1 - objective.share) == pytest.approx(
        latency_objective.NEEDED
    )


def test_the_time_in_which_a_queue_settles_is_that_of_theory() -> None:
    """M/M/1 of 1000 operations/s at 90 %: 1/(√μ − √λ)² is 0.38 s, and p99 is 46 ms."""
    objective = latency_objective.parse("p99=46.05ms")
    assert objective.settling(900.0) == pytest.approx(1 / (1000**0.5 - 900**0.5) ** 2, rel=0.1)
