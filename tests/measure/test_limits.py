"""Limits of the load on a server: a rate that nothing exceeds, and errors or latency that stop it."""

from __future__ import annotations

import resource
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.measure import limits
from ciphercost.model import run_directory
from ciphercost.model.errors import LoadStopped, UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.runs import pipeline
from fake import Fake

RATES = st.floats(0.1, 1e6)


def cell(**fields: object) -> CellSpec:
    return msgspec.convert({"engine": "postgresql", "mechanism": "tls"} | fields, CellSpec)


ZEROS = (
    *("cpu_user_ns", "cpu_system_ns", "bytes_sent", "bytes_received", "segments_sent", "segments_received"),
    *("connects", "resumed", "late", "threads", "rows"),
)


def answer(operations: int, errors: int) -> AgentSlice:
    fields = {"arm": "plain", "seconds": 1.0, "operations": operations, "errors": errors, "checksum": "0"}
    texts = {"histogram": "", "first_error": "no"}
    return msgspec.convert(fields | texts | dict.fromkeys(ZEROS, 0), AgentSlice)


@given(RATES, st.floats(0, 1e9), st.floats(0, 1e9))
def test_no_phase_exceeds_the_limit_or_is_a_closed_loop(limit: float, wanted: float, pilot: float) -> None:
    limited = cell(max_rate=limit, regime="latency")
    assert 0 < limits.rate(limited, wanted) <= limit
    assert 0 < limits.open_loop_rate(limited, wanted, pilot) <= limit
    assert limits.length(limited, 0.05) * limit >= min(limits.PACED_OPERATIONS, 0.05 * limit) * 0.999


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_without_a_limit_nothing_changes(wanted: float, pilot: float) -> None:
    assert limits.rate(cell(), wanted) == limits.open_loop_rate(cell(), wanted, pilot) == wanted
    assert limits.length(cell(), 0.05) == 0.05


