"""The front page's answers: for a server and a mechanism, what encryption adds to an operation, whatever the operation costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ciphercost.book.rows import Machine, Row
from ciphercost.estimate.notation import NO_CHANGE, interval, worded
from ciphercost.model import sizes
from ciphercost.model.result import Estimate
from ciphercost.report.words import added_sentences, added_text, operation_text
from ciphercost.report.words.added_text import AddedCost

SIZES: dict[int, str] = {
    10: "10 µs",
    30: "30 µs",
    100: "100 µs",
    300: "300 µs",
    1_000: "1 ms",
    2_000: "2 ms",
    5_000: "5 ms",
    10_000: "10 ms",
}
"""CPU times of an operation without encryption, µs, that a reader can choose."""
USUAL = round(added_sentences.USUAL)
LISTED = (10, 100, 1_000, 10_000)
"""Those that have a column."""
LEAST = 1e-4
"""A smaller change than this is not written in digits."""
MOST_OTHERS = 6
"""Further cells below an answer; the table of all cells has the rest."""
DEPENDS = {
    "rest": "depends on the pages that a query reads and writes, so it can't be carried over to another query",
    "column": "depends on the values that a query encrypts and decrypts, so it can't be carried over to another query",
}


class AtSize(NamedTuple):
    """What encryption does to an operation of one size."""

    levels: str
    """`1 → 1.0037 ms`."""
    change: str
    """`0.37 % more`."""
    interval: str
    """`0.35–0.39 %`."""
    verdict: str
    """`Not worth worrying about`."""


class Answer(NamedTuple):
    """One server with one mechanism."""

    engine: str
    mechanism: str
    layer: str
    lead: Row
    """The cell whose addition is carried over: usual settings, and the operation that does least beside."""
    sizes: dict[int, AtSize]
    """By CPU time of an operation; empty if what is added depends on the operation."""
    connection: Row | None
    """The cell whose operations open a connection each."""
    others: list[Row]
    """Further cells with usual settings: what a larger answer or a longer operation adds."""
    elsewhere: list[Row]
    """The lead's cell on other CPU models."""

    @property
    def added(self) -> str:
        """`+3.68 µs`."""
        return self.lead.figures["cpu"].cost

    @property
    def whose(self) -> str:
        assert self.lead.added is not None
        return self.lead.added.whose

    @property
    def word(self) -> str:
        """What an operation is called: `query`."""
        assert self.lead.added is not None
        return self.lead.added.to

    @property
    def matters(self) -> str:
        """Where it is worth worrying about; empty if what is added depends on the operation."""
        if not self.sizes or self.lead.added is None:
            return ""
        opened = self.connection.figures["cpu"] if self.connection else None
        also = f" or open a connection each ({opened.cost}, {opened.interval})" if opened else ""
        return added_sentences.matters(added_text.part(self.lead.added.added), operation_text.many(self.word), (), also)

    @property
    def depends(self) -> str:
        return DEPENDS.get(self.layer, "")

    @property
    def further(self) -> tuple[str, list[str]]:
        """What to do next, and the commands for it: costs that carry over are measured on the reader's CPU, others with their own queries."""
        target = f"{self.engine}:{self.mechanism}"
        if self.layer == "rest":
            return "measure your own queries", [f"ciphercost run {target} --sql FILE"]
        if self.layer == "column" and self.whose == "client CPU":
            return "measure on your CPU", [f"ciphercost run {target} --workload {self.lead.workload}"]
        of_columns = " --opened 100/s" if self.layer == "column" else ""
        return "measure on your CPU, then predict your server", [
            f"ciphercost run {target} --split",
            f"ciphercost predict latest --rate 2000/s --cpu 2ms{of_columns}",
        ]

    @property
    def traffic(self) -> str:
        """`160 B`: what an operation of the lead sends and receives without encryption; empty: unknown."""
        return sizes.size(self.lead.wire_bytes) if self.layer == "transit" and self.lead.wire_bytes else ""


def of(rows: Sequence[Row]) -> list[Answer]:
    """An answer for each server and mechanism whose addition is known. `rows`: in the order in which people ask."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.added is not None and row.layer != "control":
            groups.setdefault((row.engine, row.mechanism), []).append(row)
    return [_answer(group) for group in groups.values()]


def _answer(rows: Sequence[Row]) -> Answer:
    """`rows` has at least one; rows with usual settings and short operations come first."""
    lead = min(rows, key=_suitable)
    connection = next((row for row in rows if row.connects and row is not lead), None)
    others = [row for row in rows if row not in (lead, connection) and row.alike != lead.alike]
    alike = {row.machine.cpu: row for row in rows if row.alike == lead.alike and row.machine.cpu != lead.machine.cpu}
    carried = lead.layer == "transit" and not lead.connects
    return Answer(
        lead.engine,
        lead.mechanism,
        lead.layer,
        lead,
        {us: at_size(lead.added, us) for us in SIZES} if carried and lead.added else {},
        connection,
        sorted(others, key=lambda row: (row.machine != lead.machine, bool(row.choices)))[:MOST_OTHERS],
        list(alike.values()),
    )


def _suitable(row: Row) -> tuple[object, ...]:
    """Orders the cells by how well they stand for an operation: what is added in transit grows with what an operation sends."""
    sent = row.wire_bytes or 0.0 if row.layer == "transit" else 0.0
    return row.disturbed, row.connects, bool(row.choices), "/" in row.workload, sent


def at_size(cost: AddedCost, us: float) -> AtSize:
    """What the same addition means for an operation that takes `us` without encryption."""
    verdict = added_sentences.verdict(added_text.part(cost.added), us)
    mean, low, high = (value / us for value in (cost.added.mean, cost.added.low, cost.added.high))
    if not added_text.seen(cost):
        most = max(high, 0.0)
        text = f"{added_text.share(added_text.part(cost.added), us)} more" if most >= LEAST else "under 0.01 % more"
        return AtSize("", text, "can't be told from 0", verdict)
    levels = _levels(us, cost.added.mean)
    if 0 <= mean < LEAST:
        return AtSize(levels, "under 0.01 % more", "", verdict)
    estimate = Estimate(1 + mean, max(1 + low, 0.0), 1 + high)
    change, ends = worded(estimate), interval(estimate)
    return AtSize(levels, change, "" if change == NO_CHANGE else ends, verdict)


def _levels(plain: float, added: float) -> str:
    """`100 → 103.7 µs`: as many decimals as two digits of what is added need."""
    scale, unit = (1e-3, "ms") if plain >= 1_000 else (1.0, "µs")
    decimals = max(0, 1 - math.floor(math.log10(abs(added * scale)))) if added else 0
    return f"{plain * scale:,.0f} → {(plain + added) * scale:,.{decimals}f} {unit}"


def cpu_models(rows: Iterable[Row], names: Mapping[Machine, str]) -> str:
    """Why no answer shows two CPU models side by side, in one line; empty: some do."""
    by_cell: dict[str, set[str]] = {}
    for row in rows:
        if row.added is not None:
            by_cell.setdefault(row.alike, set()).add(row.machine.cpu)
    if any(len(models) > 1 for models in by_cell.values()):
        return ""
    if len({machine.cpu for machine in names}) == 1:
        return f"All runs come from one CPU model, {next(iter(names)).cpu}; another may add more or less."
    return "Each result comes from one CPU model; on yours it may be several times higher or lower: measure it there."
