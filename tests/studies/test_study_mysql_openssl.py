"""mysql-openssl: limits inferred from two posts, versions compared in one experiment, and a small run on a real server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ciphercost import studies
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import agreement, figures, in_turn, pairs
from ciphercost.studies.mysql_openssl import MysqlOpenssl, compare, published
from conftest import RequireServer

STUDY = studies.get("mysql-openssl")
WITNESSES = ("client", "server", "wire", "process")
RATES = {"3.0": 1000.0, "3.5": 1020.0, "3.6": 900.0}


def record(engine: str = "mariadb", **changes: object) -> StudyRecord:
    """The procedure here: 2 % more queries a second with 3.5 than with 3.0, 10 % fewer with 3.6."""
    record = STUDY.begin(engine)
    record.version, record.complete = "11.8.9", True
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells(engine))
    record.proofs = [
        Proof(arm, witness, True, "", session)  # type: ignore[arg-type]
        for session in range(1, 4)
        for arm in ("plain", "encrypted")
        for witness in WITNESSES
    ]
    for version, rate in RATES.items():
        for name in STUDY.operations:
            series = {in_turn.RATE: [rate], in_turn.OPERATIONS: [rate]}
            record.runs.append(
                StudyRun(
                    name, "encrypted", 0.0, {"clients": 16.0}, series, mechanism="tls", server=compare.variant(version)
                )
            )
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(operation: str, variant: str, against: tuple[float, float, float] | None) -> Cell:
    arms = {
        "plain": {"throughput": 5000.0, "server_cpu_us_per_op": 20.0},
        "encrypted": {"throughput": 4000.0, "server_cpu_us_per_op": 25.0},
    }
    overhead = {"throughput": Estimate(0.8, 0.79, 0.81), "server_cpu_per_op": Estimate(1.25, 1.2, 1.3)}
    return Cell(
        "mariadb", "11.8.9", "transit", "tls", "point-select", 16, "ok", "full", overhead=overhead, arms=arms,
        group=operation, variant=variant, against_reference=Estimate(*against) if against else None,
    )  # fmt: skip


CELLS = [
    cell("point-select", "OpenSSL 3.0", None),
    cell("point-select", "OpenSSL 3.5", (1.01, 1.0, 1.02)),
    cell("point-select", "OpenSSL 3.6", (0.95, 0.85, 1.05)),
    cell("reconnect", "OpenSSL 3.0", None),
    cell("reconnect", "OpenSSL 3.5", (1.1, 1.05, 1.15)),
    cell("reconnect", "OpenSSL 3.6", (1.0, 0.98, 1.02)),
    cell("reconnect", "OpenSSL 3.5 X25519MLKEM768", (0.9, 0.88, 0.92)),
]


def compared(engine: str = "mariadb", **changes: object) -> StudyResult:
    return STUDY.compare(record(engine, **changes), CELLS)


def test_two_versions_below_the_same_best_library_have_an_inferred_limit() -> None:
    limits = published.limits(STUDY, "mariadb")
    assert {key: (limit.bound, round(limit.ratio, 4)) for key, limit in limits.items()} == {
        ("point-select", "3.5"): ("either", 1.0989),
        ("point-select", "3.6"): ("either", 1.0989),
        ("reconnect", "3.5"): ("either", 1.0309),
        ("reconnect", "3.6"): ("either", 1.0309),
    }
    assert "The limits are inferred" in STUDY.caveat(compared())


def test_a_conclusion_without_a_figure_is_a_limit_too() -> None:
    limits = published.limits(STUDY, "mysql")
    assert {(limit.bound, limit.ratio) for limit in limits.values()} == {("least", 1.0)}
    result = compared("mysql")
    assert result.published_server == published.SERVERS["mysql"]
    assert not STUDY.caveat(result)
    assert "not fewer" in _study.render(result)


def test_each_version_is_held_against_3_0() -> None:
    judged = STUDY.judged(compared())
    agreements = {figure.operation: (judged.of(figure), figure.bound) for figure in judged.figures}
    assert agreements == {
        "point-select, 3.5 ÷ 3.0": ("holds", "either"),
        "point-select, 3.6 ÷ 3.0": ("open", "either"),
        "reconnect, 3.5 ÷ 3.0": ("fails", "either"),
        "reconnect, 3.6 ÷ 3.0": ("holds", "either"),
        "reconnect, 3.5 X25519MLKEM768 ÷ 3.0": ("", ""),
    }
    here = {figure.operation: figure.here for figure in figures.between(compared().figures)}
    assert here["reconnect, 3.5 ÷ 3.0"] == pytest.approx(1.02)
    assert here["reconnect, 3.5 X25519MLKEM768 ÷ 3.0"] is None


def test_the_report_has_every_version_and_prints_limits_as_limits() -> None:
    text = _study.render(compared())
    assert text.startswith(f"{agreement.HEADS_OF_LIMITS['partly']}: of 4 published costs, 2 hold as limits")
    assert "at most 3.1 % apart" in text
    assert "Every version: queries a second" in text
    assert "OpenSSL 3.5 X25519MLKEM768" in text
    assert "What the version of OpenSSL changed" in text


def test_what_was_not_seen_is_named() -> None:
    text = " ".join(compared().findings)
    assert "MySQL (Kravtchuk, 2026; " in text
    assert "but no figure" in text
    assert "wolfSSL and OpenSSL 1.1.1 are not measured" in text


def test_all_versions_use_one_key_exchange_that_the_server_has() -> None:
    for engine, group in (("mariadb", "x25519"), ("mysql", "p256")):
        cells = STUDY.spec(engine, 10.0, 1).cells
        assert {cell.factors["group"] for cell in cells if "MLKEM" not in cell.variant} == {group}
        assert {cell.factors["library"] for cell in cells} == {"openssl-3.0", "openssl-3.5", "openssl-3.6"}
        for operation in STUDY.operations:
            of_operation = [cell for cell in cells if cell.group == operation]
            assert of_operation[0].variant == "OpenSSL 3.0", "the reference"
            assert {cell.per_request for cell in of_operation} == {operation == compare.RECONNECT}
    assert not [cell for cell in STUDY.spec("mysql", 10.0, 1).cells if "MLKEM" in cell.variant]


def test_the_loaded_library_must_be_proven() -> None:
    assert "process" in record().witnesses["tls"]
    silent = [proof for proof in record().proofs if proof.witness != "process" or proof.session != 2]
    result = compared(proofs=silent)
    assert not result.complete
    assert "no report from: process witness" in result.procedure
    here = {figure.operation: figure.here for figure in figures.between(result.figures)}
    assert here["reconnect, 3.5 ÷ 3.0"] is None
    assert here["reconnect, 3.6 ÷ 3.0"] == pytest.approx(0.9)


def test_a_small_replication_on_a_real_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("mariadb")
    small = MysqlOpenssl(0.2, 1, sessions=2, rows=300, clients=2)
    spec = small.spec("mariadb", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[:2])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    here = {figure.operation: figure.here for figure in figures.between(result.study.figures)}
    assert all(here[f"{name}, {version} ÷ 3.0"] for name in STUDY.operations for version in ("3.5", "3.6"))
