"""Costs over several runs: order, matching, changes, their candidates, and every format of the answer."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

import browser
from ciphercost import commands
from ciphercost.estimate import correlated_runs, history, student_t
from ciphercost.estimate.intervals_of_result import of_result
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.report import trend_formats
from ciphercost.report.comparison_types import Run
from ciphercost.report.layout import WIDTH
from ciphercost.report.trend_analysis import DONE, ROSE, trend
from ciphercost.report.trend_types import Series, Trend
from ciphercost.report.words import trend_text
from ciphercost.runs import conclude
from results import MACHINE, cell, estimate, failed, recorded, result

HALF = 0.01
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def run(day: int, *cells: Cell, **more: Any) -> Run:
    """A run of that day, with the intervals that its estimates print."""
    known: dict[str, Any] = {"id": f"run-{day:02d}", "started": f"2026-10-{day:02d}T03:00:00Z"} | more
    run_result = result(*cells, **known)
    intervals = [
        {
            name: Interval(
                math.log(estimate.ratio), (Error(HALF / student_t.quantile(0.975, 7), 7, "t over 8 sessions"),), 8
            )
            for name, estimate in cell.overhead.items()
        }
        for cell in cells
    ]
    return Run(f"runs/{day:02d}", run_result, intervals)


def costing(ratio: float, **more: Any) -> Cell:
    return cell(overhead={"throughput": estimate(ratio, HALF)}, **more)


def noise(seed: int, count: int = 20) -> list[float]:
    """Ratios of one level."""
    return [float(ratio) for ratio in 0.8 * np.exp(np.random.default_rng(seed).normal(0, HALF / 2.4, count))]


def stepped(at: int = 12, count: int = 20, **more: Any) -> list[Run]:
    """A history in which the cost rises by three half-widths, with a new server from that run on."""
    ratios = noise(1, count)
    return [
        run(
            number + 1,
            costing(ratio * math.exp(-3 * HALF * (number >= at)), version="18.4" if number >= at else "18.3", **more),
        )
        for number, ratio in enumerate(ratios)
    ]


def only(of: Trend) -> Series:
    (series,) = of.series
    return series


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_step_of_three_half_widths_is_found_with_what_else_changed_there() -> None:
    series = only(trend(stepped()))
    (shift,) = series.shifts
    assert series.found == "changed"
    assert (shift.point, shift.higher) == (12, True)
    assert shift.change.low < math.exp(-3 * HALF) < shift.change.high < 1
    assert ("server version", "18.3", "18.4") in [
        (change.name, change.reference, change.other) for point, change in shift.candidates if point == 12
    ]
    first, second = series.levels
    assert (first.first, first.last, second.first, second.last) == (0, 11, 12, 19)
    assert first.estimate.low < 0.8 < first.estimate.high
    assert second.estimate.ratio < first.estimate.ratio


def test_a_cost_that_falls_is_a_change_but_no_rise() -> None:
    falling = [
        run(day, costing(ratio * math.exp(3 * HALF * (day > 10)))) for day, ratio in enumerate(noise(2), start=1)
    ]
    series = only(falling_trend := trend(falling, fail_on_rise=True))
    assert [shift.higher for shift in series.shifts] == [False]
    assert falling_trend.exit_status == DONE


def test_for_cpu_more_is_higher() -> None:
    runs = [
        run(day, cell(regime="one-core", overhead={"server_cpu_per_op": estimate(1.2 * factor, HALF), "throughput": estimate(0.8)}))
        for day, factor in enumerate([*[1.0] * 8, *[1.1] * 8], start=1)
    ]  # fmt: skip
    series = only(trend(runs))
    assert series.metric == "server_cpu_per_op"
    assert [shift.higher for shift in series.shifts] == [True]


def test_with_fail_on_rise_the_last_change_decides() -> None:
    assert trend(stepped(), fail_on_rise=True).exit_status == ROSE
    assert trend(stepped()).exit_status == DONE
    undone = [
        run(day, costing(ratio * math.exp(-4 * HALF * (7 < day < 14)))) for day, ratio in enumerate(noise(3), start=1)
    ]
    whole_trend = trend(undone, fail_on_rise=True)
    assert [shift.higher for shift in only(whole_trend).shifts] == [True, False]
    assert whole_trend.exit_status == DONE


def test_of_many_cells_without_a_change_few_histories_show_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holm: among ten cells together at most 5 % of histories show any change (99.9 % quantile of chance: 16 %)."""
    monkeypatch.setattr(history, "ORDERS", 999)
    random = np.random.default_rng(4)
    claims = 0
    for _ in range(50):
        runs = [
            run(day, *(costing(0.8 * math.exp(random.normal(0, HALF / 2.4)), workload=f"w{n}") for n in range(10)))
            for day in range(1, 16)
        ]
        claims += any(series.found == "changed" for series in trend(runs).series)
    assert claims / 50 <= 0.16, claims


