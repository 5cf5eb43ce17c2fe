"""What the published figures can and can't show, computed from them and from the intervals here. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyFigure
from ciphercost.studies.costs import bounds
from ciphercost.studies.pg_tde_small_cost import precision, published

if TYPE_CHECKING:
    from ciphercost.studies import Study


CPU = {"server_cpu_per_op": "", "machine_cpu_per_op": " with kernel threads"}


def findings(study: Study, ours: Mapping[tuple[str, str], Cell], figures: Sequence[StudyFigure]) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        study.finding("answer"),
        answer_here(figures),
        *map(study.finding, ("more-or-fewer", "worst-case", "copy-speed")),
        cpu(study, ours),
        study.finding("unproven"),
    ]
    return [finding for finding in all_findings if finding]


def answer_here(figures: Sequence[StudyFigure]) -> str:
    """How narrow the intervals of small transactions are here, and the time until they are ±1 %."""
    small = f"{published.WORDS[published.OLTP]}, "
    by = {
        (figure.operation.removeprefix(small), figure.figure): figure
        for figure in figures
        if figure.arm == precision.DESIGN and figure.operation.startswith(small)
    }
    clauses = []
    for (pair, figure), half in by.items():
        if figure != precision.HALF or half.ours is None:
            continue
        needed = by.get((pair, precision.MINUTES))
        enough = half.ours <= 100 * published.SEARCHED
        later = (
            "so this run can tell 1 % from none"
            if enough
            else f"±1 % would take {precision.shown(needed)} of load"
            if needed
            else "how long ±1 % would take needs two sessions or more"
        )
        clauses.append(f"{pair} is known to ±{precision.digits(half.ours)} %; {later}")
    return f"On this machine, the cost of small transactions with {'; with '.join(clauses)}." if clauses else ""


def cpu(study: Study, ours: Mapping[tuple[str, str], Cell]) -> str:
    """What encryption adds to the CPU time of a small transaction: the server's, with kernel threads where a file system encrypts."""
    clauses = [
        f"{pair} {bounds(cost.low, cost.high)}{words}"
        for (pair, operation), cell in ours.items()
        if operation == published.OLTP
        for key, words in CPU.items()
        if (cost := cell.overhead.get(key))
    ]
    text = study.finding("cpu")
    return f"{text} The server's of a small transaction (95 %): {', '.join(clauses)}." if clauses else text
