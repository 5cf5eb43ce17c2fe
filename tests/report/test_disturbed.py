"""If every slice of a cell was disturbed, every report warns at the top and in the verdict."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

import results
import simulate_disturbance
from ciphercost.estimate import disturbance
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.model.result import Disturbance
from ciphercost.report import advice, calibration, comparison, comparison_formats, disturbed, formats, notebook
from ciphercost.report.comparison_types import Run
from ciphercost.report.formats import html, junit, latex, md, terminal
from ciphercost.report.words import cell_text, verdict_text
from simulate import records


def estimated(marks: Sequence[list[str]]) -> bool:
    """Whether a cell is disturbed if its slices repeat these marks."""
    random = np.random.default_rng(1)
    estimator, number = CellEstimator(), 0
    for record in records(random.normal(0, 0.01, (8, 4)), np.ones(8)):
        slice_marks = marks[number % len(marks)] if record.position else []
        number += bool(record.position)
        estimator.add(msgspec.structs.replace(record, marks=slice_marks))
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
    assert disturbance.state(noisy) == "mostly"
    assert disturbed.MOSTLY in disturbed.warning([noisy])
    assert cell_text.names([noisy, quiet])[0] in disturbed.warning([noisy, quiet])
    assert cell_text.names([noisy, quiet])[1] not in disturbed.warning([noisy, quiet])
    assert "run again" in disturbed.MOSTLY


def test_every_report_warns_at_the_top_and_in_the_verdict() -> None:
    noisy = results.result(results.cell(disturbed=True))
    warning, sentence = disturbed.warning(noisy.cells), verdict_text.disturbed(noisy.cells[0])
    assert sentence in verdict_text.verdict(noisy.cells[0])
    assert verdict_text.disturbed(results.cell()) == ""
    flat = " ".join(terminal.render(noisy).split())
    assert flat.index(warning) < flat.index("what encryption costs")
    assert sentence in flat
    text = md.render(noisy)
    assert text.index(warning) < text.index("| cell |")
    page = html.render(noisy)
    head, _, means = warning.partition(". ")
    assert page.index(head) < page.index(means) < page.index("<main")
    assert head not in html.render(results.result(results.cell()))


def test_what_is_printed_in_a_paper_or_a_notebook_warns_too() -> None:
    noisy, quiet = results.result(results.cell(disturbed=True)), results.result(results.cell())
    warning = disturbed.warning(noisy.cells).partition(":")[0]
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
        printed = formats.with_advice(name, result, advice.advise(result, ["in-transit"]))
        assert printed.lstrip("!* ").startswith(disturbed.warning(noisy.cells)[:20]) is warns


MOSTLY = Disturbance(124, 128, 124, 128, 1.0)
UNEVEN = Disturbance(4, 128, 30, 128, 1e-5)
SOME = Disturbance(50, 128, 60, 128, 0.3)


def test_most_slices_are_like_every_slice_but_with_their_number() -> None:
    """Not only 256 of 256."""
    noisy = results.result(results.cell(disturbance=MOSTLY))
    counted = disturbance.counted(MOSTLY)
    assert "248 of 256" in counted
    assert counted in disturbed.warning(noisy.cells)
    assert counted in verdict_text.verdict(noisy.cells[0])
    assert disturbed.warning(noisy.cells)[:20] in terminal.render(noisy).splitlines()[0]
    assert disturbed.warning([results.cell(disturbance=SOME)]) == ""
    assert counted in disturbed.warning([results.cell(disturbance=SOME), noisy.cells[0]])


def test_one_arm_that_is_disturbed_more_is_not_to_be_relied_on() -> None:
    uneven = results.result(results.cell(disturbance=UNEVEN))
    warning = disturbed.warning(uneven.cells)
    assert disturbance.state(uneven.cells[0]) == "uneven"
    counted = disturbance.counted(UNEVEN)
    assert {"30 of 128", "4 of 128"} == set(re.findall(r"[0-9]+ of [0-9]+", counted))
    assert counted in warning
    assert disturbed.UNEVEN in warning
    assert counted in verdict_text.verdict(uneven.cells[0])


@pytest.mark.parametrize(
    ("how", "outcome", "first", "status"),
    [
        (None, "pass", "PASS: encryption costs at most 30 % in 1 cell", 0),
        (SOME, "pass", "PASS: encryption costs at most 30 % in 1 cell", 0),
        (MOSTLY, "pass", "PASS ON A BUSY MACHINE: encryption costs at most 30 %", 0),
        (UNEVEN, "unresolved", "UNRESOLVED: in 1 of 1 cell other processes disturbed one arm more than the other", 4),
    ],
)
def test_a_gate_says_so_in_its_first_line(how: Disturbance | None, outcome: str, first: str, status: int) -> None:
    result = results.result(results.cell(disturbance=how))
    compared = comparison.compare([Run("a", result, [{}])], limit=0.3, strict=True)
    assert (compared.gates[0].outcome, compared.exit_status) == (outcome, status)
    for name in ("terminal", "md"):
        line = " ".join(comparison_formats.get(name)(compared).split())
        assert line.lstrip("#❔✅⚠️ ").startswith(first), name
    assert (how in (MOSTLY, UNEVEN)) == ("other processes disturbed" in compared.gates[0].reason)
    xml, _ = junit.gated(result, 0.3)
    assert ("other processes disturbed" in xml) == (how in (MOSTLY, UNEVEN))


@pytest.mark.parametrize(
    ("plain", "encrypted", "more", "expected"),
    [
        (0, 6, 6, "uneven"),  # 15 % of one arm's slices
        (0, 4, 4, ""),  # a fair coin does that in an eighth of runs
        (38, 38, 0, "mostly"),
        (20, 20, 0, "mostly"),
        (19, 19, 0, ""),
        (30, 40, 10, "uneven"),
        (1, 2, 1, ""),
    ],
)
def test_the_state_follows_from_the_counts_of_both_arms(plain: int, encrypted: int, more: int, expected: str) -> None:
    counts = Counter(
        {"disturbed plain": plain, "disturbed encrypted": encrypted, "slices plain": 40, "slices encrypted": 40}
    )
    counts["disturbed more"] = more
    cell = results.cell(disturbance=disturbance.total(counts))
    assert disturbance.state(cell) == expected


def test_blocks_count_the_slices_of_each_arm() -> None:
    random = np.random.default_rng(1)
    estimator = CellEstimator()
    for record in records(random.normal(0, 0.01, (20, 4)), np.ones(20)):
        hit = bool(record.position) and record.arm == "encrypted" and record.block < 7
        estimator.add(msgspec.structs.replace(record, marks=["steal"] if hit else []))
    cell_estimate = estimator.finish("quick", 0.01)
    assert cell_estimate.disturbance == Disturbance(0, 40, 14, 40, 2 / 2**7)
    assert "disturbed-unevenly" in [warning.code for warning in cell_estimate.warnings]


@pytest.mark.parametrize(("sessions", "blocks"), [(1, 20), (8, 6)])
@pytest.mark.parametrize("both", [True, False])
def test_intervals_cover_unless_a_run_says_that_one_arm_was_disturbed_more(
    sessions: int, blocks: int, both: bool
) -> None:
    """Foreign CPU takes a fifth of the throughput on average; METHODOLOGY.md has the table."""
    for share in (0.1, 0.2, 0.5, 1.0):
        covers, flagged = simulate_disturbance.covered(11, sessions, blocks, share, both=both, runs=300)
        print(
            f"{sessions}x{blocks}, both arms: {both}, {share:.0%}: covers {covers.mean():.1%}, says so {flagged.mean():.1%}"
        )
        assert np.mean(~covers & ~flagged) <= 0.09
        if both:
            assert covers.mean() >= 0.92
            assert flagged.mean() <= 0.06
        if not both and share >= 0.5:
            assert covers.mean() < 0.2
            assert flagged.mean() > 0.95


def test_tables_for_programs_name_the_disturbed_cells() -> None:
    result = results.result(results.cell(disturbed=True), results.cell("mariadb"))
    rows = list(csv.DictReader(io.StringIO(formats.get("csv")(result))))
    by_engine = {row["engine"]: row["warnings"].split("; ") for row in rows}
    assert "disturbed" in by_engine["postgresql"]
    assert "disturbed" not in by_engine["mariadb"]
