"""One flat row per figure and cell, at full precision: the source of CSV and data frames. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.estimate import disturbance, levels
from ciphercost.model.pair import place
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS
from ciphercost.report.words import pair_text

COLUMNS: dict[str, tuple[type, str]] = {
    "run": (str, "the run's id"),
    "cell": (int, "its number in the run, from 0, as in slices.jsonl"),
    "engine": (str, ""),
    "version": (str, "of the server"),
    "layer": (str, "transit, rest, column or control"),
    "mechanism": (str, ""),
    "workload": (str, ""),
    "variant": (str, "what sets the cell apart in its experiment"),
    "factors": (str, "NAME=VALUE, separated by '; '"),
    "conditions": (str, "of both arms, NAME=VALUE, separated by '; '"),
    "client": (str, "who made the load; empty: the Rust agent"),
    "clients": (int, "connections"),
    "regime": (str, "capacity, one-core or latency"),
    "mode": (str, "full: the unit is the session; quick: the block, of one server pair"),
    "sessions": (int, ""),
    "blocks": (int, ""),
    "status": (str, "ok, failed, unproven or no-steady-state"),
    "verdict": (str, "differs, equivalent or unresolved, of the cell"),
    "reason": (str, "why there is no figure, where the status is not ok"),
    "metric": (str, "a key of `overhead` in result.json; empty: this cell has no figure"),
    "ratio": (float, "encrypted / plain"),
    "low": (float, "lower bound of the ratio, 95 %"),
    "high": (float, "upper bound of the ratio, 95 %"),
    "ratio_of_totals": (float, "the same of all slices together"),
    "n": (int, "sessions or blocks behind the interval"),
    "p_value": (float, "two-sided, against a ratio of 1; that of the verdict after Holm's correction"),
    "method": (str, "of the interval"),
    "plain": (float, "level of the plain arm, in `unit`: encrypted / plain is `ratio`"),
    "encrypted": (float, "level of the encrypted arm, in `unit`"),
    "unit": (str, "of both levels"),
    "arms": (
        str,
        "what the arms are, if both are encrypted: reference → compared; the ratio is then compared / reference",
    ),
    "reference": (float, "level of the reference arm, where `arms` says which that is"),
    "compared": (float, "level of the arm that is compared with it"),
    "warnings": (
        str,
        "codes of the cell's warnings, separated by '; '; `disturbed`: other processes took the CPU in every slice, `disturbed-mostly`: in half or more",
    ),
}
"""Columns in order: type and meaning. All but the first two may be empty (None)."""


def figures(result: Result) -> list[dict[str, Any]]:
    """A row per cell and metric, keys as in COLUMNS. A cell without a figure has one row with the reason."""
    return [row for number, cell in enumerate(result.cells) for row in _of(result.id, number, cell)]


def _of(run: str, number: int, cell: Cell) -> list[dict[str, Any]]:
    known: dict[str, Any] = dict.fromkeys(COLUMNS) | {
        "run": run,
        "cell": number,
        "factors": listed(cell.factors),
        "conditions": listed(cell.conditions),
    }
    same = "engine version layer mechanism workload variant client clients regime mode sessions blocks status reason"
    known |= {name: getattr(cell, name) for name in same.split()}
    known["verdict"] = cell.verdict
    if cell.pair:
        known["arms"] = pair_text.arrow(cell.pair)
    codes = (
        ["disturbed"] * cell.disturbed
        + ["disturbed-mostly"] * (disturbance.state(cell) == "mostly")
        + [warning.code for warning in cell.warnings]
    )
    known["warnings"] = "; ".join(dict.fromkeys(codes))
    rows = []
    for metric, estimate in cell.overhead.items():
        of_estimate = "ratio low high ratio_of_totals n p_value method"
        row = known | {"metric": metric} | {name: getattr(estimate, name) for name in of_estimate.split()}
        rows.append(row | _levels(cell, metric))
    return rows or [known]


def _levels(cell: Cell, metric: str) -> dict[str, Any]:
    """Both arms' levels and their unit, of a metric that has levels."""
    if metric not in levels.LEVELS:
        return {}
    read, unit = levels.LEVELS[metric]
    return {place(cell.pair, arm): read(cell.arms.get(arm, {})) for arm in ARMS} | {"unit": unit}


def listed(values: Mapping[str, str]) -> str:
    """`version=1.3; cipher=aes256-gcm`, without empty values."""
    return "; ".join(f"{name}={value}" for name, value in values.items() if value)
