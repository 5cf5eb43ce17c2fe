"""mysql-tls: published figures, what is computed from them, and the three columns, without a server."""

from __future__ import annotations

import re
from html import unescape

import msgspec
import pytest

import results
from ciphercost import studies
from ciphercost.host import memory
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import HostSample, StudyRecord, StudyResult, StudyRun
from ciphercost.report import formats
from ciphercost.report.formats import _study
from ciphercost.studies.mysql_tls import MysqlTls, compare, findings, procedure, published
from ciphercost.studies.sheet import FINDINGS

STUDY = studies.get("mysql-tls")
OPERATIONS = ("insert", "select", "update", "delete")
WITNESSES = ("client", "server", "wire")
HOST = HostSample(5.0, 5.0, 40.0, 0.0, 15.0, 1.0, 0.0, 44.0, 9_000_000_000, 1_000_000_000, 400_000_000)


def record(**changes: object) -> StudyRecord:
    """The procedure here: 1000 queries per iteration; 1 s each without TLS, 1.2 s with TLS."""
    record = STUDY.begin("postgresql")
    record.version, record.complete = "17.5", True
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    for arm, seconds in (("plain", [1.0, 1.1, 0.9, 1.0, 1.0]), ("encrypted", [1.2] * 5)):
        for name in OPERATIONS:
            record.runs.append(StudyRun(name, arm, 0.0, {"queries": 1000.0}, {"seconds": seconds}, [HOST]))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(name: str, ratio: float = 0.98) -> Cell:
    """Our cell: 2 % fewer operations/s with TLS, interval 1.5 to 2.5."""
    host = {counter: {"mean": 10.0} for counter in (*published.COUNTERS, "memory_available_bytes")}
    arms = {
        "plain": {"throughput": 5000.0, "server_cpu_us_per_op": 100.0, "host": host},
        "encrypted": {"throughput": 4900.0, "server_cpu_us_per_op": 103.0, "host": host},
    }
    rate, cpu = Estimate(ratio, ratio - 0.005, ratio + 0.005), Estimate(1.03, 1.029, 1.031)
    return Cell(
        "postgresql", "17.5", "transit", "tls", f"mysql-tls/{name}", 1, "ok", "full",
        verdict="differs", overhead={"throughput": rate, "server_cpu_per_op": cpu}, arms=arms,
    )  # fmt: skip


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), [cell(name) for name in OPERATIONS])


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_times_are_the_studys() -> None:
    assert published.times(STUDY) == {
        "insert": {"plain": 31.487, "encrypted": 31.924},
        "select": {"plain": 61.164, "encrypted": 68.137},
        "update": {"plain": 55.381, "encrypted": 56.788},
        "delete": {"plain": 61.744, "encrypted": 62.129},
    }


def test_every_published_row_adds_up_to_all_cpu_time() -> None:
    for columns in published.cpu(STUDY).values():
        for column in columns.values():
            for row in column.rows:
                if len(row) == len(published.COUNTERS):
                    assert sum(row.values()) == pytest.approx(100, abs=0.05)


def test_a_last_row_that_is_the_average_of_those_above_is_recognised() -> None:
    cpu = published.cpu(STUDY)
    without = {(name, arm) for name in cpu for arm in ARMS if not cpu[name][arm].average}
    assert without == {("insert", "plain"), ("select", "encrypted")}
    update = cpu["update"]["plain"]
    assert update.average["system"] == 2.15
    assert len(update.rows) == 13


@pytest.mark.parametrize(
    ("name", "plain", "encrypted"),
    [("insert", 5.945, 6.404), ("select", 14.109, 17.535), ("update", 2.178, 1.258), ("delete", 7.784, 7.864)],
)
def test_mean_system_is_that_of_the_tables(name: str, plain: float, encrypted: float) -> None:
    columns = published.cpu(STUDY)[name]
    assert columns["plain"].mean("system") == pytest.approx(plain, abs=0.001)
    assert columns["encrypted"].mean("system") == pytest.approx(encrypted, abs=0.001)


def test_a_value_that_was_left_blank_is_no_zero() -> None:
    first = published.cpu(STUDY)["insert"]["encrypted"].rows[0]
    assert "iowait" not in first
    assert first["idle"] == 99.6


