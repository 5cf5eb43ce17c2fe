"""volume-encryption: the page's per cent, what was saturated, and a small run of pgbench on a real server."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from ciphercost import studies
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs, tde_pairs
from ciphercost.studies.volume_encryption import VolumeEncryption, compare, procedure, published
from conftest import RequireServer

STUDY = VolumeEncryption(mechanisms=("gocryptfs",))


def record(**changes: object) -> StudyRecord:
    """The procedure here: 900 of 1000 transactions a second, and a load of 1.2 instead of 1 s."""
    record = STUDY.begin("postgresql")
    record.version, record.complete, record.tools = "17.5", True, {"pgbench": "17.5"}
    record.proofs = [
        Proof(arm, witness, True, "", 1) for arm in ARMS for witness in pairs.witnesses_of(record)["gocryptfs"]
    ]
    for arm, rates, seconds in (("plain", [1000.0, 1100.0], 1.0), ("encrypted", [900.0, 990.0], 1.2)):
        for workload in procedure.MODES:
            series = {procedure.TPS: rates}
            record.runs.append(StudyRun(workload, arm, 0.0, {}, series, mechanism="gocryptfs"))
        load = {procedure.SECONDS: [seconds]}
        record.runs.append(StudyRun(published.LOAD, arm, 0.0, {}, load, mechanism="gocryptfs"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(workload: str, ratio: float) -> Cell:
    arms = {
        "plain": {"throughput": 1000.0, "server_cpu_us_per_op": 300.0, "client_cpu_us_per_op": 50.0},
        "encrypted": {"throughput": 1000.0 * ratio, "server_cpu_us_per_op": 330.0, "client_cpu_us_per_op": 50.0},
    }
    overhead = {
        "throughput": Estimate(ratio, ratio - 0.01, ratio + 0.01),
        "server_cpu_per_op": Estimate(1.1, 1.08, 1.12),
    }
    return Cell(
        "postgresql", "17.5", "rest", "gocryptfs", compare.WORKLOADS[workload], 10, "ok", "full", overhead=overhead,
        arms=arms, cores={"server": "0", "client": "1"},
    )  # fmt: skip


CELLS = [cell(published.READ, 1.0), cell(published.OLTP, 0.85), cell(published.LOAD, 0.5)]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_the_pages_per_cent_are_those_of_a_server_without_a_replica() -> None:
    assert [published.ratio(STUDY, workload) for workload in compare.WORKLOADS] == pytest.approx([1.0, 0.85, 1.1])
    judged = STUDY.judged(compared())
    assert [judged.of(figure) for figure in judged.figures] == ["open", "direction", "direction"]
    assert [figure.here for figure in judged.figures] == pytest.approx([0.9, 0.9, 1.2])


def test_a_time_of_a_load_is_the_inverse_of_a_rate() -> None:
    figures = {figure.arm: figure for figure in compared().figures if figure.figure == "time of a load"}
    assert figures["cost"].ours == pytest.approx(2.0)
    # Ten clients, 1000 and 500 loads of 1,000 rows a second.
    assert [figures[arm].ours for arm in ARMS] == pytest.approx([10.0, 20.0])


def test_every_statement_is_printed_and_no_replica_is_measured() -> None:
    text = _study.render(compared())
    assert re.search(r"read, HA +2000 +20 to 30 %", text)
    assert re.search(r"OLTP, HA +2000 +up to 30 %", text)
    assert re.search(r"read, standalone +10 +no impact", text)
    assert "gocryptfs stands in for LUKS" in " ".join(text.split())
    assert compared().findings[-1].startswith("What the page could not have told")


def test_what_was_saturated_stands_below_the_verdict() -> None:
    report = STUDY.report(compared(), CELLS)
    titles = [sheet.title for sheet in report.sheets]
    assert titles[1] == "What limited each cell of our method, %"
    assert [row[0] for row in report.sheets[1].rows] == ["read, gocryptfs", "OLTP, gocryptfs", "load, gocryptfs"]
    assert all(len(row) == 3 for row in report.sheets[1].rows)
    assert STUDY.report(compared(), []).sheets[1].title == "Every figure"


def test_runs_of_one_arm_show_their_scatter() -> None:
    assert "compared with its slower: 10.0 % more" in " ".join(compared().findings)
    once = record()
    once.runs = [run for run in once.runs if run.operation == published.LOAD]
    assert "compared with its slower" not in " ".join(STUDY.compare(once, CELLS).findings)


def test_a_way_to_encrypt_that_is_not_proven_has_no_figures() -> None:
    result = compared(proofs=[])
    assert not result.complete
    assert all(figure.here is None for figure in result.figures)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scale": 0}, "--scale 0: must be from 1 to 2000"),
        ({"duration": 0.5}, "--duration 0.5s: pgbench runs for at least 1 second"),
        ({"runs": 0}, "--runs 0"),
        ({"mechanism": "luks"}, "--mechanism luks"),
        ({"bindir": "/x"}, "has no option --bindir"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_both_ways_to_encrypt_have_256_bits() -> None:
    study = studies.get("volume-encryption")
    cells = study.spec("postgresql", 10.0, 1).cells
    assert {cell.mechanism for cell in cells} == set(tde_pairs.FILE_SYSTEMS)
    assert {cell.factors.get("mode") for cell in cells if cell.mechanism == "fscrypt"} == {"aes-256-xts"}
    assert {cell.clients for cell in cells} == {10}


def test_a_small_replication_on_a_real_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("postgresql")
    small = VolumeEncryption(1, 1.0, 1, ("gocryptfs",), sessions=2)
    spec = small.spec("postgresql", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[1:2])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert all(figure.here for figure in small.judged(result.study).figures)
