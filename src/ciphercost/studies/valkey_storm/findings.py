"""What the published figures could not show, computed from them and from the storms here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.estimate import Estimate
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.studies.costs import bounds

if TYPE_CHECKING:
    from ciphercost.studies import Study

DURING = "throughput_during"
WORDS = {"plain": "without TLS", "encrypted": "with TLS"}


def findings(study: Study, ours: Mapping[str, Cell]) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        study.finding("no-plain-storm") + plain_here(ours),
        study.finding("one-figure"),
        study.finding("a-connection") + time_here(ours),
        *map(study.finding, ("unstated", "what-would")),
    ]
    return [finding for finding in all_findings if finding]


def plain_here(ours: Mapping[str, Cell]) -> str:
    """What new connections without TLS take here."""
    clauses = [
        f"{bounds(change.low, change.high, 'operations/s')} (beside {name})"
        for name, cell in ours.items()
        if cell.storm and (change := cell.storm.arms["plain"].change.get(DURING))
    ]
    return f" Here new connections without TLS take (95 %): {'; '.join(clauses)}." if clauses else ""


def time_here(ours: Mapping[str, Cell]) -> str:
    """The share of the time that is lost here, for each new connection."""
    clauses = []
    for name, cell in ours.items():
        if not cell.storm:
            continue
        rate = cell.storm.wanted / cell.storm.seconds
        times = [
            f"{WORDS[arm]} {milliseconds(change, rate)}"
            for arm in ARMS
            if (change := cell.storm.arms[arm].change.get(DURING))
        ]
        clauses.append(f"{name}: {', '.join(times)}")
    if not clauses:
        return ""
    return f" Here the lost operations/s are, for each new connection (95 %): {'; '.join(clauses)}."


def milliseconds(change: Estimate, rate: float) -> str:
    """`1.2 to 1.5 ms` of each second, for one of `rate` new connections per second."""
    low, high = (1e3 * (1 - bound) / rate for bound in (change.high, change.low))
    if low <= 0:
        return f"at most {max(0.0, high):.2g} ms"
    return f"{low:.2g} to {high:.2g} ms"