def test_the_blank_cell_is_completed_in_the_computation_and_named_as_an_inference() -> None:
    column = published.cpu(STUDY)["insert"]["encrypted"]
    assert column.filled[0]["iowait"] == 0.20
    assert column.mean("iowait") == pytest.approx(33.67, abs=0.005)
    assert column.average["iowait"] == 33.54
    for columns in published.cpu(STUDY).values():
        for arm_column in columns.values():
            assert sum(arm_column.mean(name) for name in published.COUNTERS) == pytest.approx(100, abs=0.05)
    text = " ".join(compared().findings)
    for words in ("add up to 99.80, so we infer 0.20", "mean is then 33.67", "has 33.54", "39.24", "add up to 105.6 %"):
        assert words in text, words
    shown = next(
        figure
        for figure in compared().figures
        if (figure.operation, figure.figure, figure.arm) == ("insert", "%iowait", "encrypted")
    )
    assert shown.published == pytest.approx(33.67, abs=0.005)
    assert "inferred" in STUDY.sources[shown.source]


def test_a_row_with_two_blanks_is_left_as_it_is() -> None:
    row = {"user": 1.0, "nice": 0.0, "system": 1.0, "idle": 90.0}
    assert published.filled(row) == row


def test_the_texts_maxima_contradict_its_tables_and_both_are_printed() -> None:
    text = " ".join(compared().findings)
    for words in ("25.78 at 30 s, Table II has 29.11 at 15 s", "3.38 at 45 s, Table IV has 3.86 at 20 s"):
        assert words in text, words


def test_the_texts_averages_are_packaged_and_agree_with_the_tables() -> None:
    quoted = [float(row["percent"]) for row in STUDY.rows("text.csv") if row["statistic"] == "average"]
    assert quoted == [14.11, 17.53, 5.95, 6.40, 2.18, 1.26, 7.78, 7.86]
    text = " ".join(compared().findings)
    assert "select with TLS 17.53 (17.535)" in text
    assert "They agree to the last digit." in text


def test_all_612_cells_of_the_cpu_tables_are_folded_in_reports() -> None:
    folded = [sheet for sheet in STUDY.sheets(compared()) if sheet.folded]
    assert [sheet.title.partition(":")[0] for sheet in folded] == [
        f"As published, Table {n}" for n in ("II", "III", "IV", "V")
    ]
    cells = [value for sheet in folded for texts in sheet.rows for value in texts[1:]]
    assert (len(cells), cells.count("blank")) == (612, 1)
    result = results.result(*map(cell, OPERATIONS), study=compared())
    page, markdown = (formats.get(name)(result) for name in ("html", "md"))
    markdown = unescape(markdown)
    for sheet in folded:
        assert f"<summary>{sheet.title}</summary>" in page
        assert sheet.title in markdown
        assert all(len(line) <= 80 for line in _study.lines(sheet))
    assert "29.11" in page
    assert "| 15 | 39.38 | 17.14 |" in markdown
    text = " ".join(_study.render(compared()).split())
    _, _, end = text.partition(FINDINGS)
    assert "As published, Table II: all 180 cells of SELECT" in end
    assert "15 39.38 17.14 0 0 18.15 29.11" in end


def test_operations_run_as_the_paper_lists_them_and_older_records_say_otherwise() -> None:
    assert STUDY.operations == ("insert", "update", "delete", "select")
    assert (
        "(insert, select, update, delete), where the paper lists insert, update, delete, select" in compared().procedure
    )
    same = record()
    same.runs.sort(key=lambda run: STUDY.operations.index(run.operation))
    assert "(insert, update, delete, select), as the paper lists them" in STUDY.compare(same, []).procedure


# ── procedure ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_file_has_a_statement_for_each_person_and_is_the_same_for_a_seed(operation: str) -> None:
    lines = list(procedure.statements(operation, 300, 4))
    assert len(lines) == 300
    assert lines == list(procedure.statements(operation, 300, 4))
    assert all(line.upper().startswith(operation.upper()) for line in lines)
    assert len(set(lines)) == (1 if operation == "select" else 300)
    assert not any(";" in line for line in lines)


