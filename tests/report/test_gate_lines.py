"""What a gate prints: one line for each cell, with its verdict in words; a disturbed run is named in the first line."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import results
from ciphercost.model.result import Added, Cell, Disturbance, Estimate
from ciphercost.report import comparison, comparison_formats
from ciphercost.report.comparison_types import Comparison, Run
from ciphercost.report.words import comparison_text

UNEVEN = Disturbance(4, 128, 30, 128, 1e-6)


def cell(low: float, high: float, verdict: str, **more: Any) -> Cell:
    ratio = (low + high) / 2
    return results.cell(overhead={"throughput": Estimate(ratio, low, high, n=8)}, verdict=verdict, **more)


def gated(*cells: Cell, limit: float = 0.1) -> Comparison:
    return comparison.compare([Run("a", results.result(*cells), [{}] * len(cells))], limit=limit)


def lines(of: Comparison) -> list[str]:
    """The cells' lines of a comment."""
    text = comparison_formats.get("md")(of).partition("<details>")[0]
    return [line for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("name", ["terminal", "md"])
@pytest.mark.parametrize(
    ("low", "high", "verdict", "ends", "between"),
    [
        (0.97, 1.01, "unresolved", "passes", True),
        (0.998, 1.003, "equivalent", "passes", True),
        (0.85, 1.02, "unresolved", "undecided", True),
        (0.93, 0.95, "differs", "passes", False),
        (0.70, 0.75, "differs", "fails", False),
        (0.88, 0.92, "differs", "undecided", False),
        (1.05, 1.08, "differs", "passes", False),
    ],
)
def test_a_cells_line_has_verdict_interval_budget_and_outcome(
    low: float, high: float, verdict: str, ends: str, between: bool, name: str
) -> None:
    of = gated(cell(low, high, verdict))
    (gate,) = of.gates
    line = comparison_text.gate_line(gate, of.limit)
    assert line.endswith(f"budget 10 %: {ends}")
    assert (f": {verdict}: " in line) == between
    assert ("between" in line) == between
    assert ("95 % CI" in line) != between
    assert gate.verdict == verdict
    shown = " ".join(comparison_formats.get(name)(of).split())
    assert f"budget 10 %: {ends}" in shown


def test_a_cells_line_says_what_is_added_beside_what_the_budget_limits() -> None:
    added = {"server_cpu": Added(3.15, 2.75, 3.55, 0.2, 8)}
    (gate,) = gated(results.cell(added=added)).gates
    line = comparison_text.gate_line(gate, 0.1)
    assert "operations per second" in line
    assert "adds 3.15 µs of server CPU" in line


def test_a_comment_has_one_line_for_each_cell() -> None:
    of = gated(cell(0.93, 0.95, "differs"), cell(0.70, 0.75, "differs"), cell(0.97, 1.01, "unresolved"))
    comment_lines = lines(of)
    assert [line.rpartition(" ")[2] for line in comment_lines] == ["passes", "fails", "passes"]


def test_a_cell_without_a_figure_says_why() -> None:
    of = gated(results.cell(overhead={}, status="failed", reason="the server did not start", verdict=None))
    (line,) = lines(of)
    assert "the server did not start" in line
    assert comparison_text.ENDS["failed"].replace("'", "") in line.replace("'", "")


@pytest.mark.parametrize("name", ["terminal", "md"])
@pytest.mark.parametrize("quiet", [(0.93, 0.95, "differs"), (0.70, 0.75, "differs")])
def test_a_disturbed_run_is_named_before_anything_else(quiet: tuple[float, float, str], name: str) -> None:
    of = gated(cell(*quiet), cell(0.93, 0.95, "differs", disturbance=UNEVEN, workload="insert"))
    text = comparison_formats.get(name)(of)
    first = text.split("\n\n")[0] if name == "md" else " ".join(text.split("\n  postgresql")[0].split())
    assert "disturbed" in first[:160]
    assert text.count("Do not rely on these figures") <= 1


def test_of_two_runs_the_disturbed_one_is_named_in_the_first_line() -> None:
    calm, hit = (results.result(results.cell(disturbance=disturbance)) for disturbance in (None, UNEVEN))
    of = comparison.compare([Run("calm", calm, [{}]), Run("busy", msgspec.structs.replace(hit, id="other"), [{}])])
    for name in ("terminal", "md"):
        assert comparison_formats.get(name)(of).lstrip("*").startswith("busy: ")
    assert len(of.disturbed) == 1
