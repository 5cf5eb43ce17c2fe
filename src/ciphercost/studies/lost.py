"""What a study's run has no number for, and why, for the head of its report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyResult

MOST_NAMED = 4
"""Most cells to name; if there are more, only their number is printed."""


def lost(cells: Sequence[Cell], study: StudyResult | None) -> str:
    """`mariadb aes-cbc-256 hospital: failed: mariadb 10.11.14 has no CBC`; empty if nothing is missing."""
    bad: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status != "ok":
            # Shorten `mysql-tls/insert` to `insert`, and leave out words that the variant repeats.
            words = (cell.engine, cell.mechanism, cell.workload.rpartition("/")[2], *cell.variant.split())
            cell_names = bad.setdefault(f"{cell.status.replace('-', ' ')}: {cell.reason}", [])
            cell_names.append(" ".join(dict.fromkeys(filter(None, words))))
    reasons = [
        f"{', '.join(dict.fromkeys(names)) if len(names) <= MOST_NAMED else f'{len(names)} cells'}: {reason}"
        for reason, names in bad.items()
    ]
    if study is not None and not study.complete:
        reasons.insert(0, "the published procedure did not complete")
    return "; ".join(reasons)
