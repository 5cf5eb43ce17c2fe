"""valkey-storm: the published figures, what is computed from them, the three columns, and a small run on a real server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ciphercost import studies
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.storms import StormArm, StormResult
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs
from ciphercost.studies.valkey_storm import ValkeyStorm, compare, procedure, published
from conftest import RequireServer

STUDY = studies.get("valkey-storm")
DURING = "throughput_during"


def record(**changes: object) -> StudyRecord:
    """The procedure here: 160 new connections a second take 2 % in clear and 30 % with TLS."""
    record = STUDY.begin("valkey")
    record.version, record.complete = "8.1.1", True
    record.encryption = {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("valkey"))
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in record.witnesses["tls"]]
    for arm, during in (("plain", 98.0), ("encrypted", 70.0)):
        series = {procedure.QUIET: [90.0, 110.0], procedure.STORM: [during] * 2, procedure.OPENED: [160.0] * 2}
        record.runs.append(StudyRun(procedure.OPERATION, arm, 0.0, {"clients": 50.0}, series, mechanism="tls"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(name: str = compare.FIRST, ratio: float = 0.64) -> Cell:
    levels = {"throughput_before": 2e4, DURING: 1.3e4, "back_p50": 12.0, "back_last": 40.0}
    arms = {
        "plain": StormArm(levels, {DURING: Estimate(0.97, 0.96, 0.98)}, 640, 0),
        "encrypted": StormArm(levels, {DURING: Estimate(ratio, ratio - 0.04, ratio + 0.04)}, 640, 0),
    }
    storm = StormResult(
        "saturated", "saturated=160", 0.0, 0.5, 80, 8, {}, arms, {DURING: Estimate(0.66, 0.62, 0.7)}
    )  # fmt: skip
    return Cell("valkey", "8.1.1", "transit", "tls", "valkey-storm/set", 50, "ok", "full", variant=name, storm=storm)


def compared(*cells: Cell, **changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), list(cells or (cell(),)))


def test_the_published_fall_stands_beside_ours_with_tls_and_none_without() -> None:
    result = compared()
    (judged,) = STUDY.judged(result).figures
    assert judged.operation == "TLS, RSA 2048"
    assert judged.published == pytest.approx(670 / 1050)
    assert judged.here == pytest.approx(0.7)
    assert judged.low == pytest.approx(0.6)
    assert judged.high == pytest.approx(0.68)
    assert STUDY.judged(result).of(judged) == "within"
    plain = [figure for figure in result.figures if figure.operation.startswith("no TLS")]
    assert any(figure.ours == 0.97 for figure in plain)
    assert all(figure.published is None for figure in plain)


def test_what_tls_adds_is_printed_with_the_time_of_new_connections() -> None:
    text = " ".join(_study.render(compared()).split())
    assert "RSA 2048 34.0 % fewer (30.0–38.0 %) 12.00 → 12.00 40.00 → 40.00" in text
    assert "Here new connections without TLS take (95 %): 2.0–4.0 % fewer (beside RSA 2048)" in text
    # (1 − 0.68) / 160 to (1 − 0.60) / 160 seconds
    assert "with TLS 2 to 2.5 ms" in text


def test_handshakes_in_io_threads_are_published_alone() -> None:
    (alone,) = [
        figure
        for figure in compared().figures
        if figure.operation.startswith("published alone") and figure.arm == "cost"
    ]
    assert alone.published == pytest.approx(990 / 1050)
    assert alone not in STUDY.judged(compared()).figures


def test_a_cell_without_storms_has_no_figure() -> None:
    result = compared(msgspec.structs.replace(cell(), storm=None))
    assert all(figure.ours is None for figure in result.figures)
    assert "Here the lost operations/s" not in " ".join(result.findings)


def test_an_arm_that_falls_by_nothing_has_no_time_below_zero() -> None:
    text = " ".join(compared(cell(ratio=1.0)).findings)
    assert "with TLS at most 0.25 ms" in text


def test_figures_of_arms_that_were_not_proven_are_left_out() -> None:
    result = compared(proofs=record().proofs[:1])
    assert not result.complete
    assert "not proven" in result.procedure
    assert all(figure.here is None for figure in result.figures)
    assert compared(complete=False).procedure.endswith("; it was cut off")


def test_the_times_of_a_connection_follow_from_the_published_rates() -> None:
    fall = published.fall(STUDY, published.MAIN)
    assert f"{1e3 * (1 - fall.during / fall.before) / published.RATE:.2f} ms" in STUDY.finding("a-connection")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"duration": 0.0}, "--duration 0s: a published run must last 0.2 s"),
        ({"runs": 0}, "--runs 0: must be from 1 to 100 runs"),
        ({"scale": 5}, "has no option --scale"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_each_certificate_has_a_cell_with_the_published_storm() -> None:
    cells = STUDY.spec("redis", 10.0, 1).cells
    assert [(one.factors["certificate"], one.storm) for one in cells] == [
        ("rsa2048", "saturated=160"),
        ("ecdsa-p256", "saturated=160"),
    ]


def test_a_small_replication_on_a_real_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("valkey")
    small = ValkeyStorm(0.3, 1, sessions=2, clients=4)
    spec = small.spec("valkey", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[:1])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    (judged,) = small.judged(result.study).figures
    assert judged.here
    assert judged.low is not None
    assert "TLSv1.3" in result.study.procedure
