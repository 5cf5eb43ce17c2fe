"""A run states how many bytes go to the disk where the kernel counts them, and nowhere else."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import steady
from ciphercost.estimate import written_bytes
from ciphercost.host import written_pages
from ciphercost.model import run_directory
from ciphercost.model.facts import PAGE
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import formats
from ciphercost.runs import pipeline

WRITES = {"disk_written_per_op", "disk_bytes_per_op"}


@pytest.fixture(params=[PAGE, 32 * PAGE, 0], ids=["pages", "folios", "unknown"])
def page_counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the kernel counts for a page: this machine's has only one of these."""
    monkeypatch.setattr(written_pages, "counted", lambda directory: request.param)
    return int(request.param)


def test_bytes_written_are_stated_where_they_are_counted(tmp_path: Path, page_counted: int) -> None:
    cell = CellSpec("sqlite", "sqlcipher", regime="one-core", workload="insert")
    spec = Spec([cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    (cell_of,) = result.cells
    assert cell_of.status == "ok", cell_of.reason
    assert run_directory.read_facts(directory).cells[0].page_counted == page_counted
    exact = page_counted == PAGE
    assert (set(cell_of.overhead) & WRITES == WRITES) == exact
    assert ({warning.code for warning in cell_of.warnings} & {written_bytes.CODE} == set()) == exact
    for levels in cell_of.arms.values():
        assert ("write_bytes_per_op" in levels) == exact
        assert levels.get("writes", True), "that it writes is known"
    text = " ".join(formats.get("terminal")(result).split())
    assert ("bytes written to disk are not stated" in text) == (not exact)
    assert ("of 4,096 bytes that a process writes, this kernel counts up to 131,072" in text) == (page_counted > PAGE)


def test_it_is_asked_where_the_data_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(directory: Path) -> int:
        asked.append(directory)
        return PAGE

    monkeypatch.setattr(written_pages, "counted", counted)
    cell = CellSpec("sqlite", "sqlcipher", regime="one-core")
    spec = Spec([cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    steady.measured(partial(pipeline.run, spec), tmp_path)
    assert len(set(asked)) >= 2, "those of both arms"


def test_what_only_reads_misses_no_bytes_written(tmp_path: Path) -> None:
    cell = CellSpec("sqlite", "sqlcipher", regime="one-core", workload="point-select")
    spec = Spec([cell], mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    result, _ = steady.measured(partial(pipeline.run, spec), tmp_path)
    assert written_bytes.CODE not in {warning.code for warning in result.cells[0].warnings}
