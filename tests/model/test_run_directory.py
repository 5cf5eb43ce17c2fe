"""The record of a run: written early and read back completely."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost.model import run_directory
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts
from ciphercost.model.slices import Proof, SliceRecord
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import conclude


def facts() -> RunFacts:
    cells = [CellSpec("null", "busy")]
    return RunFacts(FORMAT, "id", "now", {}, {}, 1, Spec(cells=cells), [CellFacts(spec=cell) for cell in cells])


def slice_record(number: int) -> SliceRecord:
    return SliceRecord(0, 1, "capacity", number, "ABBA", 1, "plain", 0.0, 0.1)


def test_a_slice_is_on_disk_the_moment_it_is_appended(tmp_path: Path) -> None:
    directory = run_directory.directory_for("r", tmp_path / "r")
    with run_directory.Record(directory, facts()) as open_record:
        open_record.append(slice_record(1))
        assert len(list(run_directory.read_slices(directory))) == 1
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_last_line_cut_off_by_a_kill_is_skipped(tmp_path: Path) -> None:
    directory = run_directory.directory_for("r", tmp_path / "r")
    with run_directory.Record(directory, facts()) as open_record:
        open_record.append(slice_record(1))
        open_record.append(slice_record(2))
    path = directory / "slices.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert [slice_.block for slice_ in run_directory.read_slices(directory)] == [1]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    directory = run_directory.directory_for("r", tmp_path / "r")
    with run_directory.Record(directory, facts()) as open_record:
        open_record.append(slice_record(1))
    path = directory / "slices.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    with pytest.raises(UsageError, match="line 1"):
        list(run_directory.read_slices(directory))


def test_a_directory_that_is_not_empty_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    with pytest.raises(UsageError, match="not an empty directory"):
        run_directory.directory_for("r", tmp_path)


def test_facts_and_proofs_read_back_as_they_were_written(tmp_path: Path) -> None:
    directory = run_directory.directory_for("r", tmp_path / "r")
    proof = Proof("encrypted", "wire", passed=True, detail="x", session=1)
    with run_directory.Record(directory, facts()) as open_record:
        open_record.prove(0, [proof])
    assert run_directory.read_facts(directory) == facts()
    assert run_directory.read_proofs(directory) == [(0, proof)]


def test_an_unknown_run_is_refused_with_a_list_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"\./runs has none"):
        run_directory.find("nothing")


@pytest.mark.parametrize("content", ["[1]", '{"a": 1}', "5", '[{"cell": "x"}]', "[{}]"])
def test_damaged_proofs_are_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "proofs.json").write_text(content)
    with pytest.raises(UsageError, match=r"proofs\.json: .*the record is damaged"):
        run_directory.read_proofs(tmp_path)


@pytest.mark.parametrize("content", ['{"format": "x"}', "[]", "5", "{}"])
def test_a_damaged_plan_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(UsageError, match=r"plan\.json: .*the record is damaged"):
        run_directory.read_facts(tmp_path)


@pytest.mark.parametrize("cell", [-1, 1, 99])
def test_a_slice_of_an_unknown_cell_is_reported(tmp_path: Path, cell: int) -> None:
    with run_directory.Record(run_directory.directory_for("r", tmp_path / "run"), facts()) as open_record:
        open_record.append(msgspec.structs.replace(slice_record(1), cell=cell))
    with pytest.raises(UsageError, match=f"a slice of cell {cell}" if cell > 0 else ">= 0 in `cell`"):
        conclude.result_of(tmp_path / "run")


def test_a_cell_whose_slices_are_gone_is_not_ok(tmp_path: Path) -> None:
    known = facts()
    known.cells[0].status, known.ended = "ok", "2026-01-01T00:00:00Z"
    with run_directory.Record(run_directory.directory_for("r", tmp_path / "run"), known):
        pass
    (cell,) = conclude.result_of(tmp_path / "run").cells
    assert (cell.status, cell.overhead) == ("failed", {})
    assert "no counted slices" in cell.reason


def test_a_file_replaced_before_the_lock_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process replaces the file between open and lock: the locked file must be the current one."""
    path = tmp_path / "slices.jsonl"
    path.touch()
    locks: list[int] = []

    def overtaken(file: Any, how: int) -> None:
        if not locks:
            (tmp_path / "new").touch()
            (tmp_path / "new").replace(path)
        locks.append(how)
        real(file, how)

    real = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", overtaken)
    with run_directory.open_locked(tmp_path) as file:
        assert os.path.samestat(os.fstat(file.fileno()), path.stat())
    assert len(locks) == 2


FILLING = """
import resource, sys
from pathlib import Path
from ciphercost.model.run_directory import append_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # a file system that takes the beginning of a line
with Path(sys.argv[1]).open("ab", buffering=0) as file:
    append_whole(file, b"a" * 599 + b"\\n")
    try:
        append_whole(file, b"b" * 599 + b"\\n")
    except OSError as error:
        print(error.errno)
    append_whole(file, b"c" * 99 + b"\\n")
"""


def test_a_line_that_does_not_fit_leaves_nothing_of_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLING, str(tmp_path / "lines")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == errno.EFBIG
    assert [line[:1] for line in (tmp_path / "lines").read_text().splitlines()] == ["a", "c"]
