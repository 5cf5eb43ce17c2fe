"""Whether costs of runs differ, how cells are matched, and the gate."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy import stats

import by_row
import simulate
from ciphercost import commands
from ciphercost.estimate import statistics, student_t, totals
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Result, Warning_
from ciphercost.report import compare_pair, comparison, comparison_formats, cost_gate, markdown
from ciphercost.report.compare_pair import against
from ciphercost.report.comparison_types import Comparison, Run
from ciphercost.report.match_cells import match
from ciphercost.report.words import comparison_text
from results import MACHINE, cell, estimate, failed, recorded, result

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def interval(of: Estimate, nu: float = 7) -> Interval:
    """The standard error that gives this 95 % interval."""
    half = (math.log(of.high) - math.log(of.low)) / 2
    return Interval(math.log(of.ratio), (Error(half / student_t.quantile(0.975, nu), nu, "t over 8 sessions"),), 8)


def run(*cells: Cell, name: str = "", **more: object) -> Run:
    name = name or f"run-{id(cells):x}"
    run_result = msgspec.structs.replace(result(*cells), id=name, **more)
    return Run(
        name, run_result, [{key: interval(estimate) for key, estimate in cell.overhead.items()} for cell in cells]
    )


def costing(ratio: float, half: float = 0.01, **more: Any) -> Cell:
    return cell(overhead={"throughput": estimate(ratio, half)}, **more)


# ── the difference ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=12).filter(lambda values: np.std(values) > 1e-3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=12).filter(lambda values: np.std(values) > 1e-3),
)
def test_sessions_of_two_runs_are_compared_by_welchs_test(first: list[float], second: list[float]) -> None:
    a, b = np.array(first), np.array(second)
    difference = against(statistics.session_interval(a), statistics.session_interval(b))
    known = stats.ttest_ind(b, a, equal_var=False)
    assert difference.centre == pytest.approx(b.mean() - a.mean())
    assert difference.p_value() == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)
    low, high = known.confidence_interval()
    assert difference.bounds() == pytest.approx((low, high), rel=1e-6, abs=1e-9)


def test_the_most_cautious_pair_of_several_standard_errors_counts() -> None:
    values = np.random.default_rng(1).normal(0, 0.01, 40)
    quick, full = statistics.block_interval(values), statistics.session_interval(values[:8])
    assert len(against(quick, quick).errors) == 4
    for one, other in ((quick, full), (full, quick), (quick, quick)):
        difference = against(one, other)
        assert difference.half() >= max(interval.half() for interval in (one, other)) * 0.9
        assert difference.middle == pytest.approx(other.middle - one.middle)
        p_values = [Interval(difference.middle, (error,), 1).p_value() for error in difference.errors]
        assert difference.p_value() == max(p_values)


@pytest.mark.parametrize("name", simulate.SCENARIOS)
@pytest.mark.parametrize("mode", ["quick", "full"])
def test_two_equal_runs_seldom_differ(name: str, mode: str) -> None:
    """Of 400 full pairs, 5 % differ, plus chance (99.9 %: 8.9 %). Of quick pairs, without effects of server starts, at most 5 %.

    Their level is 1 %. Under checkpoints, which change too slowly for the blocks of a quick run, 3.5 % differ.
    """
    random = np.random.default_rng(8)
    pairs, noise = 400, simulate.SCENARIOS[name]
    claims = 0
    if mode == "full":
        values = simulate.sessions(random, noise, 2 * pairs, 8, 12)
        centres = by_row.hodges_lehmann(values.reshape(-1, 12)).reshape(2 * pairs, 8)
        intervals = [statistics.session_interval(row) for row in centres]
    else:
        intervals = [statistics.block_interval(row) for row in simulate.experiment(random, noise, 2 * pairs, 24).values]
    for one, other in zip(intervals[::2], intervals[1::2], strict=True):
        difference = against(one, other)
        claims += compare_pair.judged(difference, 0.01, difference.p_value(), quick=mode == "quick") == "differs"
    assert claims / pairs <= (0.089 if mode == "full" else 0.05), claims


def test_a_different_cost_is_detected_and_one_within_the_margin_is_equivalent() -> None:
    compared = comparison.compare(
        [run(costing(0.8), costing(0.8, 0.001, workload="b"), costing(0.8, 0.3, workload="c"), name="a"),
         run(costing(0.7), costing(0.8005, 0.001, workload="b"), costing(0.7, 0.3, workload="c"), name="b")]
    )  # fmt: skip
    assert [pair.verdict for pair in compared.pairs] == ["differs", "equivalent", "unresolved"]
    change = compared.pairs[0].change["throughput"]
    assert change.ratio == pytest.approx(0.7 / 0.8)
    assert change.low < 0.7 / 0.8 < change.high < 1
    assert compared.exit_status == 0


def test_quick_runs_need_a_smaller_p_value_and_show_their_warnings() -> None:
    noisy = [Warning_("foreign-cpu", "other processes used the CPU"), Warning_("jit", "does not matter here")]
    verdicts = []
    for mode in ("full", "quick"):
        one, other = costing(1.0, 0.01, mode=mode), costing(1.017, 0.01, mode=mode, warnings=noisy)
        (pair,) = comparison.compare([run(one, name="a"), run(other, name="b")], margin=0.0001).pairs
        assert 0.01 < (pair.change["throughput"].p_value or 0) < 0.05
        assert pair.mind == ["b: other processes used the CPU"]
        verdicts.append((pair.verdict, "quick runs need p below 0.01" in comparison_text.verdict(pair, 0.01)))
    assert verdicts == [("differs", False), ("unresolved", True)]


def test_the_verdict_is_corrected_for_the_number_of_cells() -> None:
    """A single cell differs at p = 0.03; among twenty it is unresolved."""
    one, other = costing(1.0, 0.01), costing(1.0162, 0.01)
    alone = comparison.compare([run(one, name="a"), run(other, name="b")], margin=0.0001)
    assert alone.pairs[0].verdict == "differs"
    many = [[msgspec.structs.replace(cell, workload=f"w{n}") for n in range(20)] for cell in (one, other)]
    together = comparison.compare([run(*many[0], name="a"), run(*many[1], name="b")], margin=0.0001)
    assert {pair.verdict for pair in together.pairs} == {"unresolved"}


def simulated(effect: float, seed: int) -> tuple[Cell, dict[str, Interval]]:
    """Eight sessions through the estimator."""
    random = np.random.default_rng(seed)
    estimator = CellEstimator()
    for session in range(1, 9):
        servers = random.normal(0, simulate.SERVER_SD * math.sqrt(2))
        blocks = simulate.experiment(random, simulate.drift, 1, 12, effect=effect + servers)
        for record in simulate.records(blocks.rates[0], blocks.signs[0], session=session):
            estimator.add(record)
    cell_estimate = estimator.finish()
    simulated_cell = cell(
        overhead=cell_estimate.overhead, arms=cell_estimate.arms, verdict=cell_estimate.verdict, sessions=8, blocks=96
    )
    return simulated_cell, estimator.intervals()


def test_runs_from_slices_to_verdict() -> None:
    runs = []
    for number, effect in enumerate((-0.2, -0.2, -0.3)):
        cell, intervals = simulated(effect, number)
        assert {totals.metric_of(name) for name in intervals} == set(cell.overhead)
        assert totals.key("throughput") in intervals
        for name, interval in intervals.items():
            stated = cell.overhead[totals.metric_of(name)]
            both = (stated.ratio, stated.low) if name in cell.overhead else (stated.ratio_of_totals, stated.totals_low)
            assert (math.exp(interval.centre), math.exp(interval.bounds()[0])) == pytest.approx(both)
        runs.append(Run(str(number), msgspec.structs.replace(result(cell), id=str(number)), [intervals]))
    compared = comparison.compare(runs)
    assert compared.pairs[0].verdict in ("equivalent", "unresolved")
    assert compared.pairs[1].verdict == "differs"
    assert compared.pairs[1].change["throughput"].ratio == pytest.approx(math.exp(-0.1), rel=0.02)


# ── which cell with which ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_cells_are_paired_whatever_their_order() -> None:
    cells = [cell(workload=w, clients=c, factors={"cipher": f}) for w in ("a", "b") for c in (1, 4) for f in ("x", "y")]
    pairs, left = match(cells, cells[::-1])
    assert pairs == [(n, 7 - n) for n in range(8)]
    assert left == ([], [])


def test_runs_that_differ_in_one_factor_are_compared_in_that_factor() -> None:
    cbc = costing(0.5, factors={"version": "1.2", "cipher": "aes256-cbc"})
    compared = comparison.compare([run(cbc, name="a"), run(costing(0.8), name="b")])
    (pair,) = compared.pairs
    assert {(factor.name, factor.reference, factor.other) for factor in pair.factors} == {
        ("set version", "1.2", "1.3"),
        ("set cipher", "aes256-cbc", "aes256-gcm"),
    }
    assert pair.verdict == "differs"


def test_a_newer_server_is_compared_with_the_older_one() -> None:
    (pair,) = comparison.compare(
        [run(costing(0.8, version="17.2"), name="a"), run(costing(0.8, version="18.4"), name="b")]
    ).pairs
    assert [(factor.name, factor.reference, factor.other) for factor in pair.factors] == [
        ("server version", "17.2", "18.4")
    ]


def test_neither_of_two_equally_near_cells_is_matched() -> None:
    reference = [cell(factors={"cipher": "a"})]
    compared = comparison.compare(
        [run(*reference, name="a"), run(cell(factors={"cipher": "b"}), cell(factors={"cipher": "c"}), name="b")]
    )
    assert not compared.pairs
    assert len(compared.alone) == 3
    assert [difference.name for difference in compared.alone[0].differs] == ["set cipher"]
    assert compared.alone[0].nearest


def test_another_operation_or_a_control_is_not_a_partner() -> None:
    assert match([cell(workload="a")], [cell(workload="b")])[0] == []
    assert match([cell()], [cell("nginx", "no-sendfile", layer="control")])[0] == []


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=8))
def test_every_cell_is_paired_once_or_left_over(first: list[int], second: list[int]) -> None:
    a, b = ([cell(factors={"size": str(n)}) for n in sizes] for sizes in (first, second))
    pairs, left = match(a, b)
    assert sorted([i for i, _ in pairs] + left[0]) == list(range(len(a)))
    assert sorted([j for _, j in pairs] + left[1]) == list(range(len(b)))
    same = sum((Counter(first) & Counter(second)).values())
    assert sum(a[i].factors == b[j].factors for i, j in pairs) == same


def test_a_cell_without_a_number_has_a_reason_instead_of_a_verdict() -> None:
    (pair,) = comparison.compare([run(costing(0.8), name="a"), run(failed("no space left"), name="b")]).pairs
    assert pair.verdict is None
    assert "no space left" in pair.reason


def test_a_record_without_units_has_a_reason_instead_of_a_verdict() -> None:
    foreign = run(costing(0.8), name="b")._replace(intervals=[{}])
    (pair,) = comparison.compare([run(costing(0.8), name="a"), foreign]).pairs
    assert pair.verdict is None
    assert pair.reason.startswith("b: ")
    assert "no sessions or blocks" in pair.reason


def test_the_text_gives_the_direction_of_a_changed_cost() -> None:
    for ratio, way in ((0.7, "higher"), (0.9, "lower")):
        for metric, value in (("throughput", ratio), ("latency_p50", 1 / ratio)):
            cells = [
                cell(overhead={metric: estimate(cost_ratio, 0.001)})
                for cost_ratio in (0.8 if metric == "throughput" else 1.25, value)
            ]
            compared = comparison.compare([run(cells[0], name="a"), run(cells[1], name="b")])
            assert f"it is {way} here" in comparison_text.verdict(compared.pairs[0], 0.01)


def test_one_run_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        comparison.compare([run(cell(), name="a"), run(cell(), name="a")])
    with pytest.raises(UsageError, match="--fail-over"):
        comparison.compare([run(cell())])


# ── the gate ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ratio", "half", "outcome", "loose", "strict"),
    [
        (0.95, 0.01, "pass", 0, 0),
        (0.9, 0.02, "unresolved", 0, 4),
        (0.8, 0.01, "fail", 3, 3),
        (1.05, 0.01, "pass", 0, 0),
    ],
)
def test_the_gate_uses_the_upper_bound(ratio: float, half: float, outcome: str, loose: int, strict: int) -> None:
    for demanded, status in ((False, loose), (True, strict)):
        compared = comparison.compare([run(costing(ratio, half))], limit=0.1, strict=demanded)
        assert [gate.outcome for gate in compared.gates] == [outcome]
        assert compared.exit_status == status


@given(st.floats(0.05, 3), st.floats(0.001, 0.5), st.floats(0.01, 2), st.sampled_from(["throughput", "latency_p50"]))
def test_passed_means_the_whole_interval_is_within(ratio: float, half: float, limit: float, metric: str) -> None:
    figure = estimate(ratio, half)
    costs = [(1 - end if metric == "throughput" else end - 1) for end in (figure.low, figure.high)]
    passed = cost_gate.passed(metric, figure, limit)
    assert (passed == "pass") == all(cost <= limit for cost in costs)
    assert (passed == "fail") == all(cost > limit for cost in costs)


def test_a_failed_cell_fails_the_gate_whatever_the_others_say() -> None:
    for others in ((costing(0.99),), (costing(0.5), costing(0.99, workload="b"))):
        compared = comparison.compare([run(*others, failed(workload="z"))], limit=0.1)
        assert compared.exit_status == 1
        assert compared.gates[-1].outcome == "failed"


def test_the_reference_is_not_gated_and_no_control_is() -> None:
    control = cell("nginx", "no-sendfile", layer="control", overhead={"throughput": estimate(0.3)})
    compared = comparison.compare([run(costing(0.5), name="a"), run(costing(0.99), control, name="b")], limit=0.1)
    assert [(gate.run, gate.cell, gate.outcome) for gate in compared.gates] == [(1, 0, "pass")]
    assert compared.exit_status == 0
    only = comparison.compare([run(control)], limit=0.1)
    assert [gate.outcome for gate in only.gates] == ["fail"]


def test_strict_without_a_gate_needs_every_verdict() -> None:
    clear = [run(costing(0.8, 0.001), name="a"), run(costing(0.8, 0.001), name="b")]
    assert comparison.compare(clear, strict=True).exit_status == 0
    vague = [run(costing(0.8, 0.3), name="a"), run(costing(0.7, 0.3), name="b")]
    assert comparison.compare(vague, strict=True).exit_status == 4
    lost = [run(costing(0.8, 0.001), costing(0.8, workload="b"), name="a"), run(costing(0.8, 0.001), name="b")]
    assert comparison.compare(lost, strict=True).exit_status == 4
    assert (
        comparison.compare(lost, strict=True, limit=0.5).exit_status == 0
    )  # every cell of the run is within the budget


# ── what is said ──────────────────────────────────────────────────────────────────────────────────────────────────────


def every_kind(limit: float | None = 0.22, name: str = "b") -> Comparison:
    other: Result = result(
        costing(0.7),
        costing(0.8, 0.001, workload="equal"),
        costing(0.8, 0.3, workload="vague", mode="quick"),
        costing(0.12, 0.03, workload="huge"),
        failed("x | y `z` <b>", workload="lost"),
        costing(0.9, workload="new", factors={"cipher": "q" * 70}),
    )
    reference = result(
        costing(0.8), costing(0.8, 0.001, workload="equal"), costing(0.8, 0.3, workload="vague", mode="quick"),
        costing(0.03, 0.03, workload="huge"), costing(0.8, workload="lost"), costing(0.8, workload="old"),
    )  # fmt: skip
    runs = [
        Run(run_id, msgspec.structs.replace(measured, id=run_id, machine=machine),
            [{key: interval(one) for key, one in cell.overhead.items()} for cell in measured.cells])
        for run_id, measured, machine in (("a", reference, MACHINE), (name, other, MACHINE | {"cpu": "Another CPU", "cores": 64}))
    ]  # fmt: skip
    return comparison.compare(runs, limit=limit)


def test_different_machines_are_warned_about_in_every_format() -> None:
    for name in ("terminal", "md"):
        text = comparison_formats.get(name)(every_kind())
        assert comparison_text.LOUD in " ".join(text.split())
        assert "Test CPU" in text
        assert "Another CPU" in text
    (differences,) = json.loads(comparison_formats.get("json")(every_kind()))["differences"]
    assert {difference["name"] for difference in differences["machine"]} == {"cpu", "cores"}
    one = [run(costing(0.8), name="a"), run(costing(0.7), name="b")]
    assert list(comparison_text.machines(comparison.compare(one))) == []


def test_the_seed_is_not_a_difference_but_the_tool_is() -> None:
    one, other = (
        run(costing(0.8), name="a"),
        run(costing(0.8), name="b", seed=99, tool={"name": "ciphercost", "version": "9"}),
    )
    (difference,) = comparison.compare([one, other]).differences
    assert [(fact.name, fact.reference, fact.other) for fact in difference.run_facts] == [
        ("tool version", "0.1.0", "9")
    ]
    assert not difference.machine


@pytest.mark.parametrize("limit", [None, 0.22])
def test_the_terminal_keeps_to_80_columns(limit: float | None) -> None:
    for compared in (every_kind(limit), every_kind(limit, "runs/" + "long-" * 10)):
        for line in comparison_formats.get("terminal")(compared).splitlines():
            assert len(line) <= 80 or " " not in line.strip(), line


def test_every_format_has_the_same_change() -> None:
    compared = every_kind()
    known = json.loads(comparison_formats.get("json")(compared))
    rows = list(csv.DictReader(io.StringIO(comparison_formats.get("csv")(compared))))
    figures = [row for row in rows if row["change"]]
    changes = [(pair, metric) for pair in compared.pairs for metric in pair.change]
    assert len(figures) == len(changes) > 3
    for row, (pair, metric) in zip(figures, changes, strict=True):
        assert float(row["change"]) == pair.change[metric].ratio
        assert float(row["change_high"]) == pair.change[metric].high
        assert (float(row["reference_ratio"]), float(row["ratio"])) == tuple(cost.ratio for cost in pair.costs[metric])
    assert [pair["verdict"] for pair in known["pairs"]] == [pair.verdict for pair in compared.pairs]
    tokens = MARKDOWN.parse(comparison_formats.get("md")(compared))
    shown = ["".join(one.content for one in token.children or []) for token in tokens if token.type == "inline"]
    for name, text in (("md", "\n".join(shown)), ("terminal", comparison_formats.get("terminal")(compared))):
        for pair in compared.pairs:
            for _, _, change, interval, both in comparison_text.shown(pair):
                assert all(piece in text for piece in (change, interval, both)), (name, change, interval, both)


def test_csv_has_the_gates_figures_of_every_cell_with_or_without_a_partner() -> None:
    slow = cell(workload="slow", overhead={"latency_p50": estimate(1.2)})
    both = {"throughput": estimate(0.8), "latency_p50": estimate(1.2)}
    reference = run(costing(0.8), slow, costing(0.8, workload="old"), name="a")
    other = run(
        costing(0.8), costing(0.6, workload="new"), failed("no space left", workload="lost"),
        cell(workload="slow", overhead=both), costing(0.9, workload="old", verdict="differs"), name="b",
    )  # fmt: skip
    compared = comparison.compare([reference, other], limit=0.25)
    rows = list(csv.DictReader(io.StringIO(comparison_formats.get("csv")(compared))))
    gated = {int(row["cell"]): row for row in rows if row["gate"]}
    assert len(gated) == sum(bool(row["gate"]) for row in rows) == len(compared.gates) == 5
    for gate in compared.gates:
        row = gated[gate.cell]
        assert (row["gate"], row["metric"], float(row["limit"])) == (gate.outcome, gate.metric, 0.25)
        assert gate.reason in row["reason"]
        if gate.estimate:
            figure = gate.estimate
            assert [float(row[name]) for name in ("ratio", "low", "high")] == [figure.ratio, figure.low, figure.high]
    assert gated[2]["reason"].startswith("no space left")
    assert {gated[cell]["verdict"] for cell in (1, 2)} == {"no-partner"}


def test_of_several_runs_each_is_compared_with_the_first_and_gated() -> None:
    compared = comparison.compare(
        [run(costing(ratio), name=name) for name, ratio in (("a", 0.8), ("b", 0.8), ("c", 0.5))], limit=0.3
    )
    assert [(pair.run, pair.verdict) for pair in compared.pairs] == [(1, "unresolved"), (2, "differs")]
    assert [(gate.run, gate.outcome) for gate in compared.gates] == [(1, "pass"), (2, "fail")]
    for name in ("terminal", "md"):
        assert "run 2" in comparison_formats.get(name)(compared)


def test_a_comment_escapes_what_comes_from_the_record_and_fits() -> None:
    text = comparison_formats.get("md")(every_kind())
    assert "<b>" not in text
    tables = text.split("\n\n")[3]
    assert {line.count("|") for line in tables.splitlines() if line.startswith("|")} == {8}
    many = [costing(0.8, workload=f"w{n}", version="x" * 300) for n in range(300)]
    long = comparison.compare([run(*many, name="a"), run(*many, name="b")])
    assert len(comparison_formats.get("md")(long)) <= markdown.MOST


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(commands.cli, ["compare", *map(str, arguments)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A busy wait of 2 % and one of 99 %."""
    place = tmp_path_factory.mktemp("compare")
    return recorded(place / "small", 2), recorded(place / "large", 99)


