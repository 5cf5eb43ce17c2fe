"""driver-tls: each driver beside the same published figures, who pays for TLS, and a small run with a real driver."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from ciphercost.load import drivers
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import driver_tls, in_turn, pairs
from ciphercost.studies.driver_tls import DriverTls, compare, findings, published, ways
from conftest import Require, RequireServer

STUDY = DriverTls(drivers=tuple(ways.DRIVERS))
WITNESSES = ("client", "server", "wire")


def record(**changes: object) -> StudyRecord:
    """The procedure here: 1000 operations/s without TLS, 800 with it."""
    record = STUDY.begin("postgresql")
    record.version, record.complete = "18.4", True
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("postgresql"))
    for session, cell in enumerate(STUDY.procedure_cells("postgresql"), 1):
        record.proofs += [Proof(arm, witness, True, "", session) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
        for arm, rate in (("plain", 1000.0), ("encrypted", 800.0)):
            series = {in_turn.RATE: [rate], in_turn.OPERATIONS: [rate]}
            run = StudyRun(cell.workload, arm, 0.0, {"clients": 1.0}, series, mechanism="tls", server=cell.variant)
            record.runs.append(run)
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(driver: str, operation: ways.Operation, ratio: float, client: float = 30.0, server: float = 10.0) -> Cell:
    """`client`, `server`: microseconds that TLS adds to an operation at each end."""
    arms = {
        "plain": {"throughput": 1000.0, "client_cpu_us_per_op": 100.0, "server_cpu_us_per_op": 50.0},
        "encrypted": {
            "throughput": 1000.0 * ratio,
            "client_cpu_us_per_op": 100.0 + client,
            "server_cpu_us_per_op": 50.0 + server,
        },
    }
    overhead = {
        "throughput": Estimate(ratio, ratio - 0.02, ratio + 0.02),
        "client_cpu_per_op": Estimate(1 + client / 100, 1.0, 1.6),
        "server_cpu_per_op": Estimate(1 + server / 50, 1.0, 1.6),
    }
    return Cell(
        "postgresql", "18.4", "transit", "tls", operation.workload, 1, "ok", "full", overhead=overhead, arms=arms,
        variant=ways.name_of(driver, operation.workload),
    )  # fmt: skip


CELLS = [
    cell("psycopg", ways.BULK, 0.65),
    cell("pgx", ways.BULK, 0.8, 10.0, 10.0),
    cell("psycopg", ways.ROW, 1.0, 2.0, -1.0),
    cell("pgx", ways.CONNECT, 0.3),
]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_every_driver_stands_beside_the_same_published_figure() -> None:
    judged = STUDY.judged(compared())
    by_figure = {figure.figure: figure.published for figure in judged.figures}
    assert by_figure == {
        "results of 1 MB/s": pytest.approx(393.7977959 / 609.4982366),
        "rows/s": pytest.approx(4.045484225 / 4.519436183),
        "connections/s": pytest.approx(3 / 5),
    }
    assert len(judged.figures) == len(ways.DRIVERS) * len(ways.OPERATIONS)
    assert judged.published() == ["direction", "open", "direction"], "each published figure counts once"
    assert all(figure.here == pytest.approx(0.8) for figure in judged.figures)


def test_the_clients_share_is_that_of_what_both_ends_add() -> None:
    (sheet,) = compare.shares(compared())
    rows = [row for row in sheet.rows if len(row) > 1]
    assert rows == [
        ("psycopg", "+30", "+10", "75 %"),
        ("pgx", "+10", "+10", "50 %"),
        ("psycopg", "+2", "−1", "-"),
        ("pgx", "+30", "+10", "75 %"),
    ]
    assert findings.share(3.0, 0.0) == "-"
    text = " ".join(compared().findings)
    assert "that TLS adds to 1 MB is: psycopg 75 %, pgx 50 %." in text


def test_rows_without_a_network_show_the_noise_of_the_others() -> None:
    changes = [published.pymongo(STUDY, test) for test in published.WITHOUT_A_NETWORK]
    assert max(abs(change - 1) for change in changes) == pytest.approx(0.0115, abs=0.0001)
    assert published.proxy(STUDY, "before") == pytest.approx(1 / 3)


def test_the_report_prints_every_published_row_and_ends_with_what_would_tell() -> None:
    text = _study.render(compared())
    assert re.search(r"GridFsDownload +609\.5 +393\.8 +35\.4 % fewer", text)
    assert "What TLS adds to an operation, by who pays" in text
    assert compared().findings[-1].startswith("What the publications could not have told")


def test_a_driver_whose_language_is_missing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: "/usr/bin/node" if program == "node" else None)
    monkeypatch.setattr(drivers.language("go"), "is_here", lambda driver: False)
    assert driver_tls.available() == ("psycopg", "node-postgres")
    study = DriverTls()
    record = study.begin("postgresql")
    assert record.conditions == {"pgx": compare.LEFT_OUT}
    assert {cell.client for cell in study.spec("postgresql", 1.0, 1).cells} == {"psycopg", "node-postgres"}
    series = {in_turn.RATE: [1.0]}
    record.runs = [StudyRun("connect", "plain", 0.0, {}, series, mechanism="tls", server="psycopg, connect")]
    assert "pgx is left out" in compare.procedure_text(record, record, {})


def test_one_pair_that_is_not_proven_has_no_figures() -> None:
    silent = [proof for proof in record().proofs if proof.session != 2]
    result = compared(proofs=silent)
    assert not result.complete
    here = {(figure.operation, figure.figure): figure.here for figure in STUDY.judged(result).figures}
    assert here["pgx", "results of 1 MB/s"] is None
    assert here["psycopg", "results of 1 MB/s"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"duration": 0.0}, "--duration 0s"), ({"runs": 0}, "--runs 0"), ({"scale": 5}, "has no option --scale")],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_a_small_replication_with_a_real_driver(
    tmp_path: Path, require: Require, require_server: RequireServer
) -> None:
    require_server("postgresql")
    psycopg = drivers.find("psycopg", "postgresql")
    require(drivers.language("python").is_here(psycopg), "psycopg is not here")
    small = DriverTls(0.2, 1, 2, ("psycopg",), "10KB")
    spec = small.spec("postgresql", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[:1])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert all(figure.here for figure in small.judged(result.study).figures)
    assert result.cells[0].client.startswith("psycopg")
