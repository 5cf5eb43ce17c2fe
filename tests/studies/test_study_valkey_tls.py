"""valkey-tls: the published figures, what is computed from them, the three columns, and a small run on a real server."""

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
from ciphercost.studies.valkey_tls import ALL, MANY, ValkeyTls, compare, published
from conftest import RequireServer

STUDY = studies.get("valkey-tls")
WITNESSES = ("client", "wire")


def record(engine: str = "valkey", **changes: object) -> StudyRecord:
    """The procedure here: 1000 operations/s without TLS, 800 with it."""
    record = STUDY.begin(engine)
    record.version, record.complete = "8.1.1", True
    record.encryption = {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells(engine))
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    for arm, rate in (("plain", 1000.0), ("encrypted", 800.0)):
        for name in STUDY.operations:
            series = {in_turn.RATE: [rate, rate * 1.1], in_turn.OPERATIONS: [1000.0, 1100.0]}
            record.runs.append(StudyRun(name, arm, 0.0, {"clients": 1.0}, series, mechanism="tls"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(name: str, clients: int = 1, ratio: float = 0.78) -> Cell:
    arms = {
        "plain": {"throughput": 6000.0, "server_cpu_us_per_op": 20.0},
        "encrypted": {"throughput": 6000.0 * ratio, "server_cpu_us_per_op": 30.0},
    }
    overhead = {
        "throughput": Estimate(ratio, ratio - 0.02, ratio + 0.02),
        "server_cpu_per_op": Estimate(1.5, 1.45, 1.55),
    }
    return Cell(
        "valkey", "8.1.1", "transit", "tls", f"valkey-tls/{name}", clients, "ok", "full", overhead=overhead, arms=arms
    )


CELLS = [*(cell(name) for name in STUDY.operations), cell(compare.BOTH, MANY, 0.6)]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record("valkey", **changes), CELLS)


def test_figures_that_were_not_seen_are_left_out() -> None:
    lines = published.lines(STUDY)
    assert (lines["sets"].plain, lines["sets"].encrypted) == (6137.11, 4735.50)
    assert {name for name, line in lines.items() if line.encrypted is None} == lines.keys() - {"sets"}
    text = " ".join(compared().findings)
    assert re.search(r"36 % .*did not find its source", text)
    assert not [figure for figure in compared().figures if figure.published and figure.published < 0.7]


def test_the_published_cost_is_that_of_the_sets() -> None:
    (judged,) = STUDY.judged(compared()).figures
    assert judged.published == pytest.approx(4735.50 / 6137.11)
    assert judged.source == published.THREAD
    assert judged.here == pytest.approx(0.8)
    assert judged.ours == 0.78
    assert re.search(r"set-get +22\.8 % fewer +20\.0 % fewer", _study.render(compared()))


def test_a_rate_of_one_waiting_client_is_told_as_a_time() -> None:
    text = STUDY.finding("waiting")
    # 1 / 12274.21 s without TLS; two operations for each of 4735.50 sets with it.
    assert "81.5 µs without TLS" in text
    assert "105.6 µs with it" in text
    assert "TLS added 24.1 µs" in text
    assert "4.1 %" in text, "24.1 µs of a request that takes longer"


def test_threads_without_an_arm_in_clear_are_named_as_such() -> None:
    threads = {row["thread"]: row["title"] for row in STUDY.rows("elsewhere.csv")}
    assert list(threads) == ["valkey-io/valkey#1271", "redis/redis#13874"]
    text = STUDY.finding("without-a-plain-arm")
    assert all(f'{thread} ("{title}")' in text for thread, title in threads.items())
    assert "no arm without TLS" in text


def test_many_clients_stand_beside_one() -> None:
    text = " ".join(compared().findings)
    assert re.findall(r"set-get with (\d+) clients? ([\d.]+)–([\d.]+) % fewer", text) == [
        ("1", "20.0", "24.0"),
        ("50", "38.0", "42.0"),
    ]


def test_the_scatter_of_runs_of_one_arm_is_printed() -> None:
    assert "compared with its slowest: 10.0 % more" in " ".join(compared().findings)
    once = record()
    once.runs = [msgspec.structs.replace(run, series={in_turn.RATE: [1.0]}) for run in once.runs]
    assert "compared with its slowest" not in " ".join(STUDY.compare(once, CELLS).findings)


def test_a_server_that_says_nothing_of_its_sessions_needs_no_server_witness() -> None:
    assert record().witnesses == {"tls": ["wire", "client"]}
    assert compared().complete
    silent = compared(proofs=[proof for proof in record().proofs if proof.witness == "wire"])
    assert not silent.complete
    assert "not proven: no report from: client witness" in silent.procedure
    assert all(figure.here is None for figure in silent.figures)


def test_a_run_that_was_cut_off_says_so() -> None:
    assert compared(runs=[], complete=False).procedure.startswith("the run was cut off before")
    assert compared(complete=False).procedure.endswith("; it was cut off")
    assert compared(reason="no valkey").procedure == "no valkey"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"duration": 0.0}, "--duration 0s: a published run must last 0.2 s"),
        ({"runs": 0}, "--runs 0: must be from 1 to 100 runs"),
        (
            {"scale": 5},
            "has no option --scale, which cybertec-tde-cost, pg-tde-small-cost, postgres-tde and volume-encryption have",
        ),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_the_procedure_checks_no_certificate_as_published_and_our_method_does() -> None:
    (procedure_cell,) = STUDY.procedure_cells("redis")
    assert (procedure_cell.workload, procedure_cell.factors) == (f"valkey-tls/{ALL}", {"verify": "require"})
    cells = STUDY.spec("redis", 10.0, 1).cells
    assert [(cell.workload.partition("/")[2], cell.clients) for cell in cells] == [
        ("set-get", 1),
        ("set", 1),
        ("get", 1),
        ("set-get", MANY),
    ]
    assert not any(cell.factors for cell in cells)


def test_a_small_replication_on_a_real_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("valkey")
    small = ValkeyTls(0.2, 2, sessions=2)
    spec = small.spec("valkey", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=spec.cells[:1])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    (judged,) = small.judged(result.study).figures
    assert judged.here
    here = [figure for figure in result.study.figures if figure.arm in ARMS and figure.here]
    assert {figure.operation for figure in here} == set(STUDY.operations)
    assert "TLSv1.3" in result.study.procedure
