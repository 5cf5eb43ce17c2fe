"""jdbc-tls: published figures, a split with known parts, one that must not add up, and a small replication on a real server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import result_schema
from ciphercost import studies
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study, terminal
from ciphercost.runs import replicate
from ciphercost.studies.jdbc_tls import JdbcTls, measured, published, setups
from ciphercost.studies.jdbc_tls.loops import CAPTURED, FLAG, ROWS
from ciphercost.studies.jdbc_tls.procedure import INTERLEAVED, JAVA, WIRE
from ciphercost.studies.jdbc_tls.setups import (
    CALLS,
    EVERY,
    EXECUTE,
    LOCAL,
    NEW,
    OLD,
    ON_THE_WIRE,
    PUBLISHED,
    UPDATE,
    Setup,
)
from conftest import RequireServer

STUDY = studies.get("jdbc-tls")
WITNESSES = ("client", "server", "wire")
ASKED = "SELECT @@session.tx_read_only"
OLD_US, DRIVER_US, TLS_US, ASKING_US = 40.0, 2.0, 10.0, 30.0
"""Warm, per insert: the old driver, what the new one adds, what TLS adds per round trip, and what its own queries add."""
START_US = {OLD: 50.0, NEW: 70.0, "TLS": 60.0}
"""What a cold start adds: with either driver, and with TLS."""


def warm_us(setup: Setup) -> float:
    if setup.driver == OLD:
        return OLD_US
    asks = setup.call == EXECUTE and not setup.local
    trips = 1 + asks
    return OLD_US + DRIVER_US + asks * ASKING_US + (setup.arm == "encrypted") * trips * TLS_US


def cold_us(setup: Setup) -> float:
    return warm_us(setup) + START_US[setup.driver] + (setup.arm == "encrypted") * START_US["TLS"]


def run(setup: Setup, factor: float, session: int = 0) -> StudyRun:
    series = {"cold_us": [factor * cold_us(setup)], "warm_us": [factor * warm_us(setup)]}
    where = {"session": float(session)} if session else {}
    return StudyRun(
        setup.call, setup.arm, 0.0, {"rows": 5000.0, **where}, series, workload=setup.name, design=INTERLEAVED if session else ""
    )  # fmt: skip


def looked(setup: Setup, insert: float, answer: float) -> StudyRun:
    """What a relay saw of one insert."""
    more = [100.0] * (setup.call == EXECUTE)
    series = {"sent_bytes": [insert, *more], "received_bytes": [answer, *more]}
    return StudyRun(setup.call, setup.arm, 0.0, {"rows": 16.0}, series, workload=setup.name, design=WIRE)


def kept(factors: tuple[float, ...] = (0.97, 1.0, 1.03), **changes: object) -> StudyRecord:
    record = STUDY.begin("mariadb")
    record.version, record.complete = "10.11.18", True
    record.encryption = {"protocol": "TLSv1.2", "cipher": "ECDHE-RSA-AES128-SHA256"}
    record.tools = {JAVA: "Java 17.0.15, SunJSSE 17"}
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    record.runs = [
        looked(setup, *((96.0, 64.0) if setup.arm == "encrypted" else (44.0, 14.0))) for setup in ON_THE_WIRE
    ]
    record.runs += [run(setup, 1.0) for setup in PUBLISHED]
    record.runs += [run(setup, factor, number) for number, factor in enumerate(factors, 1) for setup in EVERY]
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def rate(below: float, above: float) -> Estimate:
    """Ratio of rates for the times `above` ÷ `below`; known to 1 %."""
    return Estimate(below / above, 0.99 * below / above, 1.01 * below / above, n=6)


def cell(setup: Setup, counts: Mapping[str, float]) -> Cell:
    """One of our cells: the driver without TLS and, if it can, with TLS."""
    tls = setup.driver == NEW
    clear, coded = setup._replace(arm="plain"), setup._replace(arm="encrypted" if tls else "plain")
    return Cell(
        "mariadb", "10.11.18", "transit" if tls else "control", "tls" if tls else "none", "insert-loop", 1, "ok", "full",
        factors={"how": setup.call, **({LOCAL: "true"} if setup.local else {})}, variant=setup.variant,
        client=f"MySQL Connector/J {setup.driver}",
        overhead={"throughput": rate(warm_us(clear), warm_us(coded))},
        arms={"plain": {"throughput": 1e6 / warm_us(clear)}, "encrypted": {"throughput": 1e6 / warm_us(coded)}},
        chatter={arm: dict(counts) for arm in ARMS}, encryption={"verified": "no"} if tls else {},
        client_against_reference={"throughput_plain": rate(OLD_US, warm_us(clear))} if tls else {},
    )  # fmt: skip


INSERT = {"INSERT INTO loop_row": 1.0}
CELLS = [
    cell(setups.before(UPDATE), INSERT),
    cell(setups.after_in_clear(UPDATE), INSERT),
    cell(setups.before(EXECUTE), INSERT),
    cell(setups.after_in_clear(EXECUTE), INSERT | {ASKED: 1.0}),
    cell(setups.without_queries(EXECUTE), INSERT),
]


def figure(result: StudyResult, call: str, name: str) -> StudyFigure:
    return next(figure for figure in result.figures if (figure.operation, figure.figure) == (call, name))


def value(result: StudyResult, call: str, name: str) -> float:
    ours = figure(result, call, name).ours
    assert ours is not None
    return ours


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_milliseconds() -> None:
    assert list(published.times(STUDY).values()) == [18607, 46000, 22541]
    result = STUDY.compare(kept(), CELLS)
    assert figure(result, UPDATE, "driver and TLS, cold").published == pytest.approx(46000 / 18607)
    assert figure(result, UPDATE, "driver alone, cold").published == pytest.approx(22541 / 18607)


def test_the_captured_packets_stand_beside_those_here() -> None:
    result = STUDY.compare(kept(), CELLS)
    sizes = [
        (figure.published, figure.here)
        for figure in result.figures
        if figure.unit == "bytes" and figure.operation == UPDATE
    ]
    assert sizes == [(44, 44), (14, 14)] * 2 + [(96, 96), (64, 64)]
    assert any(finding.startswith("The same bytes") for finding in result.findings)
    assert any("probably called executeUpdate()" in finding for finding in result.findings)
    assert "196 in 2" in _study.render(result)


def test_other_bytes_than_the_captured_are_reported() -> None:
    record = kept()
    record.runs = [looked(setups.after(UPDATE), 112.0, 64.0), *record.runs[len(ON_THE_WIRE) :]]
    (finding,) = [text for text in STUDY.compare(record, CELLS).findings if "same bytes" in text]
    assert finding.startswith("! Not the same bytes")
    assert "112 and 64" in finding


def test_what_the_post_says_and_what_it_does_not() -> None:
    """Its debug output has the statement and the transaction; rows, call, server and unit are not published."""
    text = " ".join(_study.render(STUDY.compare(kept(), CELLS)).split())
    assert "each committed" not in text
    assert CAPTURED.words in text
    assert "in a new Java 17.0.15, SunJSSE 17" in text
    assert "id of 177,980, and status 0x0001" in text
    assert "Not published: the number of rows" in text
    assert "16 + 44 + 32 + 4 = 96" in text
    assert "16 + 14 + 32 + 2 = 64" in text
    assert "the suite itself is not known" in text
    assert "Another Java" in text


def test_the_other_loop_is_called_by_its_own_words() -> None:
    """A record from before the captured loop existed has no flag: it also used the other loop."""
    for record in (kept(settings={FLAG: 0.0, "rows": 5000.0}), kept(settings={"rows": 5000.0})):
        result = STUDY.compare(record, CELLS)
        assert "each committed by itself" in result.procedure
        assert "Java chose the suite" in result.procedure
        assert all(figure.published is None for figure in result.figures if figure.unit == "bytes")
        assert not any("same bytes" in finding for finding in result.findings)


@pytest.mark.usefixtures("require_java")
def test_the_loop_is_chosen_by_name() -> None:
    chosen = STUDY.configured({"loop": "insert-loop"})
    assert {cell.workload for cell in chosen.spec("mariadb", 20.0, 1).cells} == {ROWS.workload}
    cells = STUDY.spec("mariadb", 20.0, 1).cells
    assert {(cell.workload, cell.factors["autocommit"], cell.factors["commit_every"]) for cell in cells} == {
        ("jdbc-tls/captured", "false", "end")
    }
    assert {cell.factors["cipher"] for cell in cells if cell.mechanism == "tls"} == {"aes128-cbc"}
    with pytest.raises(UsageError, match="did you mean 'captured'"):
        STUDY.configured({"loop": "captred"})


# ── what is counted ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("call", CALLS)
def test_the_split_finds_the_parts_that_were_put_in(call: str) -> None:
    result = STUDY.compare(kept(), CELLS)
    asks = call == EXECUTE
    assert value(result, call, "split: TLS") == pytest.approx((1 + asks) * TLS_US)
    assert value(result, call, "split: chatter") == pytest.approx(asks * ASKING_US)
    assert value(result, call, "split: the rest") == pytest.approx(DRIVER_US)
    warming = START_US[NEW] + START_US["TLS"] - START_US[OLD]
    assert value(result, call, "split: JVM warm-up") == pytest.approx(warming)
    assert value(result, call, "split: the sum") == pytest.approx(value(result, call, "split: the whole"))
    whole = figure(result, call, "split: the whole")
    assert whole.low is not None
    assert whole.low < value(result, call, "split: the whole") < (whole.high or 0)
    assert "the parts add up to the whole" in terminal.render(with_study(result))


def test_a_split_that_does_not_add_up_says_so() -> None:
    """New JVMs with a warm end that differs from ours: 30 µs of the whole belong to no part."""
    record = kept()
    for run in record.runs:
        if run.workload == NEW and run.arm == "encrypted" and run.design != WIRE:
            run.series["warm_us"][0] += 30.0
            run.series["cold_us"][0] += 30.0
    result = STUDY.compare(record, CELLS)
    assert value(result, UPDATE, "split: left") == pytest.approx(30.0)
    assert "do NOT add up" in _study.render(result)


def test_cold_starts_that_scatter_hide_no_difference_between_warm_ends() -> None:
    """Cold time is part of the whole and of the warm-up and cancels: despite 75 µs of scatter there, 30 extra µs are found."""
    record = kept((1.0,) * 5)
    for number, scatter in enumerate((-75.0, 60.0, -20.0, 75.0, -40.0), 1):
        for run in record.runs:
            if run.load.get("session") == number and run.workload == NEW and run.arm == "encrypted":
                run.series["warm_us"][0] += 30.0 + number / 10
                run.series["cold_us"][0] += 30.0 + number / 10 + scatter
    result = STUDY.compare(record, CELLS)
    left = figure(result, UPDATE, "split: left")
    assert left.low is not None
    assert left.low > 0
    assert value(result, UPDATE, "split: the whole") - value(result, UPDATE, "split: the sum") == pytest.approx(left.ours)  # fmt: skip


def test_wide_intervals_are_called_so() -> None:
    result = STUDY.compare(kept((0.5, 1.6)), CELLS)
    assert "as large as half" in " ".join(_study.render(result).split())


def test_chatter_counts_statements_that_the_old_driver_does_not_send() -> None:
    result = STUDY.compare(kept(), CELLS)
    text = _study.render(result)
    assert "the same statements" in text  # by executeUpdate
    assert any(ASKED in finding and LOCAL in finding for finding in result.findings)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8))
def test_a_ratio_lies_within_its_interval_and_the_rounds(factors: list[float]) -> None:
    """A round's factor applies to all of its setups, so ratios don't contain it."""
    rounds = measured.rounds(kept(tuple(factors)))
    estimate = measured.ratio(rounds, setups.after(UPDATE), setups.before(UPDATE), "cold")
    assert estimate is not None
    assert estimate.low <= estimate.ratio <= estimate.high
    assert estimate.ratio == pytest.approx(cold_us(setups.after(UPDATE)) / cold_us(setups.before(UPDATE)))


def test_a_round_that_was_cut_off_is_left_out() -> None:
    record = kept()
    record.runs.append(run(setups.before(UPDATE), 5.0, 9))
    assert len(measured.rounds(record)) == 3


def test_a_call_with_queries_is_not_split_without_the_cell_that_has_none() -> None:
    """The cell without the driver's own queries failed: their cost is then unknown, not zero."""
    result = STUDY.compare(kept(), CELLS[:-1])
    assert not any(figure.figure.startswith("split") and figure.operation == EXECUTE for figure in result.figures)
    assert value(result, UPDATE, "split: TLS") == pytest.approx(TLS_US)


