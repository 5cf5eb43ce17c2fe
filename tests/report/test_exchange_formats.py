"""Formats for other tools are read by those tools' own parsers or schemas, and have the numbers of result.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
import xmlschema
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_text

import ciphercost
from ciphercost import commands
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Estimate, Result
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import cell_ids, formats
from ciphercost.report.formats import junit, openmetrics
from ciphercost.report.words import figure_text
from repetitions import examples
from results import cell, estimate, failed, mixed, recorded, result

TEXTS = st.text(st.sampled_from("\"\\'<>&{}=,#\n\t\r x1%\x00\x1b\ufffe"), max_size=30) | st.text(max_size=20)
FORMATS = ("openmetrics", "junit", "bencher", "github-action-benchmark")
JUNIT = xmlschema.XMLSchema(Path(__file__).with_name("junit-10.xsd"))
BENCHER = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 64},
        "additionalProperties": {
            "type": "object",
            "properties": {key: {"type": "number"} for key in ("value", "lower_value", "upper_value")},
            "required": ["value"],
            "additionalProperties": False,
        },
    },
}
"""Bencher Metric Format, with measures named by slugs."""
ENTRIES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"value": {"type": "number", "exclusiveMinimum": 0}}
        | {key: {"type": "string"} for key in ("name", "unit", "range", "extra")},
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}
"""What github-action-benchmark reads with customSmallerIsBetter."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("exchange") / "run")


def parsed(exposition: str) -> list[Metric]:
    return list(text_string_to_metric_families(exposition))  # type: ignore[no-untyped-call]


def families(run_result: Result) -> dict[str, Metric]:
    read = parsed(formats.get("openmetrics")(run_result) + "\n")
    assert len({family.name for family in read}) == len(read)
    return {family.name.removeprefix("ciphercost_"): family for family in read}


def cases(text: str) -> list[junitparser.TestCase]:
    """The test cases, after the schema and the counts were checked."""
    JUNIT.validate(text)
    suites = junitparser.JUnitXml.fromstring(text.encode())
    test_cases = [case for suite in suites for case in suite]
    (suite,) = suites
    kinds = [type(outcome) for case in test_cases for outcome in case.result]
    for counts in (suites, suite):
        assert counts.tests == len(test_cases)
        assert counts.failures == kinds.count(junitparser.Failure)
        assert counts.errors == kinds.count(junitparser.Error)
    assert suite.skipped == kinds.count(junitparser.Skipped)
    return test_cases


def outcomes(text: str) -> list[str]:
    """`Failure over-budget`, … or `passed`, by test case."""
    by_case = []
    for case in cases(text):
        by_case += [f"{type(outcome).__name__} {outcome.type}" for outcome in case.result] or ["passed"]
    return by_case


# ── the same numbers ──────────────────────────────────────────────────────────────────────────────────────────────────


def measured(run_result: Result) -> dict[tuple[str, str], Estimate]:
    """By cell and metric, the ratios of proven cells."""
    cells = zip(cell_ids.ids(run_result), run_result.cells, strict=True)
    return {
        (name, key): estimate for name, cell in cells if cell.status == "ok" for key, estimate in cell.overhead.items()
    }


def test_openmetrics_has_every_ratio_with_its_bounds(run: Path) -> None:
    for run_result in (mixed(), ciphercost.load(run)):
        read = families(run_result)
        for family, bound in (
            ("cost_ratio", "ratio"),
            ("cost_lower_bound_ratio", "low"),
            ("cost_upper_bound_ratio", "high"),
        ):
            assert (read[family].type, read[family].unit) == ("gauge", "ratio")
            values = {(sample.labels["cell"], sample.labels["metric"]): sample.value for sample in read[family].samples}
            assert values == {key: getattr(estimate, bound) for key, estimate in measured(run_result).items()} != {}


def test_openmetrics_has_verdict_status_and_versions(run: Path) -> None:
    for run_result in (mixed(), ciphercost.load(run)):
        read = families(run_result)
        for family in ("verdict", "status"):
            assert read[family].type == "stateset"
            held = {
                sample.labels["cell"]: sample.labels[f"ciphercost_{family}"]
                for sample in read[family].samples
                if sample.value == 1
            }
            known = zip(cell_ids.ids(run_result), run_result.cells, strict=True)
            assert held == {name: state for name, cell in known if (state := getattr(cell, family))}
        assert [sample.labels["cell"] for sample in read["cell"].samples] == cell_ids.ids(run_result)
        assert {sample.name for sample in read["cell"].samples} == {"ciphercost_cell_info"}
        (about,) = read["run"].samples
        assert about.labels["run"] == run_result.id
        assert read["run_started_timestamp_seconds"].samples[0].value > 1.7e9