@pytest.mark.parametrize(
    ("fields", "operations", "errors", "p99", "stops"),
    [
        ({}, 10, 990, 9.0, ""),
        ({"url": "postgresql://me@staging/"}, 80, 20, 0.0, "20 of 100 operations"),
        ({"url": "postgresql://me@staging/"}, 95, 5, 0.0, ""),
        ({"url": "postgresql://me@staging/"}, 2, 17, 0.0, ""),
        ({"max_errors": 0.04}, 95, 5, 0.0, "more than --max-errors 4%"),
        ({"max_errors": 0.06}, 95, 5, 0.0, ""),
        ({"max_latency": 0.05}, 100, 0, 0.0501, "50.1 ms, and --max-latency is 50 ms"),
        ({"max_latency": 0.05}, 100, 0, 0.05, ""),
        ({"max_latency": 0.05}, 10, 0, 1.0, ""),
    ],
)
def test_errors_and_latency_stop_the_load(
    fields: dict[str, object], operations: int, errors: int, p99: float, stops: str
) -> None:
    def checked() -> None:
        limits.check(cell(**fields), "plain", answer(operations, errors), lambda: p99)

    if not stops:
        checked()
        return
    with pytest.raises(LoadStopped) as error:
        checked()
    assert stops in str(error.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_rate": 10.0}, "regime capacity .*; write regime latency"),
        ({"max_rate": 10.0, "regime": "latency", "rate": 11.0}, "rate 11: is above max_rate 10"),
        ({"max_errors": 1.5}, "must be between 0 and 100 %"),
        ({"clients": 16, "max_connections": 30}, "this cell needs 34, .*--clients 14, or allow 34"),
        ({"max_connections": 3}, "needs at least 4, .*; allow 4"),
    ],
)
def test_limits_that_can_not_be_kept_are_refused_before_anything_starts(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        specs.plan(Spec(cells=[cell(**fields)]))


def test_cells_that_share_their_sessions_count_together() -> None:
    together = [cell(clients=4, max_connections=16, group="1", variant=name) for name in "ab"]
    with pytest.raises(UsageError, match=r"2 cells .*sessions need 18,"):
        specs.plan(Spec(cells=together))
    assert specs.most_connections(specs.plan(Spec(cells=[cell(clients=4, max_connections=10)])).cells) == 10


@pytest.mark.parametrize(("workload", "files"), [("point-select", 1), ("connect", 2)])
def test_more_connections_than_files_are_refused_with_what_fits(
    monkeypatch: pytest.MonkeyPatch, workload: str, files: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    fits = (1024 - specs.SPARE_FILES) // (2 * files)
    asked = {"engine": "postgresql", "mechanism": "tls", "workload": workload, "regime": "capacity"}
    specs.plan(Spec(cells=[msgspec.convert(asked | {"clients": fits}, CellSpec)]))
    many = [msgspec.convert(asked | {"clients": fits + 1}, CellSpec)]
    with pytest.raises(UsageError, match=rf"--clients {fits + 1}: .*hard limit here is 1024.*write --clients {fits},"):
        specs.plan(Spec(cells=many))
    specs.plan(Spec(cells=many), load=False)


def measure(directory: Path, **fields: object) -> RunFacts:
    cells = [msgspec.convert({"engine": "null", "mechanism": "busy", "regime": "latency"} | fields, CellSpec)]
    pipeline.run(Spec(cells=cells, seed=7, mode="quick", sessions=1, time=20.0), directory)
    return run_directory.read_facts(directory)


@pytest.mark.parametrize("limit", [25.0, 3000.0])
def test_every_slice_of_a_run_keeps_the_limit(tmp_path: Path, fake: Fake, limit: float) -> None:
    fake("--effect 0.02 --sd 0.01")
    facts = measure(tmp_path / "run", max_rate=limit)
    slices = list(run_directory.read_slices(tmp_path / "run"))
    assert facts.cells[0].status == "ok", facts.cells[0].reason
    assert {one_slice.phase for one_slice in slices} == {"pilot", "warmup", "latency"}
    assert all(0 < one_slice.rate <= limit for one_slice in slices)
    # The agent keeps up with it, so all of it is used.
    assert {one_slice.rate for one_slice in slices if one_slice.phase == "latency"} == {limit}


def test_a_limit_above_the_servers_capacity_leaves_it_room(tmp_path: Path, fake: Fake) -> None:
    fake("--effect 0.02 --sd 0.01")
    measure(tmp_path / "run", max_rate=1e6)
    rates = {
        one_slice.rate for one_slice in run_directory.read_slices(tmp_path / "run") if one_slice.phase == "latency"
    }
    assert len(rates) == 1
    assert rates.pop() == pytest.approx(0.6 * 20_000 / 1.02, rel=0.05)


@pytest.mark.parametrize(("skewed", "status"), [(19, "ok"), (20, "failed")])
def test_slices_that_agents_did_not_count_together_end_a_cell_only_if_none_of_many_is_counted(
    tmp_path: Path, fake: Fake, skewed: int, status: str
) -> None:
    """A busy machine delays many in a row, and nothing is wrong with the server."""
    fake(f"--sd 0.01 --skewed {skewed}")
    facts = measure(tmp_path / "run")
    assert (facts.cells[0].status, "9 ms apart" in facts.cells[0].reason) == (status, status == "failed")
    failed = [one_slice for one_slice in run_directory.read_slices(tmp_path / "run") if one_slice.error]
    assert len(failed) == skewed


def test_the_slice_that_stops_the_load_is_the_last_and_is_in_the_record(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01 --fail-after 60 --fail-share 0.3")
    facts = measure(tmp_path / "run", max_errors=0.2)
    slices = list(run_directory.read_slices(tmp_path / "run"))
    assert len(slices) > 50
    assert [one_slice.agent is not None and one_slice.agent.errors > 0 for one_slice in slices].index(True) == len(
        slices
    ) - 1
    assert facts.cells[0].status == "failed"
    assert "the load on this server was stopped" in facts.cells[0].reason
    assert "out of memory" in facts.cells[0].reason
