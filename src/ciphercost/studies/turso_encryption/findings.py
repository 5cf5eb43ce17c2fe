"""What the published runs could not show, computed from their own figures and from the repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import bounds, change

if TYPE_CHECKING:
    from ciphercost.studies import Study

RATE = "transactions/s"
USUAL = "aegis256"
"""The cipher of the published runs."""
OTHERS = {"sqlite": "SQLCipher"}


def name_of(cell: Cell) -> str:
    """`mixed`; `mixed, aes256gcm`; `mixed, SQLCipher`."""
    operation = cell.workload.rpartition("/")[2]
    other = OTHERS.get(cell.engine) or cell.factors.get("cipher", USUAL)
    return operation if other == USUAL else f"{operation}, {other}"


def findings(study: Study, record: StudyRecord, ours: Mapping[str, Cell]) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        one_run(study, record),
        *map(study.finding, ("reads", "per-cent", "growth")),
        beside(study, ours),
        *map(study.finding, ("unproven", "pages", "untold")),
    ]
    return [finding for finding in all_findings if finding]


def one_run(study: Study, record: StudyRecord) -> str:
    text = study.finding("one-run")
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one kind and arm, compared with its slowest: {change(widest, RATE)}."
    return text


def beside(study: Study, ours: Mapping[str, Cell]) -> str:
    """What other ciphers, and another database, lose here."""
    clauses = [
        f"{name} {bounds(rate.low, rate.high, RATE)}"
        for name, cell in ours.items()
        if "," in name and (rate := cell.overhead.get("throughput"))
    ]
    return f"{study.finding('beside')} Here (95 %): {'; '.join(clauses)}." if clauses else ""
