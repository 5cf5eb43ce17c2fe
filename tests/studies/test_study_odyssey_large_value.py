"""odyssey-large-value: the issue's quotient beside ours, growth with the size, and a small run on real poolers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphercost import hops, studies
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs
from ciphercost.studies.odyssey_large_value import OdysseyLargeValue, compare, procedure, published, ways
from conftest import Require, RequireServer

STUDY = studies.get("odyssey-large-value")
WITNESSES = ("client", "server", "wire")
ARMS = ("plain", "encrypted")


def record(size: int = published.BYTES, **changes: object) -> StudyRecord:
    """The procedure here: 300 ms through PgBouncer, 330 ms through Odyssey."""
    record = OdysseyLargeValue(size).begin("postgresql")
    record.version, record.complete = "15.18", True
    record.tools = {"psql": "15.18", "pgbouncer": "1.24.1", "odyssey": "1.5.2"}
    record.witnesses = pairs.witnesses_of(record, STUDY.procedure_cells("postgresql"))
    record.proofs = [
        Proof(arm, witness, True, "", session)  # type: ignore[arg-type]
        for session in (1, 2)
        for arm in ARMS
        for witness in WITNESSES
    ]
    for pooler, mean in (("pgbouncer", 300.0), ("odyssey", 330.0)):
        series = {procedure.REAL: [mean - 10, mean + 10]}
        load = {"clients": 1.0, procedure.SIZE: float(size)}
        server = ways.POOLERS[pooler]
        record.runs.append(StudyRun(ways.WORKLOAD, "encrypted", 0.0, load, series, mechanism="tls", server=server))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(pooler: str, size: int, before: float, ratio: float, against: Estimate | None = None) -> Cell:
    """`before`: milliseconds of a value without TLS; `ratio`: of rates; `against`: Odyssey's ÷ PgBouncer's."""
    rate = 1e3 / before
    arms = {
        "plain": {"throughput": rate, "hop_cpu_us_per_op": 1e3 * before / 2},
        "encrypted": {"throughput": rate * ratio, "hop_cpu_us_per_op": 1e3 * before / 1.5},
    }
    overhead = {"throughput": Estimate(ratio, ratio - 0.01, ratio + 0.01), "hop_cpu_per_op": Estimate(1.33, 1.3, 1.4)}
    return Cell(
        "postgresql", "15.18", "transit", "tls", ways.WORKLOAD, 1, "ok", "full", overhead=overhead, arms=arms,
        group=ways.label(size), variant=ways.POOLERS[pooler], against_reference=against,
    )  # fmt: skip


def cells(size: int, square: bool = False) -> list[Cell]:
    """PgBouncer: time grows with the size. Odyssey: so too, or with its square over TLS."""
    small, large = ways.sizes(size)
    costs = [1 / 4, 1 / 16] if square else [0.8, 0.8]
    each = {small: 50.0, large: 200.0}
    return [
        cell(pooler, of, each[of], cost if pooler == "odyssey" else 0.8, against)
        for of, cost in zip((small, large), costs, strict=True)
        for pooler, against in (
            ("pgbouncer", None),
            ("odyssey", Estimate(cost / 0.8, cost / 0.8 * 0.9, cost / 0.8 * 1.1, n=8)),
        )
    ]


def compared(size: int = published.BYTES, *, square: bool = False, **changes: object) -> StudyResult:
    return OdysseyLargeValue(size).compare(record(size, **changes), cells(size, square))


def test_the_published_quotient_stands_beside_ours() -> None:
    judged = STUDY.judged(compared())
    (cost,) = [figure for figure in judged.figures if figure.published is not None]
    assert cost.published == pytest.approx(20.812 / 0.714)
    assert cost.here == pytest.approx(1.1)
    assert cost.ours == pytest.approx(1.0)
    assert judged.of(cost) == "differs"
    (cost,) = STUDY.headline(compared(square=True))
    assert cost.ours == pytest.approx(12.8), "TLS takes a sixteenth of the rate, not four fifths"
    assert STUDY.judged(compared(square=True)).of(cost) == "direction"


def test_the_first_table_answers_the_question() -> None:
    sheet = compare.answer(STUDY, compared())
    assert [row[0] for row in sheet.rows] == [
        "as published, 40 MB", "psql here, 40 MB", "our method, 40 MB", "our method, 10 MB",
    ]  # fmt: skip
    assert sheet.rows[0][1:] == ("- → 714.0", "- → 20,812", "- → 29.1")
    assert sheet.rows[1][1:] == ("- → 300.0", "- → 330.0", "- → 1.1")
    assert sheet.rows[2][1:] == ("200.0 → 250.0", "200.0 → 250.0", "1 → 1")


@pytest.mark.parametrize(("square", "words"), [(False, "4 times as long with Odyssey"), (True, "16 times as long")])
def test_time_that_grows_with_the_square_is_seen(square: bool, words: str) -> None:
    (cause,) = [finding for finding in compared(square=square).findings if "writev" in finding]
    assert words in cause
    assert "4 times as long with PgBouncer" in cause


def test_nothing_is_published_of_another_size() -> None:
    result = compared(1_000_000)
    study = OdysseyLargeValue(1_000_000)
    assert study.headline(result) == []
    text = " ".join(_study.render(result).split())
    assert "Published for a value of 40 MB alone" in text
    assert "1 MB, Odyssey ÷ PgBouncer not published 10.0 % more" in text
    assert "as published, 40 MB - → 714.0" in text


def test_the_report_states_versions_and_ends_with_what_would_tell() -> None:
    result = compared()
    assert "(PgBouncer 1.24.1, Odyssey 1.5.2)" in result.procedure
    assert "PgBouncer 300 ± 14 ms; Odyssey 330 ± 14 ms" in result.procedure
    assert result.findings[-1].startswith("What the issue could not have told")
    assert re.search(r"pooler's CPU, µs\n? +not published", _study.render(result))


def test_a_run_without_its_procedure_says_so() -> None:
    assert compared(runs=[], complete=False).procedure.startswith("the run was cut off before")
    assert compared(runs=[], reason="no psql").procedure == "no psql"
    unproven = compared(proofs=[])
    assert not unproven.complete
    assert all(figure.here is None for figure in unproven.figures)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": "3KB"}, "--size 3KB: a value must have from 4KB to 250MB"),
        ({"size": "1GB"}, "--size 1GB: a value must have from 4KB to 250MB"),
        ({"size": "big"}, "--size"),
        ({"runs": 0}, "--runs 0: must be from 1 to 100"),
        ({"delay": "1ms"}, "has no option --delay"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_its_cells_differ_in_pooler_and_size_alone() -> None:
    spec = STUDY.configured({"size": "8MB"}).spec("postgresql", 10.0, 1)
    assert [(cell.group, cell.variant) for cell in spec.cells] == [
        ("2 MB", "PgBouncer"), ("2 MB", "Odyssey"), ("8 MB", "PgBouncer"), ("8 MB", "Odyssey"),
    ]  # fmt: skip
    assert [cell.factors["size"] for cell in spec.cells] == ["2000000", "2000000", "8000000", "8000000"]
    assert len({(cell.workload, cell.clients) for cell in spec.cells}) == 1


def test_a_small_replication_on_a_real_server(tmp_path: Path, require: Require, require_server: RequireServer) -> None:
    require_server("postgresql", "15")
    require(_has_poolers(), "there is no Odyssey or no PgBouncer")
    small = OdysseyLargeValue(1_000_000, runs=2, sessions=2)
    result, _ = replicate.run_in(small, small.spec("postgresql", 2.0, 5), tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    over_tls = [
        figure
        for figure in result.study.figures
        if (figure.figure, figure.arm) == (compare.TIME, "encrypted") and figure.operation.startswith("1 MB")
    ]
    assert len(over_tls) == 2
    assert all(figure.here for figure in over_tls)
    assert [cell.status for cell in result.cells] == ["ok"] * 4
    assert all(cell.arms["encrypted"]["hop_cpu_us_per_op"] > 0 for cell in result.cells)


def test_a_psql_that_reaches_no_server_ends_the_procedure_with_its_words(
    tmp_path: Path, require: Require, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_server("postgresql", "15")
    require(_has_poolers(), "there is no Odyssey or no PgBouncer")
    monkeypatch.setattr(procedure, "ENVIRONMENT", {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/nonexistent"})
    small = OdysseyLargeValue(4_000, runs=1, sessions=2)
    result, _ = replicate.run_in(small, small.spec("postgresql", 2.0, 5), tmp_path / "run")
    assert result.study is not None
    assert not result.study.complete
    assert "PgBouncer, 4 KB: psql did not start or did not reach the server" in result.study.procedure
    assert "root certificate" in result.study.procedure


def _has_poolers() -> bool:
    try:
        return all(hops.get(name).find(fetch=False) for name in ways.POOLERS)
    except MissingServer:
        return False