def test_openmetrics_ends_as_the_specification_demands(run: Path) -> None:
    done = CliRunner().invoke(commands.cli, ["report", str(run), "--format", "openmetrics"])
    assert done.output.endswith("\n# EOF\n")
    assert "\n\n" not in done.output


def test_openmetrics_without_its_own_types_is_the_older_text_format() -> None:
    """The documented filter for node_exporter's textfile collector and the Pushgateway."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "gate-ci.md").read_text()
    assert "sed -E '/^# TYPE .* (info|stateset)$/d'" in page
    text = re.sub(r"^# TYPE .* (info|stateset)\n", "", formats.get("openmetrics")(mixed()) + "\n", flags=re.MULTILINE)
    assert {kind.partition(" ")[0] for kind in re.findall(r"^# TYPE \S+ (.*)$", text, re.MULTILINE)} == {"gauge"}
    read = [sample for family in older_text(text) for sample in family.samples]
    assert {"ciphercost_cost_ratio", "ciphercost_verdict", "ciphercost_run_info"} <= {sample.name for sample in read}
    assert len(read) == len([line for line in text.splitlines() if not line.startswith("#")])


def test_bencher_and_github_action_benchmark_have_the_ratios(run: Path) -> None:
    for run_result in (mixed(), ciphercost.load(run)):
        shown = {key: estimate for key, estimate in measured(run_result).items() if key[1] in figure_text.LABELS}
        read = json.loads(formats.get("bencher")(run_result))
        jsonschema.validate(read, BENCHER)
        values = {(name, key): measure for name, measures in read.items() for key, measure in measures.items()}
        assert values == {
            (name, f"{key.replace('_', '-')}-ratio"): {
                "value": estimate.ratio,
                "lower_value": estimate.low,
                "upper_value": estimate.high,
            }
            for (name, key), estimate in shown.items()
        }
        entries = json.loads(formats.get("github-action-benchmark")(run_result))
        jsonschema.validate(entries, ENTRIES)
        assert len({entry["name"] for entry in entries}) == len(entries) == len(shown)


def test_a_higher_cost_is_a_larger_value_for_github_action_benchmark() -> None:
    def values(ratio: float, metric: str) -> tuple[float, ...]:
        entry: dict[str, Any]
        (entry,) = json.loads(
            formats.get("github-action-benchmark")(result(cell(overhead={metric: estimate(ratio, 0.1)})))
        )
        low, _, high = entry["range"].partition(" to ")
        assert float(low) < entry["value"] < float(high)
        return (float(low), entry["value"], float(high))

    assert values(0.5, "throughput") > values(0.8, "throughput") > values(1.25, "throughput")
    assert values(2.0, "server_cpu_per_op") > values(1.25, "server_cpu_per_op")


@pytest.mark.parametrize("name", ["bencher", "github-action-benchmark", "openmetrics"])
def test_a_cell_that_was_not_proven_has_no_figure(name: str) -> None:
    alone = formats.get(name)(result(cell(status="unproven", reason="ssl is off")))
    assert "0.8" not in alone
    assert {"bencher": "{}", "github-action-benchmark": "[]"}.get(name, alone) == alone


def test_the_help_names_every_format() -> None:
    help_ = re.sub(r"-\s+", "-", " ".join(CliRunner().invoke(commands.cli, ["report", "--help"]).output.split()))
    for name in formats.names():
        assert re.search(rf"\b{name}\b", help_), name


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_without_cells_is_still_a_document(name: str) -> None:
    text = formats.get(name)(result())
    if name == "junit":
        assert cases(text) == []
    elif name == "openmetrics":
        assert families(result())["cost_ratio"].samples == []
    else:
        assert json.loads(text) == {"bencher": {}, "github-action-benchmark": []}[name]


# ── JUnit ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_junit_has_a_test_case_for_each_cell() -> None:
    run_result = result(
        cell(),
        cell(verdict="unresolved", workload="insert"),
        failed("the server went away"),
        failed("server witness: ssl is off", status="unproven"),
        failed("never steady", status="no-steady-state"),
    )
    text = formats.get("junit")(run_result)
    assert [case.name for case in cases(text)] == cell_ids.ids(run_result)
    assert outcomes(text) == [
        "passed",
        "Skipped unresolved",
        "Error failed",
        "Failure unproven",
        "Skipped no-steady-state",
    ]
    assert cases(text)[3].result[0].message == "server witness: ssl is off"
    assert "20.0 % fewer" in cases(text)[0].system_out


@pytest.mark.parametrize(
    ("limit", "outcome", "status"),
    [("50%", "passed", 0), ("20%", "Skipped unresolved", 4), ("5%", "Failure over-budget", 3)],
)
def test_a_budget_decides_a_test_case_by_the_interval(limit: str, outcome: str, status: int) -> None:
    gated = formats.gate("junit")
    assert gated is not None
    run_result = result(cell(overhead={"throughput": estimate(0.8, 0.03)}, verdict="unresolved"))
    text, exit_status = gated(run_result, float(limit.rstrip("%")) / 100)
    assert outcomes(text) == [outcome]
    assert exit_status == status


def test_with_a_budget_a_cell_without_a_number_sets_the_exit_status() -> None:
    assert junit.gated(result(cell(), failed()), 0.5)[1] == 1
    assert junit.gated(result(cell(), cell("null", "none", layer="control")), 0.5)[1] == 0


def test_junit_with_a_budget_by_the_command(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    asked = ["report", str(run), "--format", "junit", "-o", str(path), "--max-cost"]
    for limit, share in (("10000%", 100.0), ("0.01%", 0.0001)):
        done = CliRunner().invoke(commands.cli, [*asked, limit])
        text, status = junit.gated(ciphercost.load(run), share)
        assert (done.exit_code, path.read_text()) == (status, text + "\n")
        assert (outcomes(text) == ["passed"]) == (status == 0)
        assert status == 0 or share < 1
    done = CliRunner().invoke(commands.cli, [*asked, "5%", "--need", "tls1.3"])
    assert isinstance(done.exception, UsageError)
    assert "--need" in str(done.exception)


# ── escaping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_a_label_is_read_back_unchanged(text: str) -> None:
    exposition = f'# TYPE a gauge\na{{x="{openmetrics.escaped(text)}"}} 1\n# EOF\n'
    ((sample,),) = [family.samples for family in parsed(exposition)]
    assert sample.labels["x"] == figure_text.printable(text)


@given(TEXTS)
@settings(max_examples=examples(100), deadline=None)
def test_no_text_breaks_a_format(text: str) -> None:
    run_result = result(
        cell(version=text, variant=text, workload=text, encryption={"cipher": text}),
        failed(text, variant=text),
        machine={"cpu": text, "cores": 2, "kernel": text},
        id=text,
    )
    shown = figure_text.printable(text)
    read = families(run_result)
    assert read["cell"].samples[0].labels.get("version", "") == shown
    assert read["run"].samples[0].labels.get("cpu", "") == shown
    error = cases(formats.get("junit")(run_result))[1].result[0]
    assert error.message == (shown or "the cell failed")
    jsonschema.validate(json.loads(formats.get("bencher")(run_result)), BENCHER)
    jsonschema.validate(json.loads(formats.get("github-action-benchmark")(run_result)), ENTRIES)


# ── names of cells ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_says_what_was_asked_for_and_not_what_the_machine_has() -> None:
    asked = [
        CellSpec("postgresql", "tls"),
        CellSpec("postgresql", "tls", version="17", regime="one-core", clients=8, factors={"cipher": "chacha20"}),
        CellSpec("postgresql", "tls", delay="10ms", per_request=True, settings={"shared_buffers": "1GB"}, rate=12.5),
        CellSpec("postgresql", "tls"),
    ]
    run_result = result(*(cell(version=f"18.{n}") for n in range(4)), spec=Spec(cells=asked))
    assert cell_ids.ids(run_result) == [
        "postgresql:tls point-select",
        "postgresql@17:tls point-select one-core clients=8 cipher=chacha20",
        "postgresql:tls point-select per-request rate=12.5 delay=10ms shared_buffers=1GB",
        "postgresql:tls point-select #2",
    ]


def test_the_same_request_has_the_same_name_in_every_run(run: Path, tmp_path: Path) -> None:
    again = recorded(tmp_path / "again", seed=2)
    assert (
        cell_ids.ids(ciphercost.load(run))
        == cell_ids.ids(ciphercost.load(again))
        == ["null:busy point-select one-core"]
    )
