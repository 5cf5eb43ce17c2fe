"""What the post could not show, computed from its figures, from the starts here and from our connections. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import stdev
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRecord
from ciphercost.studies.direct_tls import procedure, resolution

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[str, Cell]
"""Our cells, by the delay of their link."""


def findings(study: Study, record: StudyRecord, ours: Ours) -> list[str]:
    """Findings of a few sentences each, with computed figures. The last says what would tell more."""
    fixed = map(study.finding, ("words", "in-order"))
    return [*fixed, round_trip(study, record, ours), *map(study.finding, ("start", "would-tell"))]


def round_trip(study: Study, record: StudyRecord, ours: Ours) -> str:
    """The finding, and how many starts of psql here, and how many seconds of our method, show each round trip."""
    text = study.finding("round-trip")
    clauses = []
    sd = pooled_sd(record)
    for delay, cell in ours.items():
        saved = saved_ms(cell)
        if saved is None or saved[0] <= 0:
            continue
        words = f"{delay}: {saved[0]:.3g} ms saved by each connection"
        if sd:
            words += f", which {resolution.needed(sd, saved[0]):,} starts of each kind would show"
        clauses.append(words)
    if clauses:
        scatter = f", by starts that scatter by {sd:.2g} ms" if sd else ""
        text += f" Here{scatter}: {'; '.join(clauses)}."
    return text


def pooled_sd(record: StudyRecord) -> float | None:
    """Standard deviation of a start here, ms, over both kinds; None unless each started twice."""
    runs = [run.series[procedure.REAL] for run in record.runs]
    if not runs or any(len(series) < 2 for series in runs):
        return None
    return float((sum(stdev(series) ** 2 for series in runs) / len(runs)) ** 0.5)


def saved_ms(cell: Cell) -> tuple[float, float, float] | None:
    """Milliseconds that a connection takes less from the first byte, with its 95 % interval; None if it was not measured."""
    rate = cell.overhead.get("throughput")
    level = cell.arms.get("plain", {}).get("throughput")
    if not rate or not level:
        return None
    before = cell.clients * 1e3 / level
    saved = [before * (1 - 1 / ratio) for ratio in (rate.ratio, rate.low, rate.high)]
    return saved[0], saved[1], saved[2]
