"""cybertec-tde-cost: the published table, what averages can show, and a small run of pgbench on a real server."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from ciphercost import studies
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study
from ciphercost.runs import replicate
from ciphercost.studies import pairs, resolution, tde_pairs
from ciphercost.studies.cybertec_tde_cost import (
    CybertecTdeCost,
    compare,
    pairs_of_arms,
    procedure,
    published,
)
from conftest import RequirePossible, RequireServer

STUDY = studies.get("cybertec-tde-cost")
NAME = "256-bit gocryptfs"
PLAIN, ENCRYPTED = [1000.0, 1010.0, 990.0], [950.0, 960.0, 940.0]


def record(**changes: object) -> StudyRecord:
    """Three runs of each arm, 1 % apart; the encrypted arm 5 % slower."""
    record = CybertecTdeCost(mechanisms=("gocryptfs",)).begin("postgresql")
    record.version, record.complete, record.tools = "17.5", True, {"pgbench": "17.5"}
    record.proofs = [
        Proof(arm, witness, True, "", 1) for arm in ARMS for witness in pairs.witnesses_of(record)["gocryptfs"]
    ]
    for arm, tps in (("plain", PLAIN), ("encrypted", ENCRYPTED)):
        series = {procedure.TPS: tps, procedure.HITS: [82.0] * 3, procedure.CHECKPOINTS: [0.0] * 3}
        record.runs.append(StudyRun(procedure.OPERATION, arm, 0.0, {}, series, mechanism="gocryptfs", server="256-bit"))
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def cell() -> Cell:
    arms = {
        "plain": {"throughput": 1000.0, "server_cpu_us_per_op": 300.0},
        "encrypted": {"throughput": 960.0, "server_cpu_us_per_op": 330.0},
    }
    overhead = {"throughput": Estimate(0.96, 0.95, 0.97, n=8), "server_cpu_per_op": Estimate(1.1, 1.08, 1.12)}
    return Cell(
        "postgresql", "17.5", "rest", "gocryptfs", "cybertec-tde-cost/simple-update", 3, "ok", "full",
        overhead=overhead, arms=arms, variant="256-bit",
    )  # fmt: skip


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(record(**changes), [cell()])


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_printed_percentages_are_those_of_the_printed_rates() -> None:
    first = published.tps(STUDY, 0)
    for row in published.rows(STUDY):
        assert 100 * row.tps / first == pytest.approx(row.percent, abs=0.0051)


def test_cells_in_the_wrong_order_are_named() -> None:
    text = STUDY.finding("contradictions")
    assert "128 bits (2,440.9 → 2,443.3 TPS)" in text
    assert "192 bits (2,439.6 → 2,446.1 TPS) faster" in text
    assert "256 bits" not in text


# ── what a design can show ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_spread_is_pooled_within_groups() -> None:
    spread = resolution.spread([[1.0, 2.0, 3.0], [11.0, 13.0]])
    assert spread is not None
    assert spread.sd == pytest.approx(math.sqrt(4 / 3))
    assert spread.freedom == 3
    assert spread.low < spread.sd < spread.high
    assert resolution.spread([[1.0], [2.0]]) is None
    assert resolution.spread([[1.0, 1.0]]) is None
    assert resolution.spread([]) is None


def test_a_resolution_holds_in_simulation() -> None:
    """Of many pairs of averages without a difference, 95 % differ by less than the half-width of their own spread."""
    random = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        groups = random.normal(0.0, 0.01, (2, 3)).tolist()
        of = resolution.spread(groups)
        assert of is not None
        inside += abs(np.mean(groups[0]) - np.mean(groups[1])) < resolution.resolution(of, 3).value
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)


def test_the_interval_of_a_spread_holds_in_simulation() -> None:
    random = np.random.default_rng(2)
    spreads = [resolution.spread(random.normal(0.0, 0.01, (2, 3)).tolist()) for _ in range(2000)]
    covered = sum(spread is not None and spread.low < 0.01 < spread.high for spread in spreads)
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("sd", "wanted"), [(0.001, 0.005), (0.005, 0.005), (0.02, 0.005), (0.2, 0.005)])
def test_the_runs_needed_are_the_fewest_that_resolve(sd: float, wanted: float) -> None:
    def half(runs: int) -> float:
        return float(stats.t.ppf(0.975, 2 * runs - 2)) * sd * math.sqrt(2 / runs)

    runs = resolution.runs_needed(sd, wanted)
    assert half(runs) <= wanted * 1.001
    assert runs == 2 or half(runs - 1) > wanted * 0.999


def test_the_table_and_the_text_have_the_same_resolution() -> None:
    result = compared()
    of = resolution.spread([[math.log(rate) for rate in tps] for tps in (PLAIN, ENCRYPTED)])
    assert of is not None
    half_width = resolution.resolution(of, 3)
    can_show = next(figure for figure in result.figures if figure.figure == compare.CAN_SHOW)
    assert (can_show.operation, can_show.arm, can_show.n) == (NAME, compare.DESIGN, 3)
    assert can_show.ours == pytest.approx(100 * math.expm1(half_width.value))
    text = _study.render(result)
    value, low, high = (100 * math.expm1(bound) for bound in half_width)
    printed = f"{value:.2g} % ({low:.2g}–{high:.2g} %)"
    assert text.count(f"±{printed}") == 1
    assert f"show no difference below {printed}" in " ".join(text.split())
    half = next(figure for figure in result.figures if figure.figure == compare.INTERVAL)
    assert half.ours == pytest.approx(100 * math.expm1(math.log(0.97 / 0.95) / 2))


def test_one_run_of_each_arm_has_no_resolution() -> None:
    once = record()
    once.runs = [
        msgspec.structs.replace(run, series={name: values[:1] for name, values in run.series.items()})
        for run in once.runs
    ]
    result = STUDY.compare(once, [cell()])
    assert not [figure for figure in result.figures if figure.figure == compare.CAN_SHOW]
    assert "On this machine" not in " ".join(result.findings)


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stand_in_is_judged_by_direction_and_named() -> None:
    result = compared()
    judged = STUDY.judged(result)
    (figure,) = judged.figures
    assert figure.published == pytest.approx(2450.3 / 2455.6)
    assert (judged.direction_only, judged.of(figure)) == (True, "direction")
    assert "gocryptfs stands in for it" in STUDY.caveat(result)
    assert "PGEE can't be fetched" in result.procedure


def test_published_cells_that_nothing_here_stands_beside_are_shown_alone() -> None:
    alone = {figure.operation for figure in compared().figures if figure.operation.startswith("published alone")}
    assert len(alone) == 5
    assert not any("256 bits, without" in operation for operation in alone)


def test_figures_of_arms_that_were_not_proven_are_left_out() -> None:
    result = compared(proofs=record().proofs[:1])
    assert not result.complete
    assert "not proven" in result.procedure
    assert all(figure.here is None for figure in result.figures)


def test_a_servers_own_tde_has_a_pair_for_each_key_length(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = tde_pairs.Pair("pgee", "/opt/pgee", "cybertec-tde", {"bits": "256"})
    monkeypatch.setattr(tde_pairs, "pairs", lambda *_: [vendor])
    monkeypatch.setattr(pairs_of_arms, "has_long_keys", lambda _: True)
    arm_pairs = pairs_of_arms.pairs(["pgee=/opt/pgee"], [])
    assert [pair.factors["bits"] for pair in arm_pairs] == ["128", "192", "256"]
    assert [pair.server for pair in arm_pairs] == ["pgee 128-bit", "pgee 192-bit", "pgee 256-bit"]
    assert pairs_of_arms.bits_of("pgee 192-bit cybertec-tde") == 192
    monkeypatch.setattr(pairs_of_arms, "has_long_keys", lambda _: False)
    assert [pair.factors["bits"] for pair in pairs_of_arms.pairs(["pgee=/opt/pgee"], [])] == ["128"]


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
    small = CybertecTdeCost(1, 1.0, 2, mechanisms=("gocryptfs",), sessions=2)
    spec = small.spec("postgresql", 3.0, 5)
    result, _ = replicate.run_in(small, spec, tmp_path / "run")
    assert result.study is not None
    assert result.study.complete, result.study.procedure
    figures = {
        (figure.figure, figure.arm): figure for figure in result.study.figures if figure.operation.endswith(NAME)
    }
    assert all(figures[compare.TPS, arm].here for arm in ARMS)
    assert all(0 < (figures[compare.HITS, arm].here or 0) <= 100 for arm in ARMS)
    assert [cell.workload for cell in result.cells] == ["cybertec-tde-cost/simple-update"]
