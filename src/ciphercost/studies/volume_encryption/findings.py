"""What the page could not show, computed from its statements and from their repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRun
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.volume_encryption import procedure

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str, str], StudyRun]
Ours = Mapping[tuple[str, str], Cell]
"""Our cells, by mechanism and workload."""


def findings(study: Study, here: Here, ours: Ours) -> list[str]:
    """Findings of a few sentences each. The last says what would tell more."""
    return [
        per_cent(study, here),
        study.finding("one-cause"),
        saturation(study, ours),
        *map(study.finding, ("replica", "not-here", "would-tell")),
    ]


def per_cent(study: Study, here: Here) -> str:
    """The finding, and how far runs of the same arm were apart here."""
    text = study.finding("per-cent")
    series = [run.series[procedure.TPS] for run in here.values() if len(run.series.get(procedure.TPS, [])) > 1]
    if series:
        widest = max(max(rates) / min(rates) for rates in series)
        text += f" Here the faster run of one workload and arm, compared with its slower: {change(widest, 'TPS')}."
    return text


def saturation(study: Study, ours: Ours) -> str:
    """The finding, and what encryption adds to a transaction's CPU time on the server here."""
    text = study.finding("saturation")
    clauses = []
    for (mechanism, workload), cell in ours.items():
        cpu = cell.overhead.get("server_cpu_per_op")
        if cpu and workload != "bulk-load":
            clauses.append(f"{mechanism}, {workload.rpartition('/')[2]} {bounds(cpu.low, cpu.high)}")
    if clauses:
        text += f" CPU time of a transaction here, the server's (95 %): {'; '.join(clauses)}."
    return text
