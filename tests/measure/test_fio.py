"""fio: its output is read correctly, blocks are estimated like the load's, and it runs on real directories."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import storage
from ciphercost.host import run_ownership, supervisor
from ciphercost.measure import fio
from ciphercost.model import run_directory
from ciphercost.model.slices import StorageSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.storage_jobs import JOBS
from ciphercost.plan import schedule
from conftest import Require

Places = tuple[supervisor.Supervisor, dict[Arm, Path]]


def slices(
    sessions: int, blocks: int, ratio: float, drift: float = 0.0, job: str = "sequential_read", seed: int = 1
) -> list[StorageSlice]:
    """Blocks in the plan's order; the encrypted arm does `ratio` of the plain arm's operations; each slice is `drift`
    higher than the last.
    """
    planned = []
    for session in range(1, sessions + 1):
        coins = schedule.blocks(seed, 0, session)
        for _ in range(blocks):
            block = next(coins)
            for position, arm in enumerate(block.arms):
                rate = 1e6 * math.exp(drift * position) * (ratio if arm == "encrypted" else 1)
                draft = StorageSlice(0, session, block.number, block.order, position, arm, job)
                planned.append(
                    msgspec.structs.replace(draft, seconds=0.5, operations=round(rate), bytes=round(rate) * 8)
                )
    return planned


@given(st.floats(0.05, 2), st.floats(-0.1, 0.1), st.integers(0, 1000))
def test_the_mirrored_order_takes_a_drift_out_of_the_ratio(ratio: float, drift: float, seed: int) -> None:
    estimate = storage.estimate(slices(3, 2, ratio, drift, seed=seed), "full")["sequential_read"]
    assert estimate.ratio == pytest.approx(ratio, rel=1e-4)
    assert estimate.low <= estimate.ratio <= estimate.high


@given(st.floats(0.05, 2))
def test_fsync_reports_time_and_all_other_jobs_speed(ratio: float) -> None:
    assert storage.estimate(slices(3, 1, ratio, job="fsync_latency"), "full")["fsync_latency"].ratio == pytest.approx(
        1 / ratio, rel=1e-4
    )
    levels = storage.levels(slices(1, 1, ratio, job="fsync_latency"), "full")
    assert levels["plain"]["fsync_latency"] == pytest.approx(0.5)
    assert storage.levels(slices(1, 1, ratio), "full")["encrypted"]["sequential_read"] == pytest.approx(
        16e6 * ratio, rel=1e-4
    )


def test_sessions_are_the_unit_in_full_mode_and_blocks_in_quick_mode() -> None:
    full = storage.estimate(slices(8, 1, 0.9), "full")["sequential_read"]
    assert (full.n, full.method) == (8, "t over 8 sessions")
    quick = storage.estimate(slices(1, 6, 0.9), "quick")["sequential_read"]
    assert quick.n == 6
    assert quick.method.endswith("this server pair only")
    assert storage.estimate(slices(1, 1, 0.9), "full") == {}


@pytest.mark.parametrize("position", range(5))
def test_a_block_with_a_failed_slice_does_not_count(position: int) -> None:
    def fail(one_slice: StorageSlice) -> StorageSlice:
        broken = (one_slice.session, one_slice.position) == (2, position)
        return (
            msgspec.structs.replace(one_slice, seconds=0.0, operations=0, error="no space left")
            if broken
            else one_slice
        )

    changed = [fail(one_slice) for one_slice in slices(3, 1, 0.9)]
    assert storage.estimate(changed, "full")["sequential_read"].n == 2
    assert storage.estimate([one_slice for one_slice in changed if not one_slice.error], "full")[
        "sequential_read"
    ].n == (2 if position else 3)


@given(st.text(max_size=60))
def test_output_that_is_not_fios_is_an_error(text: str) -> None:
    parsed = fio.parse(text, StorageSlice(0, 1, 0, "ABBA", 1, "plain", ""))
    assert [one_slice.job for one_slice in parsed] == [job.name for job in JOBS]
    assert all(one_slice.error and not one_slice.operations for one_slice in parsed)


def test_a_job_that_ended_with_an_error_is_an_error() -> None:
    side = {"io_bytes": 8192, "runtime": 5, "total_ios": 2, "lat_ns": {"mean": 1000.0}}
    blank = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": {"mean": 0.0}}
    jobs = [
        {
            "jobname": job.name,
            "error": 28 if job.name == "random_write" else 0,
            "read": side if "read" in job.name else blank,
            "write": blank if "read" in job.name else side,
        }
        for job in JOBS
    ]
    text = "fio: a warning\n" + msgspec.json.encode({"jobs": jobs}).decode()
    by_job = {one_slice.job: one_slice for one_slice in fio.parse(text, StorageSlice(0, 1, 0, "ABBA", 1, "plain", ""))}
    assert "error 28" in by_job["random_write"].error
    assert by_job["sequential_read"].seconds == pytest.approx(2e-6)
    assert by_job["sequential_write"].seconds == pytest.approx(5e-3)


# ── the real one ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def directories() -> Iterator[Places]:
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        places: dict[Arm, Path] = {}
        for arm in ARMS:
            places[arm] = scratch / arm
            places[arm].mkdir(mode=0o711)
            run_ownership.hand_over(places[arm])
        yield run_supervisor, places


def test_fio_runs_on_both_directories_in_mirrored_order_and_leaves_nothing(
    require: Require, directories: Places
) -> None:
    require(fio.find(), "no fio here: apt-get install fio")
    run_supervisor, places = directories
    measured = list(fio.measure(places, 1, 7, run_supervisor, blocks=1, size=8 << 20, seconds=0.1))
    assert not [one_slice.error for one_slice in measured if one_slice.error]
    block = next(schedule.blocks(7, 0, 1))
    for job in JOBS:
        assert tuple(one_slice.arm for one_slice in measured if one_slice.job == job.name) == block.arms
    # In a tenth of a second, a busy disk may end nothing of a job.
    worked = {job.name for job in JOBS if all(one.operations for one in measured if one.job == job.name)}
    assert worked
    assert (
        storage.estimate(
            [*measured, *(msgspec.structs.replace(one_slice, session=2) for one_slice in measured)], "full"
        ).keys()
        == worked
    )
    # No job reads a block twice, which the page cache would answer; and `fsync` waits for each write.
    assert all(one_slice.bytes <= 8 << 20 for one_slice in measured if "read" in one_slice.job)
    assert not [left for place in places.values() for left in place.iterdir()]


def test_a_directory_that_can_not_be_written_is_a_clear_error(require: Require, directories: Places) -> None:
    require(fio.find(), "no fio here: apt-get install fio")
    run_supervisor, places = directories
    with pytest.raises(FileNotFoundError, match="/plain/missing/"):
        list(fio.measure({**places, "encrypted": places["plain"] / "missing"}, 1, 7, run_supervisor, size=1 << 20))
    assert not list(places["plain"].iterdir())


def test_the_record_keeps_what_fio_did(tmp_path: Path) -> None:
    from ciphercost.model.facts import CellFacts, RunFacts
    from ciphercost.model.spec import CellSpec, Spec

    written = slices(1, 1, 0.9)
    (tmp_path / "logs").mkdir()
    cell = CellSpec("null", "none")
    facts = RunFacts(1, "x", "", {}, {}, 1, Spec([cell]), [CellFacts(cell)])
    with run_directory.Record(tmp_path, facts) as kept:
        assert list(run_directory.read_beside(tmp_path, StorageSlice)) == []
        for one_slice in written:
            kept.append_beside(one_slice)
    with (tmp_path / "storage.jsonl").open("ab") as file:
        file.write(b'{"cell":0,"sess')
    assert list(run_directory.read_beside(tmp_path, StorageSlice)) == written
