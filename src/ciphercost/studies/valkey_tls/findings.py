"""What the published run could not show, computed from its own figures and from its repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import bounds, change

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[tuple[str, int], Cell]
"""Our cells, by operation and clients."""


def findings(study: Study, record: StudyRecord, ours: Ours) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        one_run(study, record),
        *map(study.finding, ("waiting", "unproven", "cpu")),
        busy(ours),
        *map(study.finding, ("missed", "without-a-plain-arm")),
    ]
    return [finding for finding in all_findings if finding]


def one_run(study: Study, record: StudyRecord) -> str:
    text = study.finding("one-run")
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one command and arm, compared with its slowest: {change(widest, 'sets/s')}."
    return text


def busy(ours: Ours) -> str:
    """What a busy server loses here."""
    clauses = []
    for (name, clients), cell in sorted(ours.items(), key=lambda item: (item[0][0], item[0][1])):
        rate = cell.overhead.get("throughput")
        others = [number for other, number in ours if other == name]
        if rate and len(others) > 1:
            clauses.append(f"{name} with {clients} client{'s' * (clients > 1)} {bounds(rate.low, rate.high, 'sets/s')}")
    if len(clauses) < 2:
        return ""
    return f"The same commands here, by the number of clients (95 %): {'; '.join(clauses)}."