def alike(seed: int, count: int = 24) -> list[Run]:
    """A history without a change whose neighbouring runs are alike."""
    random = np.random.default_rng(seed)
    values = correlated_runs._series(random, 1, count, 0.9)[0]
    return [run(number + 1, costing(0.8 * math.exp(HALF * value))) for number, value in enumerate(values)]


def test_changes_of_correlated_runs_are_withheld_and_the_report_says_why() -> None:
    all_series = [only(trend(alike(seed))) for seed in range(8)]
    withheld = [series for series in all_series if series.withheld]
    assert len(withheld) >= 3
    for series in withheld:
        assert (series.found, series.shifts, series.smallest_step) == ("unchanged", [], None)
        assert series.correlation is not None
        assert series.correlation > 0.2
    of = trend(alike(next(seed for seed, series in enumerate(all_series) if series.withheld)))
    verdict = trend_text.verdict(of, only(of))
    assert f"correlation {only(of).correlation:.2g}" in verdict
    assert "24 runs" in verdict


def test_with_few_runs_a_change_is_reported_with_a_warning() -> None:
    of = trend(stepped(at=6, count=12))
    assert only(of).found == "changed"
    assert f"fewer than {correlated_runs.FEW} runs" in trend_text.independent(only(of))
    assert trend_text.independent(only(of)) in trend_text.verdict(of, only(of))
    of = trend(stepped())
    assert only(of).found == "changed"
    assert "fewer than" not in trend_text.verdict(of, only(of))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_too_few_runs_are_said_to_be_too_few(count: int) -> None:
    whole_trend = trend(stepped(at=1, count=count))
    assert only(whole_trend).found == "too-few"
    assert only(whole_trend).levels == []
    assert only(whole_trend).shifts == []
    text = trend_formats.get("terminal")(whole_trend)
    assert whole_trend.least_runs == 8
    assert f"{whole_trend.least_runs} runs" in " ".join(text.split())
    assert trend_text.FEW in " ".join(text.split())


def test_eight_runs_are_enough_for_one_cell_but_not_for_ten() -> None:
    assert only(trend(stepped(at=4, count=8))).found == "changed"
    many = [run(day, *(costing(0.8, workload=f"w{n}") for n in range(10))) for day in range(1, 9)]
    whole_trend = trend(many)
    assert {series.found for series in whole_trend.series} == {"too-few"}
    assert whole_trend.least_runs == history.least_runs(10) > 8


# ── order, matching ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_in_the_order_in_which_they_began_and_count_once() -> None:
    runs = stepped()
    whole_trend = trend([*runs[::-1], runs[3]])
    assert [side.id for side in whole_trend.runs] == [run.result.id for run in runs]
    assert msgspec.json.encode(whole_trend) == msgspec.json.encode(trend(runs))


def test_times_with_and_without_a_zone_are_ordered() -> None:
    first = run(1, costing(0.8), started="2026-10-01T04:00:00+02:00")
    second = run(2, costing(0.8), started="2026-10-01T03:00:00")
    assert [side.id for side in trend([second, first]).runs] == ["run-01", "run-02"]