@pytest.mark.parametrize("cells", [[], CELLS[:1], CELLS[1:]])
def test_without_our_cells_there_is_no_split(cells: list[Cell]) -> None:
    result = STUDY.compare(kept(), cells)
    assert not any(figure.figure.startswith("split") and figure.operation == UPDATE for figure in result.figures)
    assert "18,607" in _study.render(result)


def test_unproven_arms_have_no_figures() -> None:
    record = kept()
    record.proofs[0] = Proof("plain", "client", False, "it is encrypted", 1)
    result = STUDY.compare(record, CELLS)
    assert all(figure.here is None for figure in result.figures)
    assert not result.complete
    assert "not proven" in result.procedure


@pytest.mark.parametrize("runs", [0, 1, 101])
def test_a_number_of_starts_that_gives_no_interval_is_refused(runs: int) -> None:
    with pytest.raises(UsageError, match="starts of Java"):
        STUDY.configured({"runs": runs})


def test_its_page_is_80_columns_wide() -> None:
    for line in _study.render(STUDY.compare(kept(), CELLS)).splitlines():
        assert len(line) <= 80, line


# ── for real ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_study(result: StudyResult) -> Result:
    return Result(FORMAT, "x", "", {}, {}, 1, [], study=result)


def test_a_small_replication_on_a_real_server(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("mariadb", "10.11")
    study = JdbcTls(rows=200, runs=2, sessions=1, warm_slice=0.05)
    result, directory = replicate.run_in(study, study.spec("mariadb", 1.5, 7), tmp_path / "run")
    # On a disturbed machine so short a time may have no steady level.
    assert {cell.status for cell in result.cells} <= {"ok", "no-steady-state"}, [cell.reason for cell in result.cells]
    study_result = result.study
    assert study_result is not None
    assert study_result.complete, study_result.procedure
    record = json.loads((directory / "study.json").read_text())
    assert len(record["runs"]) == len(ON_THE_WIRE) + len(PUBLISHED) + 2 * len(EVERY)
    for size in (one for one in study_result.figures if one.unit == "bytes" and one.operation == UPDATE):
        assert size.here == size.published, size
    assert record["encryption"]["cipher"] == "ECDHE-RSA-AES128-SHA256"
    assert record["tools"]["java"].startswith("Java ")
    assert record["tools"]["server_library"].startswith("OpenSSL ")
    by_variant = {cell.variant: cell for cell in result.cells}
    asked = by_variant[f"{NEW} {EXECUTE}"].chatter["encrypted"]
    assert asked[ASKED] == pytest.approx(1.0), asked  # by the server's own count; none if the driver caches the state
    assert ASKED not in by_variant[f"{NEW} {EXECUTE} {LOCAL}"].chatter["encrypted"]
    assert ASKED not in by_variant[f"{NEW} {UPDATE}"].chatter["encrypted"]
    assert by_variant[f"{OLD} {UPDATE}"].mechanism == "none"
    assert by_variant[f"{NEW} {UPDATE}"].encryption["protocol"] == "TLSv1.2"
    whole = figure(study_result, UPDATE, "driver and TLS, cold")
    assert whole.ours is not None
    assert math.isfinite(whole.ours)
    text = terminal.render(result)
    assert "announces itself as 5.7.19-log" in " ".join(text.split())
    assert "NaN" not in (directory / "result.json").read_text()
    result_schema.validate(json.loads((directory / "result.json").read_text()))


def test_two_starts_with_a_wide_interval_compare_with_nothing() -> None:
    record = kept((1.0, 1.0))
    for one in record.runs:
        if one.workload == setups.after(UPDATE).name and one.arm == "encrypted" and one.load.get("session") == 1:
            one.series["cold_us"] = [5 * value for value in one.series["cold_us"]]
    text = " ".join(STUDY.compare(record, []).findings)
    assert "of 2 starts of each setup is too wide. More --runs make it narrower." in text
    assert "is within the 95 % interval" not in text
    assert "here: too wide" not in text
