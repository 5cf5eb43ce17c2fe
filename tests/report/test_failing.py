"""Every reader of a result learns that one arm fails more often, and none passes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import fake
import results
from ciphercost.estimate import failures
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.result import Cell, Failures, Result
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import (
    advice,
    calibration,
    comparison,
    comparison_formats,
    cost_gate,
    figures,
    formats,
    notebook,
    trend_analysis,
)
from ciphercost.report.comparison_types import Run
from ciphercost.report.formats import html, junit
from ciphercost.report.words import figure_text, verdict_text
from ciphercost.runs import conclude, pipeline

WORST = results.estimate(0.94, 0.02)
MANY = Failures(
    0,
    640,
    40,
    640,
    1e-9,
    blocks=256,
    encrypted_blocks=38,
    sessions=8,
    encrypted_timeouts=9,
    succeeded=results.estimate(0.9375),
    throughput=WORST,
    undecided=True,
)
FEW = Failures(
    0, 640, 2, 640, 0.5, blocks=256, encrypted_blocks=2, sessions=2, succeeded=results.estimate(0.997, 0.01),
    throughput=results.estimate(0.997, 0.01), undecided=True,
)  # fmt: skip
FIRST = "THE ENCRYPTED ARM FAILS MORE OFTEN"


def cell(of: Failures | None, **more: Any) -> Cell:
    known: dict[str, Any] = {"overhead": {"throughput": results.estimate(1.0, 0.001)}, "verdict": "unresolved"} | more
    return results.cell(failures=of, **known)


def result(of: Failures | None) -> Result:
    return results.result(cell(of))


def run(name: str, of: Failures | None, ratio: float = 1.0) -> Run:
    error = Interval(0.0, (Error(0.0005, 7, "t over 8 sessions"),), 8)
    run_result = results.result(cell(of, overhead={"throughput": results.estimate(ratio, 0.001)}), id=name)
    intervals = {"throughput": error}
    if of is not None:
        intervals[failures.key("throughput")] = Interval(-0.06, (Error(0.01, 7, "t"),), 8)
    return Run(name, run_result, [intervals])


def test_the_headline_begins_with_it() -> None:
    first, second = verdict_text.sentences(result(MANY))
    assert first.startswith(FIRST)
    assert failures.what(MANY) in first
    assert MANY.throughput is not None
    assert figure_text.cost("throughput", MANY.throughput) in first
    assert figure_text.UNRESOLVED.strip(" ()") in second
    both = results.result(cell(None), cell(MANY, workload="range"))
    assert verdict_text.sentences(both)[0].startswith(f"{FIRST} in 1 of 2 cells, ")


def test_few_failures_are_part_of_why_a_verdict_is_open() -> None:
    (only,) = verdict_text.sentences(result(FEW))
    assert verdict_text.failing(cell(FEW)) in only
    assert failures.counted(FEW) in verdict_text.verdict(cell(FEW))


@pytest.mark.parametrize("name", ["terminal", "md", "latex"])
def test_every_report_for_people_says_so_first(name: str) -> None:
    text = " ".join(formats.get(name)(result(MANY)).split())
    assert FIRST in text
    assert text.index(FIRST) < 200


def test_the_page_and_the_notebook_say_so() -> None:
    assert FIRST in html.render(result(MANY))
    assert FIRST in notebook.html(result(MANY))
    assert f"the {failures.more(MANY)} arm" in notebook.line(result(MANY))
    assert calibration.text(result(MANY)).startswith(f"! {FIRST}")


def test_tables_and_schemas_for_programs_have_it() -> None:
    document = msgspec.json.decode(formats.get("json")(result(MANY)))
    assert document["cells"][0]["failures"]["encrypted"] == 40
    (row,) = figures.figures(results.result(cell(MANY, warnings=list(failures.warnings(MANY, 38)))))
    assert row["warnings"].split("; ") == [warning.code for warning in failures.warnings(MANY, 38)]


def test_trackers_get_the_cost_with_failures() -> None:
    (bench,) = json.loads(formats.get("bencher")(result(MANY))).values()
    assert bench["throughput-ratio"]["value"] == WORST.ratio
    assert bench["failed-slices-encrypted"] == {"value": 40 / 640}
    assert bench["failed-slices-plain"] == {"value": 0.0}
    assert not [name for name in bench if name.startswith("latency")]
    (entry,) = json.loads(formats.get("github-action-benchmark")(result(MANY)))
    assert entry["value"] == pytest.approx(1 / WORST.ratio)
    assert failures.counted(MANY) in entry["extra"]
    metrics = formats.get("openmetrics")(result(MANY))
    assert any(line.startswith("ciphercost_failed_slices{") and line.endswith(" 40") for line in metrics.splitlines())
    assert 'failures="differ"' in metrics
    assert f"{WORST.ratio!r}" in metrics


def test_trackers_keep_the_cost_where_the_arms_do_not_differ() -> None:
    (bench,) = json.loads(formats.get("bencher")(result(FEW))).values()
    assert bench["throughput-ratio"]["value"] == 1.0
    assert bench["failed-slices-encrypted"] == {"value": 2 / 640}
    (quiet,) = json.loads(formats.get("bencher")(result(None))).values()
    assert set(quiet) == {"throughput-ratio"}
    assert "failed" not in formats.get("openmetrics")(result(None)).replace('"failed"', "")


@pytest.mark.parametrize(
    ("of", "limit", "outcome", "status"),
    [
        (None, 0.01, "pass", 0),
        (MANY, 0.01, "fail", 3),
        (MANY, 0.3, "unresolved", 4),
        (FEW, 0.01, "unresolved", 4),
        (FEW, 0.1, "pass", 0),
    ],
)
def test_a_budget_counts_failures(of: Failures | None, limit: float, outcome: str, status: int) -> None:
    (gate,) = cost_gate.gate(result(of), 0, limit)
    assert gate.outcome == outcome
    compared = comparison.compare([run("a", of)], limit=limit, strict=True)
    assert compared.exit_status == status
    text = comparison_formats.get("terminal")(compared)
    assert ("of 640 encrypted slices failed" in " ".join(text.split())) is (outcome != "pass")
    assert junit.gated(result(of), limit)[1] == status


def test_without_a_budget_junit_passes_no_such_cell() -> None:
    assert 'type="unresolved"' in formats.get("junit")(results.result(cell(MANY, verdict="differs")))


def test_advice_chooses_no_such_mechanism() -> None:
    for limit in (None, 0.3):
        (answer,) = advice.advise(result(MANY), ["in-transit"], limit).answers
        assert answer.chosen is None
        assert "slices failed" in answer.candidates[0].reasons[0]


def test_two_runs_are_not_equivalent_where_one_arm_of_one_fails_more_often() -> None:
    quiet = comparison.compare([run("a", None), run("b", None)])
    assert quiet.pairs[0].verdict == "equivalent"
    (pair,) = comparison.compare([run("a", None), run("b", MANY)]).pairs
    assert pair.verdict == "unresolved"


def test_a_trend_has_a_gap_there() -> None:
    undated = [run(str(number), MANY if number == 3 else None, 1.0) for number in range(6)]
    runs = [
        run._replace(result=msgspec.structs.replace(run.result, started=f"2026-10-{number + 1:02d}T03:00:00Z"))
        for number, run in enumerate(undated)
    ]
    (series,) = trend_analysis.trend(runs).series
    assert [gap.run for gap in series.gaps] == [3]
    assert series.gaps[0].reason.startswith("one arm fails more often")


@pytest.mark.parametrize(("regime", "how"), [("capacity", "timeout"), ("latency", "connection")])
def test_a_whole_run_whose_encrypted_arm_loses_slices(tmp_path: Path, regime: str, how: str) -> None:
    """The fake agent fails 8 % of the encrypted arm's slices, which are otherwise like the plain ones."""
    with fake.in_place(tmp_path, f"--sd 0.005 --lose-encrypted 0.08 --lose-as {how}"):
        spec = Spec(cells=[CellSpec("null", "busy", regime=regime)], seed=3, mode="full", sessions=8, time=160.0)  # type: ignore[arg-type]
        run_result = pipeline.run(spec, tmp_path / "run")
    (of,) = (cell.failures for cell in run_result.cells)
    assert of is not None
    assert of.encrypted > 8
    assert of.plain == 0
    assert of.encrypted_timeouts == (of.encrypted if how == "timeout" else 0)
    assert run_result.cells[0].verdict == "unresolved"
    assert " ".join(formats.get("terminal")(run_result).split()).startswith(FIRST)
    assert conclude.result_of(tmp_path / "run").cells == run_result.cells
    assert cost_gate.gate(run_result, 0, 0.01)[0].outcome in ("fail", "unresolved")
