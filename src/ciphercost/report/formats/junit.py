"""JUnit XML, as Jenkins, GitLab and GitHub's test reporters read it (junit-10.xsd): one test case per cell.

| test case | when |
|---|---|
| failure | the proof failed, or the cost is certainly above the budget |
| error | the cell failed |
| skipped | nothing was decided: no steady state, imported figures, an unresolved verdict, one arm fails more often, the interval includes the budget |
| passed | otherwise |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from ciphercost.estimate import failures, notation
from ciphercost.model.result import Cell, Result
from ciphercost.report import cell_ids, comparison, cost_gate
from ciphercost.report.comparison_types import Gate
from ciphercost.report.formats import terminal
from ciphercost.report.words import figure_text
from ciphercost.report.words.verdict_text import verdict

SUITE = "ciphercost"
TAGS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""Counts of a suite, and the elements that they count."""


class Outcome(NamedTuple):
    """Why a test case did not pass."""

    tag: Literal["failure", "error", "skipped"]
    type: str
    message: str


def render(result: Result) -> str:
    """The document, without a budget."""
    return _document(result, None)


def gated(result: Result, limit: float) -> tuple[str, int]:
    """The document with the budget `limit` (0.1: 10 %), and the exit status, as `compare --fail-over --strict` has it."""
    gates = cost_gate.gate(result, 0, limit)
    return _document(result, limit), comparison.status([], [], gates, limit, strict=True)


def _document(result: Result, limit: float | None) -> str:
    gates = {} if limit is None else {gate.cell: gate for gate in cost_gate.gate(result, 0, limit)}
    cases = [
        _case(name, cell, gates.get(number), limit)
        for number, (name, cell) in enumerate(zip(cell_ids.ids(result), result.cells, strict=True))
    ]
    counts = counted(cases)
    time = f"{sum(map(_seconds, result.cells)):.3f}"
    skipped = {"skipped": counts.pop("skipped")}
    root = ElementTree.Element("testsuites", {"name": SUITE, "time": time} | counts)
    # The schema has no `skipped` on the root, and a timestamp without a zone.
    started = {"timestamp": _text(result.started.removesuffix("Z")), "time": time, "id": _text(result.id)}
    suite = ElementTree.SubElement(root, "testsuite", {"name": SUITE} | counts | skipped | started)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(result, limit):
        ElementTree.SubElement(properties, "property", {"name": name, "value": _text(value)})
    suite.extend(cases)
    return text_of(root)


def counted(cases: Sequence[ElementTree.Element]) -> dict[str, str]:
    """A suite's counts of its test cases, as attributes."""
    return {"tests": str(len(cases))} | {
        name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in TAGS.items()
    }


def text_of(root: ElementTree.Element) -> str:
    """A whole document."""
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _properties(result: Result, limit: float | None) -> Iterator[tuple[str, str]]:
    yield "run", result.id
    yield "ciphercost", result.tool.get("version", "")
    for name in ("cpu", "cores", "kernel"):
        if name in result.machine:
            yield name, str(result.machine[name])
    yield "seed", str(result.seed)
    if limit is not None:
        yield "max-cost", _percent(limit)


def _case(name: str, cell: Cell, gate: Gate | None, limit: float | None) -> ElementTree.Element:
    outcome = _outcome(cell, gate, limit)
    # Readers make a tree of the dots in a class name.
    classname = ".".join((SUITE, cell.engine, cell.mechanism))
    attributes = {"classname": _text(classname), "name": _text(name), "time": f"{_seconds(cell):.3f}"}
    case = ElementTree.Element("testcase", attributes)
    if outcome is not None:
        details = {"type": outcome.type, "message": _text(outcome.message)}
        ElementTree.SubElement(case, outcome.tag, details).text = _text(outcome.message)
    reason = f"{gate.reason}\n\n" if gate is not None and gate.doubt else ""
    ElementTree.SubElement(case, "system-out").text = _text(reason + terminal.block(cell))
    return case


def _outcome(cell: Cell, gate: Gate | None, limit: float | None) -> Outcome | None:
    """None: passed."""
    if cell.imported is not None:
        return Outcome("skipped", "imported", "imported figures: neither arm was proven")
    if cell.status == "unproven":
        return Outcome("failure", "unproven", cell.reason or "a proof failed")
    if cell.status == "failed":
        return Outcome("error", "failed", cell.reason or "the cell failed")
    if cell.status != "ok" or not figure_text.main_metric(cell):
        return Outcome("skipped", cell.status, cell.reason or "this cell has no number")
    if gate is None or limit is None:
        # A control beside other cells is never held against the budget.
        undecided = (cell.verdict == "unresolved" or failures.differ(cell.failures)) and limit is None
        return Outcome("skipped", "unresolved", verdict(cell)) if undecided else None
    if gate.outcome == "pass" or gate.estimate is None:
        return None
    what = notation.of_what(figure_text.cost(gate.metric, gate.estimate), figure_text.LABELS[gate.metric])
    statement = f"{what} (95 % CI {figure_text.bounds(gate.metric, gate.estimate)})"
    statement += f"; {gate.reason}" if gate.reason else ""
    if gate.outcome == "fail":
        return Outcome("failure", "over-budget", f"above the budget of {_percent(limit)}: {statement}")
    why = (
        "this can't be judged"
        if gate.doubt in ("no-cost", "uneven", "failures")
        else f"the interval includes the budget of {_percent(limit)}"
    )
    return Outcome("skipped", "unresolved", f"{why}: {statement}")


def _seconds(cell: Cell) -> float:
    """Seconds of counted load in both arms."""
    return sum(float(arm.get("seconds", 0.0)) for arm in cell.arms.values())


def _percent(share: float) -> str:
    return f"{share * 100:.10g} %"


def _text(text: str) -> str:
    """The text without characters that XML forbids. ElementTree escapes the rest."""
    return figure_text.printable(text)
