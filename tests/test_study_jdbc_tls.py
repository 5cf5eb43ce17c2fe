"""jdbc-tls: the published figures, a split whose parts are known, one that must not add up, and a small replication on a real server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import replicate, schema, studies
from ciphercost.errors import UsageError
from ciphercost.model import (
    ARMS,
    FORMAT,
    Cell,
    Estimate,
    Proof,
    Result,
    StudyFigure,
    StudyRecord,
    StudyResult,
    StudyRun,
)
from ciphercost.reports import terminal
from ciphercost.studies.jdbc_tls import JdbcTls, measured, published, setups
from ciphercost.studies.jdbc_tls.procedure import INTERLEAVED
from ciphercost.studies.jdbc_tls.setups import CALLS, EVERY, EXECUTE, LOCAL, NEW, OLD, PUBLISHED, UPDATE, Setup
from conftest import RequireServer

STUDY = studies.get("jdbc-tls")
WITNESSES = ("client", "server", "wire")
ASKED = "SELECT @@session.tx_read_only"
OLD_US, DRIVER_US, TLS_US, ASKING_US = 40.0, 2.0, 10.0, 30.0
"""Warm, an insert: the old driver, what the new one adds, what TLS adds to each round trip, and what asking adds."""
START_US = {OLD: 50.0, NEW: 70.0, "TLS": 60.0}
"""What a cold start adds: either driver, and TLS beside it."""


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


def kept(factors: tuple[float, ...] = (0.97, 1.0, 1.03), **changes: object) -> StudyRecord:
    made = STUDY.begin("mariadb")
    made.version, made.complete = "10.11.18", True
    made.encryption = {"protocol": "TLSv1.2", "cipher": "ECDHE-RSA-AES256-GCM-SHA384"}
    made.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    made.runs = [run(setup, 1.0) for setup in PUBLISHED]
    made.runs += [run(setup, factor, number) for number, factor in enumerate(factors, 1) for setup in EVERY]
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def rate(below: float, above: float) -> Estimate:
    """Of throughput: the time `above` ÷ `below`, turned over; known to 1 %."""
    return Estimate(below / above, 0.99 * below / above, 1.01 * below / above, n=6)


def cell(setup: Setup, counts: Mapping[str, float]) -> Cell:
    """One of ours: the driver in clear, and where it can with TLS."""
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
    cell(setups.quiet(EXECUTE), INSERT),
]


def figure(result: StudyResult, call: str, name: str) -> StudyFigure:
    return next(each for each in result.figures if (each.operation, each.figure) == (call, name))


def value(result: StudyResult, call: str, name: str) -> float:
    found = figure(result, call, name).ours
    assert found is not None
    return found


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_milliseconds() -> None:
    assert list(published.times(STUDY).values()) == [18607, 46000, 22541]
    result = STUDY.compare(kept(), CELLS)
    assert figure(result, UPDATE, "driver and TLS, cold").published == pytest.approx(46000 / 18607)
    assert figure(result, UPDATE, "driver alone, cold").published == pytest.approx(22541 / 18607)


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
    """Fresh machines whose warm end is not what ours is: 30 µs of the whole belong to nothing."""
    record = kept()
    for each in record.runs:
        if each.workload == NEW and each.arm == "encrypted":
            each.series["warm_us"][0] += 30.0
            each.series["cold_us"][0] += 30.0
    result = STUDY.compare(record, CELLS)
    assert value(result, UPDATE, "split: left") == pytest.approx(30.0)
    assert "do NOT add up" in STUDY.table(result)


def test_cold_starts_that_scatter_hide_no_difference_between_warm_ends() -> None:
    """What is cold is in the whole and in the warm-up alike, and cancels: 75 µs of scatter there, and 30 µs too many are found."""
    record = kept((1.0,) * 5)
    for number, scatter in enumerate((-75.0, 60.0, -20.0, 75.0, -40.0), 1):
        for each in record.runs:
            if each.load.get("session") == number and each.workload == NEW and each.arm == "encrypted":
                each.series["warm_us"][0] += 30.0 + number / 10
                each.series["cold_us"][0] += 30.0 + number / 10 + scatter
    result = STUDY.compare(record, CELLS)
    left = figure(result, UPDATE, "split: left")
    assert left.low is not None
    assert left.low > 0
    assert value(result, UPDATE, "split: the whole") - value(result, UPDATE, "split: the sum") == pytest.approx(left.ours)  # fmt: skip


def test_wide_intervals_are_called_so() -> None:
    result = STUDY.compare(kept((0.5, 1.6)), CELLS)
    assert "what may be left over is half of it" in " ".join(STUDY.table(result).split())


def test_chatter_is_of_statements_that_the_old_driver_does_not_send() -> None:
    result = STUDY.compare(kept(), CELLS)
    text = STUDY.table(result)
    assert "the same statements" in text  # by executeUpdate
    assert any(ASKED in each and LOCAL in each for each in result.findings)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8))
def test_a_ratio_lies_within_its_interval_and_the_rounds(factors: list[float]) -> None:
    """A round's factor is in all of its setups, so that ratios do not see it."""
    rounds = measured.rounds(kept(tuple(factors)))
    found = measured.ratio(rounds, setups.after(UPDATE), setups.before(UPDATE), "cold")
    assert found is not None
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(cold_us(setups.after(UPDATE)) / cold_us(setups.before(UPDATE)))


