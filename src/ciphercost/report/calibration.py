"""This machine's noise floor, as text, from a run that compares two plain arms. Pure.

Two equal arms differ by noise alone, so the half-width of the interval around their ratio is the smallest difference that a run of
this length can distinguish from noise. It falls with the square root of the length.
"""

from __future__ import annotations

import math

from ciphercost.estimate import student_t
from ciphercost.estimate.statistics import ALPHA
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.plan.schedule import LEAST_SESSIONS
from ciphercost.report import disturbed
from ciphercost.report.formats import terminal
from ciphercost.report.layout import wrap
from ciphercost.report.words import figure_text, verdict_text

WANTED = math.log(1.01)
MOST_SESSIONS = 10_000


def text(result: Result) -> str:
    """The noise floor of every metric; the usual terminal report if a cell has no figures."""
    if not all(cell.overhead for cell in result.cells):
        return terminal.render(result)
    warning = disturbed.warning(result.cells)
    lines = wrap(f"! {warning}", "", "  ") if warning else []
    for sentence in verdict_text.failed(result.cells):
        lines += wrap(f"! {sentence}", "", "  ")
    lines += [line for cell in result.cells for line in of_cell(cell, result)]
    return figure_text.printable("\n".join([*lines, ""]))


def of_cell(cell: Cell, result: Result) -> list[str]:
    rows = list(figure_text.rows(cell))
    width = max(len(row.label) for row in rows)
    seconds = result.spec.time if result.spec is not None else 0.0
    sessions = f"{cell.sessions} session{'s' * (cell.sessions != 1)}"
    lines = [f"{' '.join(filter(None, (cell.engine, cell.version)))} · plain against plain · {cell.workload}"]
    lines += wrap(
        f"noise floor: smaller differences than these can't be distinguished from noise (95 %) on this machine by a run of this "
        f"length ({sessions}, {cell.blocks} blocks, {seconds:g} s of load)",
        "  ",
        "  ",
    )
    lines += [
        f"  {row.label:<{width}}  {share(floor(row.estimate)):>8}   {longer(row.estimate, cell, seconds)}"
        for row in rows
    ]
    for row in rows:
        if row.estimate.p_value is not None and row.estimate.p_value < ALPHA:
            lines += wrap(
                f"! {row.label}: the two equal arms differ ({row.cost}, {row.interval}), which one metric in 20 does by chance; "
                "calibrate again, and if it happens again, check what else runs on this machine",
                "  ",
                "    ",
            )
    if cell.mode == "quick":
        lines += wrap(
            "one session does not include the scatter between restarts; run without --quick for a floor that does",
            "  ",
            "    ",
        )
    for warning in cell.warnings:
        lines += wrap(f"! {warning.text}", "  ", "    ")
    return lines


def floor(estimate: Estimate) -> float:
    """Half-width of the interval, as a log ratio."""
    return math.log(estimate.high / estimate.low) / 2


def share(log_ratio: float) -> str:
    """A log ratio as `1.2 %` or `×2.2`."""
    value = 100 * math.expm1(log_ratio)
    return "under 0.01 %" if value < 0.01 else f"{value:.2g} %" if value < 99.5 else f"{math.exp(log_ratio):.2g} times"


def longer(estimate: Estimate, cell: Cell, seconds: float) -> str:
    """How long a run must be for a floor of 1 %, as text."""
    half = floor(estimate)
    if half <= WANTED:
        return "can detect 1 %"
    if cell.mode == "quick":
        return f"1 % needs about --time {rounded(seconds * (half / WANTED) ** 2)}"
    n = max(2, cell.sessions)
    spread = half * math.sqrt(n) / student_t.quantile(0.975, n - 1)
    needed = next(
        (
            sessions
            for sessions in range(LEAST_SESSIONS, MOST_SESSIONS)
            if student_t.quantile(0.975, sessions - 1) * spread / math.sqrt(sessions) <= WANTED
        ),
        None,
    )
    if needed is None:
        return "can't detect 1 % here"
    return f"1 % needs about --sessions {needed} --time {rounded(seconds / n * needed)}"


def rounded(seconds: float) -> str:
    """`95s`, `12m`, `3h`, rounded up."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= 5 * size:
            return f"{math.ceil(seconds / size)}{unit}"
    return f"{math.ceil(seconds)}s"