def test_runs_through_the_command(runs: tuple[Path, Path], tmp_path: Path) -> None:
    status, text = asked(*runs)
    assert status == 0
    assert "compared: effect 2% → 99%" in text
    (pair,) = msgspec.json.decode(asked(*runs, "--format", "json")[1], type=Comparison).pairs
    assert pair.change["throughput"].ratio < 1
    assert pair.verdict == "differs"
    assert compare_pair.is_quick(pair)
    assert comparison_text.verdict(pair, 0.01) in " ".join(text.split())
    for limit in (0.05, 0.2, 0.45, 0.7, 5.0):
        wanted = {"pass": 0, "unresolved": 0, "fail": 3}[
            cost_gate.passed("throughput", pair.costs["throughput"][1], limit)
        ]
        assert (
            asked(*runs, "--fail-over", f"{limit:.0%}")[0] == asked(runs[1], "--fail-over", f"{limit:.0%}")[0] == wanted
        )
    status, answer = asked(*runs, "--format", "md", "-o", tmp_path / "c.md")
    assert status == 0
    assert answer.strip() == comparison_text.headline(
        msgspec.json.decode(asked(*runs, "--format", "json")[1], type=Comparison)
    )
    assert (tmp_path / "c.md").read_text().startswith(f"### {answer.strip()}")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--fail-over", "10"), "write 10%"),
        (("--fail-over", "0%"), "not a budget"),
        (("--format", "html"), "not a format of compare"),
        (("--margin", "x"), "--margin"),
    ],
)
def test_bad_usage_suggests_what_to_write(runs: tuple[Path, Path], more: tuple[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(*runs, *more)


def test_tls_of_2008_and_of_today_differ(require_postgresql: object, tmp_path: Path) -> None:
    measured = [
        "run",
        "postgresql:tls",
        "--workload",
        "bulk-read",
        "--quick",
        "--regime",
        "one-core",
        "--no-latency",
        "--no-progress",
    ]
    both = {"cbc": "--set version=1.2 --set cipher=aes256-cbc", "gcm": "--set version=1.3 --set cipher=aes256-gcm"}
    for seconds in (5, 15, 40):  # a busy machine needs a larger difference
        runs = [tmp_path / f"{name}-{seconds}" for name in both]
        for run, words in zip(runs, both.values(), strict=True):
            CliRunner().invoke(commands.cli, [*measured, "--time", f"{seconds}s", *words.split(), "-o", str(run)])
        status, text = asked(*runs, "--format", "json")
        (pair,) = msgspec.json.decode(text, type=Comparison).pairs
        if pair.verdict == "differs":
            break
    assert status == 0
    assert pair.verdict == "differs"
    assert pair.change["throughput"].low > 1
    assert {factor.name for factor in pair.factors} == {"set version", "set cipher"}
    assert {difference.name for difference in pair.also} >= {"protocol", "cipher"}


# ── what a comment on a pull request must not look like ───────────────────────────────────────────────────────────────


def unresolved_pair() -> Comparison:
    """Two runs within the budget whose costs can't be told apart, with page faults ×3.86 that are noise."""
    faults, same = {"faults_per_op": estimate(1.1, 0.9)}, {"faults_per_op": estimate(4.2, 0.9)}
    levels = {arm: {"throughput": 1000.0, "faults_per_op": 0.5} for arm in ("plain", "encrypted")}
    cells = [costing(0.8, 0.08, arms=levels), costing(0.78, 0.08, arms=levels)]
    with_faults = [
        msgspec.structs.replace(cell, overhead=cell.overhead | more)
        for cell, more in zip(cells, (faults, same), strict=True)
    ]
    return comparison.compare([run(with_faults[0], name="a"), run(with_faults[1], name="b")], limit=0.4, strict=True)


def test_a_gate_that_passes_says_if_nothing_is_resolved() -> None:
    compared = unresolved_pair()
    assert compared.gates[0].outcome == "pass"
    assert compared.exit_status == 0, "the budget is kept, whatever the comparison shows"
    text = comparison_formats.get("md")(compared)
    assert comparison_text.nothing(compared)
    assert comparison_text.sign(compared) == comparison_text.DOUBT
    assert text.startswith(f"### {comparison_text.DOUBT} {comparison_text.headline(compared)}")
    assert "✅ pass" in text, "the cell itself is within the budget"
    printed = " ".join(comparison_formats.get("terminal")(compared).split())
    assert printed.startswith(comparison_text.headline(compared))
    assert comparison_text.compared(compared) in printed


def test_something_resolved_is_no_reason_to_doubt() -> None:
    a, b = (
        run(costing(ratio, 0.001), costing(0.9, 0.001, workload="b"), name=name)
        for ratio, name in ((0.8, "a"), (0.7, "b"))
    )
    compared = comparison.compare([a, b], limit=0.4)
    assert not comparison_text.nothing(compared)
    assert comparison_text.sign(compared) == comparison_text.SIGNS["pass"]
    assert comparison_formats.get("md")(compared).startswith(f"### {comparison_text.SIGNS['pass']} ")


@pytest.mark.parametrize("name", ["md", "terminal"])
def test_noise_has_no_row_but_is_named(name: str) -> None:
    text = " ".join(comparison_formats.get(name)(unresolved_pair()).split())
    assert "×3.8" not in text
    (pair,) = unresolved_pair().pairs
    assert pair.noise == ["faults_per_op"]
    assert comparison_text.left_out(pair) in text
    assert "faults_per_op" in comparison_formats.get("csv")(unresolved_pair())
