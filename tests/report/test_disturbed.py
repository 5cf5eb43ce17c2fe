"""If every slice of a cell was disturbed, every report warns at the top and in the verdict."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

import results
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.simulate import records
from ciphercost.report import advice, calibration, cost_gate, disturbed, formats, notebook
from ciphercost.report.formats import html, latex, md, terminal
from ciphercost.report.words import verdict_text


def estimated(marks: Sequence[list[str]]) -> bool:
    """Whether a cell is disturbed if its slices repeat these marks."""
    random = np.random.default_rng(1)
    estimator, number = CellEstimator(), 0
    for each in records(random.normal(0, 0.01, (8, 4)), np.ones(8)):
        own = marks[number % len(marks)] if each.position else []
        number += bool(each.position)
        estimator.add(msgspec.structs.replace(each, marks=own))
    return estimator.finish("quick", 0.01).disturbed


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([["foreign-cpu"]], True),
        ([["steal"], ["foreign-cpu"]], True),
        ([["steal", "foreign-cpu"]], True),
        ([["foreign-cpu"], ["foreign-cpu"], ["foreign-cpu"], []], False),
        ([["client-bound"]], False),
        ([[]], False),
    ],
    ids=str,
)
def test_a_cell_is_disturbed_if_others_took_the_cpu_in_every_slice(marks: Sequence[list[str]], expected: bool) -> None:
    assert estimated(marks) is expected


def test_the_warning_names_the_cells_and_what_to_do() -> None:
    noisy, quiet = results.cell(disturbed=True), results.cell("mariadb")
    assert disturbed.warning([quiet]) == ""
    assert disturbed.warning([noisy]).startswith("Every slice was disturbed: ")
    assert "of 1 of 2 cells (postgresql" in disturbed.warning([noisy, quiet])
    assert "of all 2 cells" in disturbed.warning([noisy, results.cell("mariadb", disturbed=True)])
    assert "run again" in disturbed.warning([noisy])


def test_every_report_warns_at_the_top_and_in_the_verdict() -> None:
    made = results.result(results.cell(disturbed=True))
    assert verdict_text.DISTURBED in verdict_text.verdict(made.cells[0])
    assert verdict_text.DISTURBED not in verdict_text.verdict(results.cell())
    flat = " ".join(terminal.render(made).split())
    assert flat.index("Every slice was disturbed") < flat.index("what encryption costs")
    assert verdict_text.DISTURBED in flat
    text = md.render(made)
    assert text.index("Every slice was disturbed") < text.index("| cell |")
    page = html.render(made)
    assert page.index("Every slice was disturbed") < page.index("<main")
    assert "Every slice" not in html.render(results.result(results.cell()))


def test_what_is_printed_in_a_paper_or_a_notebook_warns_too() -> None:
    noisy, quiet = results.result(results.cell(disturbed=True)), results.result(results.cell())
    warning = "Every slice was disturbed"
    caption = latex.render(noisy).partition(r"\caption{")[2]
    assert caption.startswith(warning)
    assert notebook.html(noisy).startswith(f"<table><caption>{warning}")
    assert warning in notebook.line(noisy)
    assert calibration.text(noisy).startswith(f"! {warning}")
    for render in (latex.render, notebook.html, notebook.line, calibration.text):
        assert warning not in render(quiet)


@pytest.mark.parametrize("name", ["terminal", "md"])
def test_advice_by_disturbed_cells_warns_too(name: str) -> None:
    noisy, quiet = results.result(results.cell(disturbed=True)), results.result(results.cell())
    for result, warns in ((noisy, True), (quiet, False)):
        said = formats.with_advice(name, result, advice.advise(result, ["in-transit"]))
        assert said.lstrip("!* ").startswith("Every slice was disturbed") is warns


def test_a_gate_names_disturbed_cells() -> None:
    made = results.result(results.cell(disturbed=True), results.cell("mariadb"))
    noisy, quiet = cost_gate.gate(made, 0, 10.0)
    assert cost_gate.DISTURBED in noisy.reason
    assert cost_gate.DISTURBED not in quiet.reason


def test_tables_for_programs_name_the_disturbed_cells() -> None:
    made = results.result(results.cell(disturbed=True), results.cell("mariadb"))
    rows = list(csv.DictReader(io.StringIO(formats.get("csv")(made))))
    by_engine = {row["engine"]: row["warnings"].split("; ") for row in rows}
    assert "disturbed" in by_engine["postgresql"]
    assert "disturbed" not in by_engine["mariadb"]
