"""turso-encryption: the published figures, the three columns, and a small run on a real database."""

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
from ciphercost.studies.turso_encryption import ALL, BESIDE, TursoEncryption, published
from conftest import RequireServer

STUDY = studies.get("turso-encryption")


def record(**changes: object) -> StudyRecord:
    """The procedure here: 1000 transactions a second without encryption, 900 with it."""
    record = STUDY.begin("turso,sqlite")
    record.version, record.complete = "0.8.3", True
    record.encryption = {"protocol": "turso", "cipher": "aegis256"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("turso,sqlite"))
    witnesses = record.witnesses["turso-encryption"]
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in witnesses]
    for arm, rate in (("plain", 1000.0), ("encrypted", 900.0)):
        for name in STUDY.operations:
            series = {in_turn.RATE: [rate, rate * 1.1], in_turn.OPERATIONS: [1000.0, 1100.0]}
            record.runs.append(StudyRun(name, arm, 0.0, {"clients": 1.0}, series, mechanism="turso-encryption"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(name: str, ratio: float, engine: str = "turso", **factors: str) -> Cell:
    mechanism = {"turso": "turso-encryption", "sqlite": "sqlcipher"}[engine]
    version = {"turso": "0.8.3", "sqlite": "3.50.4"}[engine]
    arms = {
        "plain": {"throughput": 1000.0, "client_cpu_us_per_op": 900.0},
        "encrypted": {"throughput": 1000.0 * ratio, "client_cpu_us_per_op": 1000.0},
    }
    overhead = {
        "throughput": Estimate(ratio, ratio - 0.01, ratio + 0.01),
        "client_cpu_per_op": Estimate(1.11, 1.10, 1.12),
    }
    return Cell(
        engine, version, "rest", mechanism, f"turso-encryption/{name}", 1, "ok", "full", factors=factors,
        overhead=overhead, arms=arms,
    )  # fmt: skip


CELLS = [
    cell("mixed", 0.95),
    cell("reads", 0.8),
    cell("writes", 1.0),
    cell("mixed", 0.7, cipher=BESIDE),
    cell("mixed", 0.6, engine="sqlite"),
]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), CELLS)


def test_the_mixed_transaction_stands_beside_the_two_rates_and_the_others_beside_the_announcement() -> None:
    judged = STUDY.judged(compared())
    by_name = {figure.operation: figure for figure in judged.figures}
    assert list(by_name) == list(STUDY.operations)
    assert by_name["mixed"].published == pytest.approx(150.36 / 158.85)
    assert [by_name[name].published for name in ("reads", "writes")] == pytest.approx([0.94, 0.86])
    assert {figure.source for figure in judged.figures} == {published.PULL, published.PAGE} == set(STUDY.sources)
    assert [judged.of(figure) for figure in judged.figures] == ["within", "direction", "differs"]
    assert all(figure.here == pytest.approx(0.9) for figure in judged.figures)
    assert re.search(r"mixed +5\.3 % fewer +10\.0 % fewer", _study.render(compared()))


def test_another_cipher_and_another_database_have_names_of_their_own() -> None:
    ours = {figure.operation: figure.ours for figure in compared().figures if figure.arm == "cost" and figure.ours}
    assert {"mixed, aes256gcm", "mixed, SQLCipher"} < set(ours)
    (text,) = (finding for finding in compared().findings if "Here (95 %)" in finding)
    assert "mixed, aes256gcm 29.0–31.0 % fewer; mixed, SQLCipher 39.0–41.0 % fewer" in text
    assert not [finding for finding in STUDY.compare(record(), CELLS[:3]).findings if "SQLCipher encrypts" in finding]
    assert compared().server == "Turso 0.8.3"


def test_the_programs_own_figures_fit_each_other() -> None:
    """100,000 transactions of 100 operations in the time printed."""
    transactions, seconds = (published.rates(STUDY, name) for name in ("transactions", "total time"))
    operations = [published.rates(STUDY, name)["plain"] for name in ("read operations", "write operations")]
    assert sum(filter(None, operations)) == 100_000 * published.BATCH
    for arm in ARMS:
        assert (transactions[arm] or 0) * (seconds[arm] or 0) == pytest.approx(100_000, rel=1e-4)


def test_the_scatter_of_runs_of_one_arm_is_printed() -> None:
    assert "compared with its slowest: 10.0 % more" in " ".join(compared().findings)
    once = record()
    once.runs = [msgspec.structs.replace(run, series={in_turn.RATE: [1.0]}) for run in once.runs]
    assert "compared with its slowest" not in " ".join(STUDY.compare(once, CELLS).findings)


def test_arms_that_are_not_proven_have_no_figures() -> None:
    silent = compared(proofs=[proof for proof in record().proofs if proof.witness != "disk"])
    assert not silent.complete
    assert "not proven: no report from: disk witness" in silent.procedure
    assert all(figure.here is None for figure in silent.figures)


def test_a_run_that_was_cut_off_says_so() -> None:
    assert compared(runs=[], complete=False).procedure.startswith("the run was cut off before")
    assert compared(complete=False).procedure.endswith("; it was cut off")
    assert compared(reason="no turso").procedure == "no turso"
    assert "then all with aegis256 (published: one run of each arm" in compared().procedure


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"duration": 0.0}, "--duration 0s: a published run must last 0.2 s"),
        ({"runs": 0}, "--runs 0: must be from 1 to 100 runs"),
        ({"rows": 10}, "--rows 10: must be from 1,000 to 100,000,000 rows"),
        ({"scale": 5}, "has no option --scale"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_sqlcipher_runs_the_same_transactions_on_as_many_rows() -> None:
    cells = STUDY.spec("turso", 10.0, 1).cells
    operations = {
        engine: [cell.workload for cell in cells if cell.engine == engine and not cell.factors]
        for engine in ("turso", "sqlite")
    }
    assert operations["turso"] == operations["sqlite"] == [f"turso-encryption/{name}" for name in STUDY.operations]
    assert {(cell.clients, cell.rows) for cell in cells} == {(1, 1_000_000)}
    assert [cell.factors["cipher"] for cell in cells if cell.factors] == [BESIDE]
    (procedure,) = STUDY.procedure_cells("turso,sqlite")
    assert (procedure.engine, procedure.workload) == ("turso", f"turso-encryption/{ALL}")


def test_a_small_replication_on_a_real_database(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("turso")
    small = TursoEncryption(0.2, 2, 2_000, sessions=2)
    spec = small.spec("turso", 2.0, 5)
    spec = msgspec.structs.replace(spec, cells=[spec.cells[0], spec.cells[-1]])
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert [cell.status for cell in result.cells] == ["ok", "ok"]
    here = [figure for figure in result.study.figures if figure.arm in ARMS and figure.here]
    assert {figure.operation for figure in here} == set(STUDY.operations)
    assert "then all with aegis256" in result.study.procedure