@pytest.mark.parametrize(("value", "wanted"), [(1234.9, 1200), (99.9, 99), (7.2, 7), (10_500, 10_000), (0.4, 0)])
def test_query_counts_are_round_and_never_more_than_fits(value: float, wanted: int) -> None:
    assert procedure.rounded(value) == wanted


# ── three columns ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_column_is_counted_from_its_own_source() -> None:
    cost = next(
        figure
        for figure in compared().figures
        if (figure.operation, figure.figure, figure.arm) == ("select", "time", "cost")
    )
    assert cost.published == pytest.approx(68.137 / 61.164)
    assert cost.here == pytest.approx(1.2)
    assert cost.ours == pytest.approx(1 / 0.98)
    assert cost.low == pytest.approx(1 / 0.985)
    assert cost.high == pytest.approx(1 / 0.975)
    plain = next(
        figure
        for figure in compared().figures
        if (figure.operation, figure.figure, figure.arm) == ("update", "time", "plain")
    )
    assert plain.here == pytest.approx(10.0), "1000 queries in 1 s, scaled to the published number of queries"
    assert plain.ours == pytest.approx(2.0)


def test_a_shorter_last_row_counts_for_its_time_only() -> None:
    short = HostSample(6.0, 1.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    assert compare.mean_of([HOST, short], "user") == pytest.approx((5 * 40 + 100) / 6)
    assert compare.mean_of([], "user") is None


def test_the_table_is_eighty_wide_and_prints_times_cpu_and_memory_side_by_side() -> None:
    text = _study.render(compared())
    assert all(len(line) <= 80 for line in text.splitlines()), [line for line in text.splitlines() if len(line) > 80]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "plain → encrypted MySQL 8.0.33 postgresql 17.5 (95 % interval)" in lines
    assert "time, s 61.16 → 68.14 10.00 → 12.00 2.00 → 2.04" in lines
    assert "encryption costs 11.4 % more 20.0 % more 2.0 % more (1.5–2.6 %)" in lines
    assert "server's CPU, µs not published - 100.0 → 103.0" in lines
    assert "encryption costs - - 3.00 % more (2.90–3.10 %)" in lines
    assert "%system 2.18 → 1.26 15.00 → 15.00 10.00 → 10.00" in lines
    assert "RAM used, MB not published 1,000 → 1,000 -" in lines
    assert sum(line.startswith("server's RAM") for line in lines) == len(OPERATIONS)


def test_findings_say_what_was_counted() -> None:
    text = " ".join(compared().findings)
    for words in (
        "No published figure has an interval",
        "insert 1.4 % more, select 11.4 % more, update 2.5 % more, delete 0.6 % more",
        "insert 22.2 % more",  # 1.1 against 0.9
        "a different cost for insert 20.0 % more",
        "not 1.5–2.6 % more",
        "never checks the certificate",
        "select 70 s of rows for a time of 61 s",
        "6 of the 8 CPU tables",
        "5 rows show an idle machine",
        "update %system 2.18 → 1.26, %user 37.17 → 39.26",
        "For UPDATE %system falls with TLS on",
        "DELETE %user falls from 26 to 5",
    ):
        assert words in text, words


@pytest.mark.parametrize(
    ("engine", "words", "others"),
    [
        ("postgresql", "our method's connections check chain and name", "verifies no server"),
        ("mysql", "our method's connections check chain and name", "verifies no server"),
        ("firebird", "wire-crypt encrypts in TLS's place; it verifies no server either", "check chain and name"),
    ],
)
def test_verification_is_stated_for_the_measured_mechanism(engine: str, words: str, others: str) -> None:
    text = " ".join(STUDY.compare(STUDY.begin(engine), []).findings)
    assert words in text
    assert others not in text


def test_whatever_encrypts_on_a_server_has_a_sentence() -> None:
    assert {STUDY.begin(engine).mechanism for engine in STUDY.engines} == findings.VERIFIED.keys()


def test_agreement_is_not_called_a_difference() -> None:
    same = record()
    same.runs = [
        StudyRun(run.operation, run.arm, 0.0, run.load, {"seconds": [1.02 if run.arm == "encrypted" else 1.0] * 5})
        for run in same.runs
    ]
    text = " ".join(STUDY.compare(same, [cell(name) for name in OPERATIONS]).findings)
    assert "a different cost" not in text
    assert STUDY.finding("in-turns") in text


def test_without_proof_nothing_of_the_procedure_is_printed() -> None:
    result = compared(proofs=[Proof(arm, "client", arm == "plain", "in clear", 1) for arm in ARMS])
    assert not result.complete
    assert "not proven" in result.procedure
    assert all(figure.here is None for figure in result.figures)


def test_a_run_that_was_cut_off_shows_what_it_has() -> None:
    whole = record()
    result = STUDY.compare(record(runs=whole.runs[:4], complete=False), [])
    assert "it was cut off" in result.procedure
    assert not result.complete
    assert _study.render(result)
    assert _study.render(STUDY.compare(STUDY.begin("postgresql"), []))


def test_a_cell_without_a_number_leaves_its_column_empty() -> None:
    failed = Cell("postgresql", "", "transit", "tls", "mysql-tls/select", 1, "failed", "full", reason="gone")
    cost = next(
        figure
        for figure in STUDY.compare(record(), [failed]).figures
        if (figure.operation, figure.figure, figure.arm) == ("select", "time", "cost")
    )
    assert cost.ours is None
    assert re.search(
        r"encryption costs +11\.4 % more +20\.0 % more +-$",
        _study.render(STUDY.compare(record(), [failed])),
        re.MULTILINE,
    )


def test_sizes_of_a_study_are_its_own() -> None:
    small = MysqlTls(rows=200, iterations=2, queries=40)
    assert small.spec("postgresql", 10.0, 1).cells[0].rows == 200
    assert small.begin("postgresql").settings["iterations"] == 2


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_papers_order_is_each_operation_with_tls_and_then_in_clear() -> None:
    begun = STUDY.begin("mysql")
    assert begun.settings["by_operation"] == 1.0
    order = procedure.in_order(("insert", "select"), begun.arms, by_operation=True)
    assert order == [("insert", "encrypted"), ("insert", "plain"), ("select", "encrypted"), ("select", "plain")]
    other = STUDY.configured({"order": "arms"}).begin("mysql")
    assert other.settings["by_operation"] == 0.0
    order = procedure.in_order(("insert", "select"), other.arms, by_operation=False)
    assert order == [("insert", "plain"), ("select", "plain"), ("insert", "encrypted"), ("select", "encrypted")]


def test_the_result_states_which_order_was_used() -> None:
    assert "operation by operation" in compared().procedure
    other = record(settings={**STUDY.begin("mysql").settings, "by_operation": 0.0})
    assert "operation by operation" not in STUDY.compare(other, []).procedure
    limited = record(settings={**STUDY.begin("mysql").settings, "memory_bytes": 2e9})
    assert "2 GB" in STUDY.compare(limited, []).procedure
    assert " GB" not in STUDY.compare(other, []).procedure
    earlier = dict(STUDY.begin("mysql").settings)
    del earlier["by_operation"]
    assert "unlike the paper" in STUDY.compare(record(settings=earlier), []).procedure


def test_options_set_the_sizes_of_the_procedure_and_its_record_can_be_read_back() -> None:
    study = STUDY.configured({"rows": 50, "iterations": 2, "queries": 70})
    kept = study.begin("mysql")
    assert [kept.settings[name] for name in ("rows", "iterations", "queries")] == [50, 2, 70]
    assert study.spec("mysql", 10.0, 1).cells[0].rows == 50
    assert study.procedure_cells("mysql")[0].rows == 50
    assert msgspec.json.decode(msgspec.json.encode(kept), type=StudyRecord).settings == kept.settings


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rows": 0}, "--rows 0: must be from 1"),
        ({"iterations": -1}, "--iterations -1: must be from 1"),
        ({"queries": 10**9}, "--queries 1000000000: must be from 1"),
        ({"order": "arm"}, "did you mean 'arms'"),
        ({"memory": "lots"}, "'lots' is not a number or a size"),
        ({"memory": "2MB"}, "at least 128MB"),
        ({"scale": 2}, "no option --scale"),
    ],
    ids=str,
)
def test_what_an_option_can_not_be_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        STUDY.configured(given)


def test_where_no_control_group_can_be_made_a_memory_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_parent", lambda: None)
    with pytest.raises(UsageError, match="--memory 2GB: no control group"):
        STUDY.configured({"memory": "2GB"})
