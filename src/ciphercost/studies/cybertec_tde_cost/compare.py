"""Build the figures of every pair, and what the published design can resolve, from the publication, the record and our cells. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import figures, in_turn, pairs, ran_on, resolution, tde_pairs
from ciphercost.studies.cybertec_tde_cost import findings, pairs_of_arms, procedure, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

TPS, HITS = "TPS", "%buffer hits"
CAN_SHOW, INTERVAL, NEEDED = "can show", "our method's interval", "runs needed"
OF_THE_DESIGN = (CAN_SHOW, INTERVAL, NEEDED)
"""Figures of what a design resolves, not of what encryption costs."""
DESIGN = "design"
"""Their arm."""
Here = dict[tuple[str, str], StudyRun]
"""By pair and arm."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every pair of arms; none of a pair that was not proven."""
    names = [tde_pairs.name_of(*pair) for pair in zip(record.servers, record.mechanisms, strict=True)]
    unproven = pairs.unproven_pairs(record, names)
    runs = {(tde_pairs.name_of(run.server, run.mechanism), run.arm): run for run in record.runs}
    here = {key: run for key, run in runs.items() if key[0] not in unproven}
    ours = {tde_pairs.name_of(cell.variant, cell.mechanism): cell for cell in cells}
    all_figures = [figure for name in names for figure in of_pair(study, name, here, ours.get(name))]
    all_figures += of_publication(study, names)
    all_figures += [figure for name in names for figure in of_design(name, here, ours.get(name))]
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, here, unproven),
        all_figures,
        findings.findings(study, here, ours, names),
        complete=record.complete and not unproven,
    )


def of_pair(study: Study, name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """One pair beside the published cell of its key length, both without checksums."""
    operation = f"simple update, {name}"
    bits = pairs_of_arms.bits_of(name)
    printed: figures.Known = {"plain": published.tps(study, 0), "encrypted": published.tps(study, bits)}
    mine: figures.Known = {arm: fmean(here[name, arm].series[procedure.TPS]) for arm in ARMS if (name, arm) in here}
    pair_figures = figures.rate(operation, TPS, cell, mine, printed, published.POST)
    published_hits = published.claims(study)["buffer_hits_percent"]
    pair_figures += [
        StudyFigure(
            operation,
            HITS,
            "%",
            arm,
            published_hits if arm == "plain" else None,
            fmean(here[name, arm].series[procedure.HITS]) if (name, arm) in here else None,
            source=published.POST if arm == "plain" else "",
        )
        for arm in ARMS
    ]
    return [*pair_figures, *figures.server_cpu(operation, cell)]


def of_publication(study: Study, names: Sequence[str]) -> list[StudyFigure]:
    """The published cells that no pair here stands beside."""
    shown = {pairs_of_arms.bits_of(name) for name in names}
    published_figures = []
    for row in published.rows(study):
        if row.bits and (row.checksums or row.bits not in shown):
            words = f"published alone: {row.bits} bits, {'with' if row.checksums else 'without'} checksums in both arms"
            printed: figures.Known = {
                "plain": published.tps(study, 0, checksums=row.checksums),
                "encrypted": row.tps,
            }
            published_figures += figures.rate(words, TPS, None, {}, printed, published.POST)
    return published_figures


def of_design(name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """What this machine's scatter lets the published design show, and our method's interval in the same run, per cent."""
    groups = logs(here, name)
    design_figures = []
    of = resolution.spread(groups)
    if of is not None:
        runs = min(len(group) for group in groups)
        can_show = resolution.resolution(of, runs)
        design_figures.append(
            StudyFigure(
                name,
                CAN_SHOW,
                "%",
                DESIGN,
                ours=percent(can_show.value),
                low=percent(can_show.low),
                high=percent(can_show.high),
                n=runs,
            )
        )
        needed = [float(resolution.runs_needed(sd)) for sd in (of.sd, of.low, of.high)]
        design_figures.append(StudyFigure(name, NEEDED, "count", DESIGN, ours=needed[0], low=needed[1], high=needed[2]))
    rate = cell.overhead.get("throughput") if cell else None
    if rate and rate.low > 0:
        half = math.log(rate.high / rate.low) / 2
        design_figures.append(StudyFigure(name, INTERVAL, "%", DESIGN, ours=percent(half), n=rate.n))
    return design_figures


def logs(here: Here, name: str) -> list[list[float]]:
    """Natural logarithms of an arm's rates, for both arms of a pair."""
    return [[math.log(rate) for rate in here[name, arm].series[procedure.TPS]] for arm in ARMS if (name, arm) in here]


def percent(difference: float) -> float:
    """A difference of logarithms as a percentage."""
    return 100 * math.expm1(difference)


def procedure_text(record: StudyRecord, here: Here, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(here))
    below = tde_pairs.stand_ins(record.mechanisms)
    clauses = []
    if below:
        clauses.append(
            f"PGEE can't be fetched and no server with TDE was named (--bindir), so {tde_pairs.standing_in(below)}: both arms have the same "
            "server, and in one the file system below it encrypts, with 256-bit keys"
        )
    if here:
        settings = record.settings
        clauses.append(
            f"pgbench {record.tools.get('pgbench', '')} -i -s {settings['scale']:.0f}, then {in_turn.often(settings['runs'])} -N -c "
            f"{settings['clients']:.0f} -P 1 -T {settings['duration_s']:.0f} with shared_buffers = {published.BUFFERS}, all on the plain arm and then all "
            "on the encrypted one; unlike in the published runs, both arms are proven. Checksums are as the server's initdb sets them, in both arms"
        )
    return "; ".join(filter(None, [*clauses, ended]))
