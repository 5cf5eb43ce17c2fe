"""What the abstract leaves open, and what this repetition can't have either. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.studies.pq_tls import ways

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[tuple[str, str], Cell]


def findings(study: Study, ours: Ours) -> list[str]:
    """Findings of a few sentences each."""
    rest = ("together", "first-byte", "congestion", "unproven", "one-machine")
    return [finding for finding in (study.finding("limits"), size(ours), *map(study.finding, rest)) if finding]


def size(ours: Ours) -> str:
    """How many more bytes the post-quantum handshake has here, and how long they take over the slow link."""
    extras = []
    for (group, way), cell in ours.items():
        reference = ours.get((group, ways.REFERENCE))
        if way != ways.BOTH or reference is None or "1KB" not in group or not (cell.overhead and reference.overhead):
            continue
        extra = cell.arms["encrypted"]["wire_bytes_per_op"] - reference.arms["encrypted"]["wire_bytes_per_op"]
        extras.append(extra)
    if not extras:
        return ""
    return (
        f"ML-KEM and ML-DSA add {extras[-1] / 1e3:.1f} KB to a connection here, whatever the file: a percentage of the time to the last byte falls with "
        "the file's size and rises with a link's slowness, and says more about both than about the algorithms."
    )