def test_a_cell_with_other_conditions_is_another_cell() -> None:
    runs = [
        run(day, costing(0.8, clients=4 if day % 2 else 8), costing(0.7, workload="connect")) for day in range(1, 5)
    ]
    whole_trend = trend(runs)
    assert sorted(len(series.points) for series in whole_trend.series) == [2, 2, 4]
    assert whole_trend.once == 0


def test_cells_that_one_run_has_are_counted_and_not_listed() -> None:
    whole_trend = trend([run(1, costing(0.8), costing(0.8, workload="once")), run(2, costing(0.8))])
    assert whole_trend.once == 1
    assert trend_text.ONCE in " ".join(trend_formats.get("terminal")(whole_trend).split())


def test_two_versions_in_one_run_stay_apart() -> None:
    both = [run(day, costing(0.8, version="15.18"), costing(0.7, version="18.4")) for day in range(1, 4)]
    assert [[point.cell for point in series.points] for series in trend(both).series] == [[0, 0, 0], [1, 1, 1]]


def test_a_run_without_a_number_is_a_gap_with_its_reason() -> None:
    runs = [run(1, costing(0.8)), run(2, failed("the disk is full")), run(3, costing(0.8))]
    series = only(trend(runs))
    assert [point.run for point in series.points] == [0, 2]
    assert [(gap.run, gap.reason) for gap in series.gaps] == [(1, "failed: the disk is full")]


def test_libraries_kernel_cpu_and_tool_are_named_where_they_change() -> None:
    plain = cell().encryption
    changed = run(
        2,
        costing(0.8, encryption=plain | {"server_library": "OpenSSL 3.5.1"}),
        machine=MACHINE | {"kernel": "6.6", "cpu": "Other CPU", "memory": MACHINE["memory"] + 1_000_000},  # type: ignore[operator]
        tool={"name": "ciphercost", "version": "0.2.0"},
    )
    whole_trend = trend([run(1, costing(0.8)), changed])
    names = [change.name for change in only(whole_trend).points[1].changed]
    assert sorted(names) == ["ciphercost version", "cpu", "kernel", "server library"]
    assert [machine for machine, _ in whole_trend.machines] == ["Test CPU, 2 cores", "Other CPU, 2 cores"]
    assert trend_text.LOUD in trend_formats.get("terminal")(whole_trend)


def test_only_the_number_of_a_servers_cores_counts() -> None:
    cores = ("0-1", "2,3", "0-2", "0-1,5")
    series = only(
        trend(
            [run(day, costing(0.8, cores={"server": server_cores})) for day, server_cores in enumerate(cores, start=1)]
        )
    )
    assert [[(change.name, change.other) for change in point.changed] for point in series.points] == [
        [], [], [("number of cores of server", "3")], []
    ]  # fmt: skip


def test_one_run_is_refused() -> None:
    with pytest.raises(UsageError, match="two runs, and got 1:"):
        trend([run(1, costing(0.8)), run(1, costing(0.8))])


def test_a_run_without_a_time_is_refused() -> None:
    with pytest.raises(UsageError, match="its start 'yesterday' is not a time"):
        trend([run(1, costing(0.8)), run(2, costing(0.8), started="yesterday")])


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────────────────


RUNS: dict[str, Callable[[], list[Run]]] = {
    "changed": stepped,
    "too few": lambda: [*stepped(count=3), run(9, failed(version="18.3"))],
    "no cell in common": lambda: [run(1, costing(0.8)), run(2, costing(0.8, workload="connect"))],
    "other machine": lambda: [*stepped()[:19], run(20, costing(0.8), machine=MACHINE | {"cpu": "Other CPU"})],
    "a factor": lambda: [run(day, cell(overhead={"latency_p50": estimate(3.0 + day % 2)})) for day in range(1, 12)],
    "long": lambda: [run(day, costing(ratio), id=f"r{day}", started=f"2026-{day // 28 + 1:02d}-{day % 28 + 1:02d}T00:00:00Z")
                     for day, ratio in enumerate(noise(5, 40))],
}  # fmt: skip
"""Runs whose trends look different."""


