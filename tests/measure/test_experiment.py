"""experiment: cells that share their sessions: interleaved blocks, one cell's end is not the others', and the
comparison is right.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import fake as fake_agent
from ciphercost.measure.cell_errors import without_block
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix, schedule
from ciphercost.report import formats
from ciphercost.runs import pipeline
from fake import Fake

REFERENCE = CellSpec("null", "busy", regime="one-core")


def measure(directory: Path, *effects: str, mode: str = "full") -> Result:
    cells = matrix.matrix(REFERENCE, [f"effect={','.join(effects)}"])
    spec = Spec(cells=cells, seed=7, mode=mode, sessions=8 if mode == "full" else 1, time=60.0, latency=False)  # type: ignore[arg-type]
    return pipeline.run(spec, directory)


class Measured(NamedTuple):
    result: Result
    directory: Path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    """By mode: an experiment of two equal cells and a dearer one."""
    by_mode = {}
    for mode in ("full", "quick"):
        place = tmp_path_factory.mktemp(mode)
        with fake_agent.in_place(place, "--busy 50000 --sd 0.01"):
            by_mode[mode] = Measured(measure(place / "run", "2%", "2.0%", "10%", mode=mode), place / "run")
    return by_mode


@pytest.fixture(scope="module")
def one_failed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """An experiment whose second cell's agent ends."""
    place = tmp_path_factory.mktemp("failed")
    with fake_agent.in_place(place, "--busy 50000 --sd 0.001 --die-busy 74000"):
        return measure(place / "run", "10%", "50%", "2%", "20%")


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_the_cost_difference_between_variants_is_estimated(compared: dict[str, Measured], mode: str) -> None:
    result = compared[mode].result
    reference, same, dearer = result.cells
    assert [cell.status for cell in result.cells] == ["ok"] * 3
    assert reference.against_reference is None
    assert same.against_reference is not None
    assert same.against_reference.low < 1 < same.against_reference.high
    assert dearer.against_reference is not None
    assert dearer.against_reference.low < 1.02 / 1.10 < dearer.against_reference.high
    assert dearer.against_reference.p_value is not None
    assert dearer.against_reference.p_value < 0.001


def test_the_cells_of_an_experiment_alternate_block_by_block(compared: dict[str, Measured]) -> None:
    order = [
        (one_slice.session, one_slice.cell)
        for one_slice in run_directory.read_slices(compared["full"].directory)
        if one_slice.phase == "capacity"
    ]
    changes = sum(a != b for a, b in itertools.pairwise(order))
    blocks = len(order) // 5
    assert changes > blocks / 2, "of a fair order two thirds of the blocks follow another cell's"
    assert sorted(order, key=lambda entry: entry[0]) == order, "a session is over before the next begins"


def test_the_end_of_one_cell_is_not_the_end_of_the_others(one_failed: Result) -> None:
    good, bad, *others = one_failed.cells
    assert (good.status, bad.status, *(cell.status for cell in others)) == ("ok", "failed", "ok", "ok")
    assert {cell.sessions for cell in (good, *others)} == {8}
    assert "the agent ended" in bad.reason
    assert not bad.overhead


def test_the_table_starts_with_the_lowest_cost_and_keeps_failed_cells(one_failed: Result) -> None:
    text = formats.get("terminal")(one_failed)
    text = text[text.index("one experiment") :]
    places = [text.index(word) for word in ("effect=2%", "effect=10%  ", "effect=20%", "effect=50%: FAILED")]
    assert places == sorted(places), text
    assert "4 cells in the same 8 sessions" in text
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_every_cell_of_an_experiment_runs_on_the_cores_of_its_regime(compared: dict[str, Measured]) -> None:
    facts = [cell.cores for cell in compared["full"].result.cells]
    assert facts[0]["server"] == facts[0]["agent"]
    assert facts == [facts[0]] * 3


def test_in_an_open_loop_the_table_shows_latency(tmp_path: Path, fake: Fake) -> None:
    fake("--busy 50000 --sd 0.001")
    cells = matrix.matrix(msgspec.structs.replace(REFERENCE, regime="latency", rate=2000.0), ["effect=2%,10%"])
    text = formats.get("terminal")(
        pipeline.run(Spec(cells=cells, seed=7, mode="quick", sessions=1, time=60.0), tmp_path / "run")
    )
    assert "latency p50" in text
    assert "% higher" in text
    assert ": OK" not in text


def test_two_targets_are_two_experiments() -> None:
    cells = [
        cell
        for number, version in enumerate(("10.11", "11.8"))
        for cell in matrix.matrix(CellSpec("mariadb", "tls", version=version), ["cipher=aes256-gcm,chacha20"], number)
    ]
    assert schedule.groups(Spec(cells=cells)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["cipher"], "NAME=VALUE,VALUE"),
        (["cipher=aes128-gcm"], "NAME=VALUE,VALUE"),
        (["cipher=a,b", "cipher=c,d"], "given twice"),
        (["cipher=a,a"], "twice"),
        (["version=1.2,1.3"], "remove it from --set"),
        (["clients=1,two"], "--matrix clients=two: not a whole number"),
    ],
)
def test_a_matrix_that_means_nothing_is_refused(given: list[str], words: str) -> None:
    cell = CellSpec("postgresql", "tls", factors={"version": "1.2"})
    with pytest.raises(UsageError, match=words):
        matrix.matrix(cell, given)


def test_a_matrix_changes_one_factor_at_a_time() -> None:
    cells = matrix.matrix(CellSpec("postgresql", "tls"), ["cipher=aes128-gcm,chacha20", "clients=1,8,16"])
    seen = [(cell.factors["cipher"], cell.clients) for cell in cells]
    assert seen == [("aes128-gcm", 1), ("chacha20", 1), ("aes128-gcm", 8), ("aes128-gcm", 16)]
    assert [cell.variant for cell in cells] == [
        "cipher=aes128-gcm clients=1",
        "cipher=chacha20",
        "clients=8",
        "clients=16",
    ]
    assert len({cell.group for cell in cells}) == 1


def test_a_cell_without_a_block_says_why() -> None:
    idle = SliceRecord(0, 1, "capacity", 1, "ABBA", 1, "plain", 0.0, 0.1)
    reason = without_block([idle], 0.1)
    assert "no operation finished" in reason
    assert "0.1 s" in reason
    assert "--time" in reason
    pilot, first, last = (
        msgspec.structs.replace(idle, phase=phase, error=error)
        for phase, error in (("pilot", "too early"), ("capacity", "31.0 ms apart"), ("capacity", "44.0 ms apart"))
    )
    reason = without_block([pilot, first, idle, last], 0.1)
    assert "2 slices of 0.1 s failed" in reason
    assert ": 44.0 ms apart" in reason
    assert "31.0" not in reason
