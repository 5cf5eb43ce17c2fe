"""CSV: a row per pair and metric at full precision, and one per cell without a partner. For a single run, a row per cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ciphercost.model.result import Estimate
from ciphercost.report.comparison_types import AddedChange, Comparison, Gate
from ciphercost.report.formats.csv import table
from ciphercost.report.words import added_text
from ciphercost.report.words.comparison_text import listed

COLUMNS = (
    "run",  # number of the run, from 1: 0 is the reference
    "id",  # its id
    "reference_cell",  # number of the reference's cell, from 0
    "cell",  # number of the run's cell, from 0
    "title",  # what both cells have in common
    "compared",  # requested factors that differ
    "also_differs",
    "metric",  # a key of `overhead`
    "change", "change_low", "change_high",  # the run's ratio / the reference's, with its 95 % interval
    "p_value",  # of the verdict's metric after Holm's correction
    "verdict",  # differs, equivalent, unresolved or no-partner; only in the row of the verdict's metric
    "reference_ratio", "reference_low", "reference_high",  # encrypted / plain there
    "ratio", "low", "high",  # encrypted / plain in this run
    "limit",  # of --fail-over, a share
    "gate",  # pass, fail, unresolved or failed
    "reason",
    # CPU time that encryption adds to an operation, µs, in the row of that CPU time's ratio: here, in the reference, and their difference
    "added_us", "added_low_us", "added_high_us",
    "reference_added_us", "reference_added_low_us", "reference_added_high_us",
    "added_change_us", "added_change_low_us", "added_change_high_us",
)  # fmt: skip


def render(of: Comparison) -> str:
    return table(COLUMNS, _rows(of))


def _rows(of: Comparison) -> Iterator[dict[str, Any]]:
    gates = {(gate.run, gate.cell): gate for gate in of.gates}
    for pair in of.pairs:
        known: dict[str, Any] = {
            "run": pair.run,
            "id": of.runs[pair.run].id,
            "reference_cell": pair.cells[0],
            "cell": pair.cells[1],
            "title": pair.title,
            "compared": listed(pair.factors),
            "also_differs": listed(pair.also),
        }
        gate = gates.pop((pair.run, pair.cells[1]), None)
        beside = gate is not None and gate.metric in ("", pair.metric) and bool(pair.metric)
        judged = {"limit": of.limit, "gate": gate.outcome} if gate and beside else {}
        if not pair.metric:
            yield known | _gated(gate, of, pair.reason)
        elif gate and not beside:
            yield known | _gated(gate, of)
        for metric, change in pair.change.items():
            there, here = pair.costs[metric]
            yield (
                known
                | _figures("change", change, "change_")
                | _figures("reference_ratio", there, "reference_")
                | _figures("ratio", here, "")
                | {"metric": metric, "p_value": change.p_value}
                | (judged | {"verdict": pair.verdict} if metric == pair.metric else {})
                | (_added(pair.added) if pair.added is not None and metric == pair.added.other.key else {})
            )
    for alone in of.alone:
        side = "reference_cell" if alone.run == 0 else "cell"
        nearest = f"nearest: {alone.nearest}: {listed(alone.differs)}" if alone.nearest else ""
        yield {
            "run": alone.run,
            "id": of.runs[alone.run].id,
            side: alone.cell,
            "title": alone.title,
            "verdict": "no-partner",
        } | _gated(gates.pop((alone.run, alone.cell), None), of, nearest)
    for gate in gates.values():
        yield {"run": gate.run, "id": of.runs[gate.run].id, "cell": gate.cell, "title": gate.title} | _gated(gate, of)


def _gated(gate: Gate | None, of: Comparison, reason: str = "") -> dict[str, Any]:
    """The gate's columns for a row without other figures. Another reason comes before the gate's."""
    if gate is None:
        return {"reason": reason}
    known = {
        "metric": gate.metric,
        "limit": of.limit,
        "gate": gate.outcome,
        # For a pair without a number, the reason is that of the cell.
        "reason": reason if gate.reason in reason else "; ".join(filter(None, (gate.reason, reason))),
    }
    return known | (_figures("ratio", gate.estimate, "") if gate.estimate else {})


def _figures(name: str, estimate: Estimate, prefix: str) -> dict[str, float]:
    return {name: estimate.ratio, f"{prefix}low": estimate.low, f"{prefix}high": estimate.high}


def _added(of: AddedChange) -> dict[str, float]:
    told = (
        ("added", added_text.part(of.other.added)),
        ("reference_added", added_text.part(of.reference.added)),
        ("added_change", of.difference),
    )
    return {
        f"{name}{end}_us": value
        for name, part in told
        for end, value in (("", part.value), ("_low", part.low), ("_high", part.high))
    }