class Kinds(dict[str, Trend]):
    """The trend of each, made when it is asked for, not where this file is collected."""

    def __missing__(self, kind: str) -> Trend:
        self[kind] = trend(RUNS[kind]())
        return self[kind]


KINDS = Kinds()


@pytest.mark.parametrize("kind", RUNS)
def test_the_terminal_fits_80_columns(kind: str) -> None:
    lines = trend_formats.get("terminal")(KINDS[kind]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if line != line.rstrip()]


def test_the_terminal_says_what_changed_when_and_beside_what() -> None:
    text = " ".join(trend_formats.get("terminal")(KINDS["changed"]).split())
    assert text.startswith(f"{trend_text.headline(KINDS['changed'])} postgresql · tls")
    assert only(KINDS["changed"]).found == "changed"
    (shift,) = only(KINDS["changed"]).shifts
    assert only(KINDS["changed"]).points[shift.point].run == 12, "counted from 0"
    assert "from run 13 on (2026-10-13 03:00)" in text
    assert "18.3 → 18.4 (run 13)" in text
    assert "runs 1–12" in text


def test_no_change_is_stated_with_what_would_have_been_found() -> None:
    text = " ".join(trend_formats.get("terminal")(KINDS["long"]).split())
    series = only(KINDS["long"])
    assert (series.found, series.shifts) == ("unchanged", [])
    assert series.smallest_step is not None
    assert f"{100 * series.smallest_step:.2g} %" in text, text
    assert "--format csv" in text


def test_a_large_step_is_stated_as_a_factor() -> None:
    step = only(KINDS["a factor"]).smallest_step
    assert step is not None
    assert step > 1
    assert f"{1 + step:.2g}" in trend_text.verdict(KINDS["a factor"], only(KINDS["a factor"]))


@pytest.mark.parametrize("kind", RUNS)
def test_csv_has_a_row_for_each_cell_and_run(kind: str) -> None:
    of = KINDS[kind]
    rows = list(csv.DictReader(io.StringIO(trend_formats.get("csv")(of))))
    assert len(rows) == sum(len(series.points) + len(series.gaps) for series in of.series)
    changed = [row for row in rows if row["change"]]
    assert len(changed) == sum(len(series.shifts) for series in of.series)
    for row in rows:
        assert row["reason"] or float(row["low"]) <= float(row["ratio"]) <= float(row["high"])


@pytest.mark.parametrize("kind", RUNS)
def test_json_is_the_whole_trend(kind: str) -> None:
    text = trend_formats.get("json")(KINDS[kind])
    assert json.loads(text)["format"] == 1
    assert msgspec.json.decode(text, type=Trend) == KINDS[kind]


