"""fips-haproxy: what follows from the RFC's tables, FIPS mode off → on in every table, and a small run on a real server."""

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
from ciphercost.studies import in_turn, pairs
from ciphercost.studies.fips_haproxy import FipsHaproxy, compare, published, ways
from conftest import RequireServer

STUDY = studies.get("fips-haproxy")
WITNESSES = ("client", "server", "wire", "process")


def record(**changes: object) -> StudyRecord:
    """The procedure here: 2000 connections/s out of FIPS mode, 1600 in it."""
    record = STUDY.begin("haproxy")
    record.version, record.complete = "3.0.11", True
    record.encryption = {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("haproxy"))
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    for arm, rate in (("plain", 2000.0), ("encrypted", 1600.0)):
        series = {in_turn.RATE: [rate, rate * 1.1], in_turn.OPERATIONS: [1000.0, 1100.0]}
        record.runs.append(StudyRun(compare.CONNECT, arm, 0.0, {"clients": 20.0}, series, mechanism="tls"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(way: ways.Way, ratio: float) -> Cell:
    arms = {
        "plain": {"throughput": 2000.0, "server_cpu_us_per_op": 500.0},
        "encrypted": {"throughput": 2000.0 * ratio, "server_cpu_us_per_op": 600.0},
    }
    overhead = {
        "throughput": Estimate(ratio, ratio - 0.02, ratio + 0.02),
        "server_cpu_per_op": Estimate(1.2, 1.15, 1.25),
    }
    return Cell(
        "haproxy", "3.0.11", "transit", "tls", way.workload, 20, "ok", "full", overhead=overhead, arms=arms,
        variant=way.name,
    )  # fmt: skip


CELLS = [cell(ways.SAME, 0.8), cell(ways.CURVE, 0.9), cell(ways.OWN, 0.67), cell(ways.KEPT, 1.0)]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_the_cost_of_fips_mode_follows_from_two_peaks() -> None:
    peaks = published.peaks(STUDY, "openssl")
    assert (peaks["plain"], peaks["encrypted"]) == (5000, 3363)
    judged = STUDY.judged(compared())
    assert {round(figure.published or 0, 6) for figure in judged.figures} == {0.6726}
    # The RFC states no key exchange, so its one figure stands beside three costs and counts once, by the least favourable.
    assert [judged.of(figure) for figure in judged.figures] == ["direction", "direction", "within"]
    assert judged.published() == ["direction"]


def test_every_table_has_fips_mode_off_and_on() -> None:
    text = _study.render(compared())
    assert "plain → encrypted" not in text
    assert "encryption costs" not in text
    assert re.search(r"P-256, RSA 2048\n +connections/s\s+5,000 → 3,363 +2,100 → 1,680 +2,000 → 1,600", text)
    assert "What FIPS mode changed" in text
    assert "kept connections" in text


def test_aws_lc_is_printed_and_not_measured() -> None:
    sheet = compare.beside(STUDY)
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert rows["peak, 1/s"] == ("5000 → 3363", "8100 → 7559")
    assert rows["CPU at 2000/s, %"] == ("- → 49", "- → 30")
    assert "not measured" in sheet.note


def test_the_key_exchange_is_told_apart_from_the_mode() -> None:
    text = " ".join(compared().findings)
    assert "the mode alone 18.0–22.0 % fewer; with the key exchange 31.0–35.0 % fewer" in text
    assert compared().findings[-1].startswith("What the RFC could not have told")


def test_the_arms_differ_in_fips_mode_alone_but_for_one_row() -> None:
    cells = {cell.variant: cell for cell in STUDY.spec("haproxy", 10.0, 1).cells}
    assert {name: cell.versus for name, cell in cells.items() if cell.versus != {"fips": "off"}} == {
        ways.OWN.name: {"fips": "off", "group": "x25519"}
    }
    assert all(cell.factors["fips"] == "on" for cell in cells.values())
    (procedure,) = STUDY.procedure_cells("nginx")
    assert procedure.variant == ways.SAME.name


def test_fips_mode_must_be_proven() -> None:
    assert "process" in record().witnesses["tls"]
    silent = compared(proofs=[proof for proof in record().proofs if proof.witness != "process"])
    assert not silent.complete
    assert "not proven: no report from: process witness" in silent.procedure
    assert all(figure.here is None for figure in silent.figures)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"duration": 0.0}, "--duration 0s"), ({"runs": 0}, "--runs 0"), ({"scale": 5}, "has no option --scale")],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_a_small_replication_on_a_real_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("haproxy")
    small = FipsHaproxy(0.2, 2, sessions=2, clients=2)
    spec = small.spec("haproxy", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[2:3])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert "TLSv1.3" in result.study.procedure
    here = {figure.arm for figure in result.study.figures if figure.here}
    assert here == {"plain", "encrypted", "cost"}
    (measured,) = result.cells
    assert measured.pair is not None
    assert measured.pair.reference.factors["fips"] == "off"
