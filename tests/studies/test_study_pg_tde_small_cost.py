"""pg-tde-small-cost: the published limits, how long one per cent takes, and a small run on a real server."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from ciphercost import studies
from ciphercost.host import aes
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Warning_
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs, resolution, tde_pairs
from ciphercost.studies.pg_tde_small_cost import PgTdeSmallCost, compare, precision, procedure, published
from conftest import RequirePossible, RequireServer

STUDY = studies.get("pg-tde-small-cost")
PAIR = "gocryptfs"
SMALL = f"small transactions, {PAIR}"


def record(**changes: object) -> StudyRecord:
    """Three runs of each arm, 1 % apart; everything takes 5 % longer in the encrypted arm."""
    record = PgTdeSmallCost(mechanisms=(PAIR,)).begin("postgresql")
    record.version, record.complete, record.tools = "17.5", True, {"pgbench": "17.5"}
    record.settings["cell_seconds"] = 80.0
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in pairs.witnesses_of(record)[PAIR]]
    for operation in published.MEASURED:
        for arm, seconds in (("plain", 0.1), ("encrypted", 0.105)):
            series = {procedure.SECONDS: [seconds, seconds * 1.01, seconds * 0.99]}
            record.runs.append(StudyRun(operation, arm, 0.0, {}, series, mechanism=PAIR))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell(operation: str, ratio: float = 0.97, half: float = 0.02) -> Cell:
    arms = {
        "plain": {"throughput": 1000.0, "server_cpu_us_per_op": 300.0},
        "encrypted": {"throughput": 1000.0 * ratio, "server_cpu_us_per_op": 330.0},
    }
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    overhead = {"throughput": Estimate(ratio, low, high, n=8), "server_cpu_per_op": Estimate(1.1, 1.08, 1.12)}
    return Cell(
        "postgresql", "17.5", "rest", PAIR, f"pg-tde-small-cost/{operation}", 4, "ok", "full", overhead=overhead, arms=arms, sessions=8
    )  # fmt: skip


def compared(cells: list[Cell] | None = None, **changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), [cell(name) for name in published.MEASURED] if cells is None else cells)


def design(result: StudyResult, figure: str) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {one.operation: (one.ours, one.low, one.high) for one in result.figures if one.figure == figure}


# ── how long one per cent takes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("half", "sessions"), [(0.02, 8), (0.1, 8), (0.005, 4), (0.3, 2)])
def test_the_sessions_needed_are_the_fewest_whose_interval_is_narrow_enough(half: float, sessions: int) -> None:
    sd = half * math.sqrt(sessions) / stats.t.ppf(0.975, sessions - 1)

    def width(n: int) -> float:
        return float(stats.t.ppf(0.975, n - 1)) * sd / math.sqrt(n)

    needed = resolution.sessions_needed(half, sessions, 0.01)
    assert needed is not None
    assert width(needed.value) <= 0.01 * 1.001
    assert needed.value == 2 or width(needed.value - 1) > 0.01 * 0.999
    assert needed.low <= needed.value <= needed.high


def test_an_interval_that_is_narrow_enough_needs_no_more_sessions() -> None:
    needed = resolution.sessions_needed(0.01, 8, 0.01)
    assert needed is not None
    assert needed.value == 8
    assert resolution.sessions_needed(0.01, 1, 0.01) is None
    assert resolution.sessions_needed(0.0, 8, 0.01) is None


def test_the_spread_of_the_sessions_needed_holds_in_simulation() -> None:
    """Of many runs of eight sessions, 95 % have an interval that holds what their true spread needs."""
    random = np.random.default_rng(1)
    true = next(n for n in range(2, 1000) if stats.t.ppf(0.975, n - 1) * 0.02 / math.sqrt(n) <= 0.01)
    inside = 0
    for values in random.normal(0.0, 0.02, (400, 8)):
        half = float(stats.t.ppf(0.975, 7) * values.std(ddof=1) / math.sqrt(8))
        needed = resolution.sessions_needed(half, 8, 0.01)
        assert needed is not None
        inside += needed.low <= true <= needed.high
    assert inside / 400 == pytest.approx(0.95, abs=0.03)


def test_the_half_width_and_the_minutes_are_those_of_the_cell() -> None:
    result = compared()
    assert design(result, precision.HALF)[SMALL][0] == pytest.approx(100 * math.expm1(0.02))
    needed = resolution.sessions_needed(0.02, 8, 0.01)
    assert needed is not None
    # Ten seconds of load for each session.
    assert design(result, precision.MINUTES)[SMALL] == pytest.approx([sessions / 6 for sessions in needed])
    shown = precision.span(needed.value / 6, needed.low / 6, needed.high / 6)
    text = " ".join(_study.render(result).split())
    assert f"with gocryptfs is known to ±2 %; ±1 % would take {shown} of load" in text
    assert text.count(shown) == 1 + len(published.MEASURED)


def test_averages_have_their_own_half_width() -> None:
    result = compared()
    times = [[math.log(0.1 * factor) for factor in (1, 1.01, 0.99)]] * 2
    of = resolution.spread(times)
    assert of is not None
    half = design(result, precision.RUNS_HALF)[SMALL][0]
    assert half == pytest.approx(100 * math.expm1(resolution.resolution(of, 3).value))
    # A run of pgbench lasts as long as it was told to, a statement as long as it takes.
    minutes = {name: values[0] for name, values in design(result, precision.RUNS_MINUTES).items()}
    runs = resolution.runs_needed(of.sd, 0.01)
    assert minutes[SMALL] == pytest.approx(2 * runs * 20 / 60)
    assert minutes[f"VACUUM FULL, {PAIR}"] == pytest.approx(2 * runs * 0.1025 / 60, rel=1e-3)


def test_a_narrow_interval_says_that_one_per_cent_can_be_told() -> None:
    text = " ".join(compared([cell(published.OLTP, half=0.004)]).findings)
    assert "with gocryptfs is known to ±0.4 %; so this run can tell 1 % from none" in text


def test_one_session_has_no_minutes() -> None:
    text = " ".join(compared([msgspec.structs.replace(cell(published.OLTP), sessions=1)]).findings)
    assert "how long ±1 % would take needs two sessions or more" in text


def test_long_times_are_printed_in_hours_and_short_ones_in_seconds() -> None:
    assert precision.span(12.0, 5.21, 50.0) == "12 min (5.2–50 min)"
    assert precision.span(0.5, 0.1, 2.0) == "30 s (6–120 s)"
    assert precision.span(1200.0, 300.0, 12000.0) == "20 h (5–200 h)"


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_limit_stands_beside_a_time_of_ours() -> None:
    judged = {figure.operation.partition(",")[0]: figure for figure in STUDY.judged(compared()).figures}
    assert {name: figure.published for name, figure in judged.items()} == {
        "small transactions": pytest.approx(1.02),
        "CREATE TABLE AS": pytest.approx(1.3),
        "ALTER TABLE that rewrites": pytest.approx(1.15),
        "VACUUM FULL": pytest.approx(1.1),
    }
    small = judged["small transactions"]
    assert small.ours == pytest.approx(1 / 0.97)
    assert small.here == pytest.approx(1.05)
    assert STUDY.judged(compared()).of(small) == "open"
    assert STUDY.judged(compared()).of(judged["CREATE TABLE AS"]) == "holds"


def test_what_stands_in_for_pg_tde_is_named_beside_the_verdict() -> None:
    result = compared()
    text = " ".join(_study.render(result).split())
    assert "Judged for gocryptfs, not for pg_tde." in text
    assert "gocryptfs stands in for it" in result.procedure
    assert "UPDATE of all rows, with its checkpoint at most 10.0 % more" in text


def test_a_cipher_without_aes_instructions_is_named_beside_the_verdict() -> None:
    slow = aes.KernelCipher("xts(aes)", "xts(ecb(aes-fixed-time))", 101, accelerated=False, in_use=True).warning()
    cells = [msgspec.structs.replace(cell(published.OLTP), warnings=[Warning_("slow", slow)])]
    verdict = STUDY.report(compared(cells), cells).verdict
    assert verdict.endswith(
        "gocryptfs encrypted without AES instructions, so the figure isn't that of a usual machine."
    )


def test_a_servers_own_tde_is_judged_as_itself() -> None:
    mine = PgTdeSmallCost()
    mine.pairs = [tde_pairs.Pair("ppg", "/opt/ppg", "pg-tde", {"cipher": "aes_256"})]
    cells = [msgspec.structs.replace(cell(name), mechanism="pg-tde", variant="ppg") for name in published.MEASURED]
    result = mine.compare(mine.begin("postgresql"), cells)
    assert mine.caveat(result) == ""
    assert "not for pg_tde" not in _study.render(result)
    assert [one.bindir for one in mine.spec("postgresql", 10.0, 1).cells] == ["/opt/ppg"] * 4


def test_figures_of_arms_that_were_not_proven_are_left_out() -> None:
    result = compared(proofs=record().proofs[:1])
    assert not result.complete
    assert "not proven" in result.procedure
    assert all(figure.here is None for figure in result.figures)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scale": 0}, "--scale 0: must be from 1"),
        ({"duration": 0.5}, "--duration 0.5s: pgbench runs for at least 1 second"),
        ({"runs": 101}, "--runs 101: must be from 1"),
        ({"mechanism": "fscript"}, "did you mean 'fscrypt'"),
    ],
    ids=str,
)
def test_bad_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        STUDY.configured(given)
    assert words in str(caught.value)


def test_a_small_replication_on_a_real_server(
    tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server("postgresql")
    small = PgTdeSmallCost(1, 1.0, 2, mechanisms=(PAIR,), sessions=2, statement_rows=2000)
    result, _ = replicate.run_in(small, small.spec("postgresql", 3.0, 5), tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    assert [(cell.workload.partition("/")[2], cell.status) for cell in result.cells] == [
        (name, "ok") for name in published.MEASURED
    ]
    for figure in small.judged(result.study).figures:
        assert figure.here, figure.operation
        assert figure.low, figure.operation
    assert set(design(result.study, precision.MINUTES)) == {compare.name_of(name, PAIR) for name in published.MEASURED}