@pytest.mark.parametrize("kind", RUNS)
def test_markdown_is_valid_and_has_every_run(kind: str) -> None:
    of = KINDS[kind]
    text = trend_formats.get("md")(of)
    html = MARKDOWN.render(text)
    assert html.count("<table>") == sum(line.startswith("| -") for line in text.splitlines()) > 0
    for series in of.series:
        for point in series.points:
            assert f"| {point.run + 1} | {of.runs[point.run].started[:10]}" in text


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'html'"):
        trend_formats.get("htm")


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_the_page_fits_and_fetches_nothing(kind: str, width: int, scheme: str, chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "trend.html"
    page.write_text(trend_formats.get("html")(KINDS[kind]))
    with browser.Visits(chromium) as visits:
        visit = visits.open(page.as_uri(), width, scheme)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.page.evaluate(browser.CUT) == []
        assert min(size for _, size in visit.page.evaluate(browser.TEXTS)) >= 11.5
        visit.open_all()
        assert visit.faults() == []
        assert (visit.asked, visit.complaints) == ([], [])
        plots = visit.page.evaluate(
            "[...document.querySelectorAll('figure svg')].filter(plot => plot.checkVisibility()).length"
        )
        assert plots == sum(bool(series.points) for series in KINDS[kind].series)


def test_names_from_a_record_are_text_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    text = trend_formats.get("html")(trend([run(1, costing(0.8, version="1")), run(2, costing(0.8, version=evil))]))
    assert "<script" not in text


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs below one directory, with their results as JSON beside it."""
    place = tmp_path_factory.mktemp("trend")
    (place / "runs").mkdir()
    for seed in (1, 2):
        recorded(place / str(seed), seed=seed).rename(place / "runs" / f"run{seed}")
    (place / "results").mkdir()
    for seed in (1, 2):
        done = invoked("report", place / "runs" / f"run{seed}", "--format", "json")
        (place / "results" / f"{seed}.json").write_text(done.output)
    return place


def invoked(*arguments: object) -> Any:
    return CliRunner().invoke(commands.cli, [str(argument) for argument in arguments])


def test_directories_a_parent_and_json_give_the_same_costs(measured: Path) -> None:
    given: list[list[object]] = [
        [measured / "runs"],
        [measured / "runs" / "run2", measured / "runs" / "run1"],
        [measured / "results"],
        [measured / "results" / "1.json", measured / "runs" / "run2"],
        [measured / "runs", measured / "results"],
    ]
    outputs = [json.loads(invoked("trend", *arguments, "--format", "json").output) for arguments in given]
    for output in outputs:
        (series,) = output["series"]
        assert [point["estimate"]["ratio"] for point in series["points"]] == [
            point["estimate"]["ratio"] for point in outputs[0]["series"][0]["points"]
        ]
        assert series["found"] == "too-few"


def test_the_intervals_of_a_result_are_those_that_it_prints(measured: Path) -> None:
    run_result = conclude.result_of(measured / "runs" / "run1")
    (intervals,) = of_result(run_result)
    assert set(intervals) <= set(run_result.cells[0].overhead)
    for name, interval in intervals.items():
        low, high = (math.exp(bound) for bound in interval.bounds())
        printed = run_result.cells[0].overhead[name]
        assert (low, high) == pytest.approx((printed.low, printed.high), rel=1e-6)


def test_the_suffix_of_the_output_chooses_the_format(measured: Path, tmp_path: Path) -> None:
    for suffix, begins in ((".html", "<!doctype html>"), (".md", "### "), (".csv", '"series"'), (".json", "{")):
        output = tmp_path / f"trend{suffix}"
        assert invoked("trend", measured / "runs", "-o", output).exit_code == 0
        assert output.read_text().lstrip().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "nowhere"], "no run 'nowhere'"),
        (["empty"], "empty: holds no run; give runs"),
        (["text.json"], "text.json: not a result of ciphercost; give a run's directory"),
        (["newer.json"], "newer.json: written by a newer version of ciphercost; update"),
        (["RUNS", "--format", "pdf"], "not a format of trend"),
        (["RUNS", "--format", "html"], "add -o FILE.html"),
        (["RUNS", "-o", "none/trend.html"], "can't write none/trend.html"),
        (["RUNS/run1"], "needs at least two runs"),
    ],
)
def test_bad_input_is_refused_with_the_place_and_what_to_do(
    arguments: list[str], message: str, measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text('{"a": 1}')
    (tmp_path / "newer.json").write_text('{"format": 99}')
    done = invoked("trend", *(argument.replace("RUNS", str(measured / "runs")) for argument in arguments))
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)


def test_a_damaged_run_among_others_is_named(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured / "runs", tmp_path / "runs")
    (tmp_path / "runs" / "run2" / "plan.json").write_text("{")
    done = invoked("trend", tmp_path / "runs")
    assert isinstance(done.exception, UsageError)
    assert "run2/plan.json" in str(done.exception)