def test_a_round_that_was_cut_off_is_left_out() -> None:
    record = kept()
    record.runs.append(run(setups.before(UPDATE), 5.0, 9))
    assert len(measured.rounds(record)) == 3


def test_what_asks_and_was_not_measured_without_is_not_split() -> None:
    """The cell that is kept from asking has failed: chatter is then no nothing."""
    result = STUDY.compare(kept(), CELLS[:-1])
    assert not any(each.figure.startswith("split") and each.operation == EXECUTE for each in result.figures)
    assert value(result, UPDATE, "split: TLS") == pytest.approx(TLS_US)


@pytest.mark.parametrize("cells", [[], CELLS[:1], CELLS[1:]])
def test_without_our_cells_there_is_no_split(cells: list[Cell]) -> None:
    result = STUDY.compare(kept(), cells)
    assert not any(each.figure.startswith("split") and each.operation == UPDATE for each in result.figures)
    assert "18,607" in STUDY.table(result)


def test_of_arms_that_are_not_proven_nothing_is_said() -> None:
    record = kept()
    record.proofs[0] = Proof("plain", "client", False, "it is encrypted", 1)
    result = STUDY.compare(record, CELLS)
    assert all(each.here is None for each in result.figures)
    assert not result.complete
    assert "not proven" in result.procedure


@pytest.mark.parametrize("runs", [0, 1, 101])
def test_a_number_of_starts_that_gives_no_interval_is_refused(runs: int) -> None:
    with pytest.raises(UsageError, match="starts of Java"):
        STUDY.configured({"runs": runs})


def test_its_page_is_80_columns_wide() -> None:
    for line in STUDY.table(STUDY.compare(kept(), CELLS)).splitlines():
        assert len(line) <= 80, line


# ── for real ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_study(result: StudyResult) -> Result:
    return Result(FORMAT, "x", "", {}, {}, 1, [], study=result)


def test_a_small_replication_on_a_real_server(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("mariadb", "10.11")
    study = JdbcTls(rows=200, runs=2, sessions=1, warm_slice=0.05)
    result, directory = replicate.run_in(study, study.spec("mariadb", 1.5, 7), tmp_path / "run")
    # A shaken machine may have no level in so short a time.
    assert {cell.status for cell in result.cells} <= {"ok", "no-steady-state"}, [cell.reason for cell in result.cells]
    made = result.study
    assert made is not None
    assert made.complete, made.procedure
    record = json.loads((directory / "study.json").read_text())
    assert len(record["runs"]) == len(PUBLISHED) + 2 * len(EVERY)
    by_variant = {cell.variant: cell for cell in result.cells}
    asked = by_variant[f"{NEW} {EXECUTE}"].chatter["encrypted"]
    assert asked[ASKED] == pytest.approx(1.0), asked  # by the server's own count, and gone where the driver remembers
    assert ASKED not in by_variant[f"{NEW} {EXECUTE} {LOCAL}"].chatter["encrypted"]
    assert ASKED not in by_variant[f"{NEW} {UPDATE}"].chatter["encrypted"]
    assert by_variant[f"{OLD} {UPDATE}"].mechanism == "none"
    assert by_variant[f"{NEW} {UPDATE}"].encryption["protocol"] == "TLSv1.2"
    whole = figure(made, UPDATE, "driver and TLS, cold")
    assert whole.ours is not None
    assert math.isfinite(whole.ours)
    text = terminal.render(result)
    assert "says that it is 5.7.19-log" in " ".join(text.split())
    assert "NaN" not in (directory / "result.json").read_text()
    jsonschema.validate(json.loads((directory / "result.json").read_text()), schema.result_schema())
