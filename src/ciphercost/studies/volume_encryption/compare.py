"""Build the figures of every workload and way to encrypt, and what was saturated, from the page, record and cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.estimate import bottleneck, disturbance
from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import figures, in_turn, pairs, ran_on, tde_pairs
from ciphercost.studies.saturation import in_short
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.volume_encryption import findings, procedure, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

WORKLOADS: Mapping[str, str] = MappingProxyType(
    {
        published.READ: "postgres-tde/select",
        published.OLTP: "postgres-tde/tpcb",
        published.LOAD: "bulk-load",
    }
)
"""Our method's, by the page's words."""
FIGURES = {
    published.READ: "reads/s",
    published.OLTP: "transactions/s",
    published.LOAD: "time of a load",
}
COMPARED = {
    FIGURES[published.READ]: "pgbench's reads a second",
    FIGURES[published.OLTP]: "pgbench's transactions a second",
    FIGURES[published.LOAD]: "latency of a load of 29 GB as published, time of 1,000 rows here",
}
Here = dict[tuple[str, str, str], StudyRun]
"""By mechanism, workload and arm."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every workload; none of a way to encrypt that was not proven."""
    unproven = pairs.unproven_pairs(record, record.mechanisms)
    here = {(run.mechanism, run.operation, run.arm): run for run in record.runs if run.mechanism not in unproven}
    ours = {(cell.mechanism, cell.workload): cell for cell in cells}
    all_figures = []
    for workload in WORKLOADS:
        for mechanism in record.mechanisms:
            all_figures += of_workload(study, mechanism, workload, here, ours.get((mechanism, WORKLOADS[workload])))
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, here, unproven),
        all_figures,
        findings.findings(study, here, ours),
        complete=record.complete and not unproven,
    )


def of_workload(study: Study, mechanism: str, workload: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """One workload on one way to encrypt, beside what the page says of a server without a replica."""
    name, figure = f"{workload}, {mechanism}", FIGURES[workload]
    mine = {
        arm: fmean(here[mechanism, workload, arm].series[series_of(workload)])
        for arm in ARMS
        if (mechanism, workload, arm) in here
    }
    if workload == published.LOAD:
        known = figures.inverse(cell.overhead.get("throughput")) if cell else None
        levels = [time_of(name, figure, arm, mine.get(arm), cell) for arm in ARMS]
        repeated = in_turn.ratio(mine.get("encrypted"), mine.get("plain"))
        cost = figures.cost(name, figure, known, None, repeated)
    else:
        *levels, cost = figures.rate(name, figure, cell, mine)
    cost = msgspec.structs.replace(cost, published=published.ratio(study, workload), source=published.PAGE)
    return [*levels, cost, *figures.server_cpu(name, cell)]


def series_of(workload: str) -> str:
    return procedure.SECONDS if workload == published.LOAD else procedure.TPS


def time_of(name: str, figure: str, arm: str, mine: float | None, cell: Cell | None) -> StudyFigure:
    """Milliseconds: of the whole load here, of 1,000 rows by our method."""
    known = cell is not None and "throughput" in cell.overhead
    rate = level(cell, arm, "throughput") if cell and known else None  # type: ignore[arg-type]
    here = 1e3 * mine if mine else None
    return StudyFigure(name, figure, "ms", arm, here=here, ours=1e3 * cell.clients / rate if cell and rate else None)


def beside(study: Study) -> Sheet:
    """All statements of the page."""
    rows = []
    for claim in published.claims(study):
        percent = (
            f"up to {claim.most:g} %"
            if claim.least is None
            else f"{claim.least:g} to {claim.most:g} %"
            if claim.least != claim.most
            else f"{claim.most:g} %"
            if claim.most
            else "no impact"
        )
        rows.append((f"{claim.workload}, {claim.setup}", claim.scale, percent))
    return Sheet(
        "As published: performance impact",
        ("", "scale", "impact"),
        rows,
        "Of load: additional latency. HA: with a replica that must have received what is committed, which is not repeated here.",
    )


def saturated(cells: Sequence[Cell]) -> Iterator[Sheet]:
    """What limited each cell, by arm."""
    names = {name: workload for workload, name in WORKLOADS.items()}
    rows = [
        (f"{names[cell.workload]}, {cell.mechanism}", *(in_short(bottleneck.uses(cell, arm)) for arm in ARMS))
        for cell in cells
        if cell.status == "ok" and cell.workload in names and all(bottleneck.uses(cell, arm) for arm in ARMS)
    ]
    if rows:
        note = (
            f'What was saturated ({100 * bottleneck.SATURATED:.0f} % busy or more); after "-:" nothing was, and how busy each was. Server and client '
            "stand for their cores. Commits wait for the disk, so a writing workload need not saturate anything."
        )
        if any(disturbance.state(cell) for cell in cells):
            note += f" {bottleneck.OTHERS[0].upper()}{bottleneck.OTHERS[1:]}."
        yield Sheet("What limited each cell of our method, %", ("", "plain", "encrypted"), rows, note)


def procedure_text(record: StudyRecord, here: Here, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(here))
    if not here:
        return ended
    settings = record.settings
    standing = tde_pairs.standing_in(record.mechanisms, "LUKS")
    text = (
        f"pgbench {record.tools.get('pgbench', '')} -i -s {settings['scale']:.0f}, then -S and TPC-B, {in_turn.often(settings[in_turn.RUNS])} "
        f"-c {settings['clients']:.0f} -T {settings[in_turn.SECONDS]:g} each, all on the plain arm and then all on the encrypted one "
        f"(published: scales up to 2000, neither length nor number of runs); {standing}, with 256-bit keys. Unlike in the published "
        "runs, both arms are proven"
    )
    return f"{text}; {ended}" if ended else text
