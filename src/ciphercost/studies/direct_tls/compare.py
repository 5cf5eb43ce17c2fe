"""Build the three columns of figures from the post, the procedure's record and our cells. Pure."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

import msgspec

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, without_runs
from ciphercost.studies.direct_tls import findings, procedure, published, resolution
from ciphercost.studies.sheet import Sheet

if TYPE_CHECKING:
    from ciphercost.studies import Study

TIME = "time"
LOOPBACK = "loopback"
SAVED, NEEDED = "saved", "starts needed"
OF_THE_DESIGN = (SAVED, NEEDED)
"""Figures of what a design resolves, not of what was compared."""
DESIGN = "design"
"""Their arm."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of psql's start and of connections over each link; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    kept = record if not unproven else without_runs(record)
    ours = {link_of(cell): cell for cell in cells}
    all_figures = [*of_starts(study, kept, ours.get(LOOPBACK)), *of_design(study, kept, ours)]
    for link, cell in ours.items():
        all_figures += of_connections(f"a connection, {link}", cell)
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, kept, ours),
        complete=record.complete and not unproven,
    )


def link_of(cell: Cell) -> str:
    """`loopback`, or `10ms`."""
    return cell.conditions.get("delay", LOOPBACK)


def of_starts(study: Study, record: StudyRecord, cell: Cell | None) -> list[StudyFigure]:
    """psql's start, with the standard deviation over starts. Beside the cost stands that of our connection over loopback."""
    series = {run.arm: run.series[procedure.REAL] for run in record.runs}
    means, sds = published.times(study, "mean"), published.times(study, "sd")
    here = {arm: fmean(values) for arm, values in series.items()}
    levels = [
        StudyFigure(
            procedure.OPERATION,
            TIME,
            "ms",
            arm,
            means[arm],
            here.get(arm),
            published_sd=sds[arm],
            here_sd=stdev(series[arm]) if len(series.get(arm, [])) > 1 else None,
            source=published.POST,
        )
        for arm in ARMS
    ]
    known = figures.inverse(cell.overhead.get("throughput")) if cell else None
    printed = in_turn.ratio(means["encrypted"], means["plain"])
    repeated = in_turn.ratio(here.get("encrypted"), here.get("plain"))
    return [*levels, figures.cost(procedure.OPERATION, TIME, known, printed, repeated, published.POST)]


def of_connections(operation: str, cell: Cell) -> list[StudyFigure]:
    """The time of a connection, by our method alone, and both ends' CPU time."""
    known = cell.overhead.get("throughput")
    rates = {arm: level(cell, arm, "throughput") if known else None for arm in ARMS}
    levels = [
        StudyFigure(operation, TIME, "ms", arm, ours=cell.clients * 1e3 / rate if (rate := rates[arm]) else None)
        for arm in ARMS
    ]
    return [*levels, figures.cost(operation, TIME, figures.inverse(known)), *figures.server_cpu(operation, cell)]


def of_design(study: Study, record: StudyRecord, ours: findings.Ours) -> list[StudyFigure]:
    """For each link what a connection saves, and how many starts of psql would show it, as they scatter as published and here."""
    design = []
    sd = findings.pooled_sd(record)
    published_sd = published.times(study, "sd")["plain"]
    assert published_sd is not None
    for link, cell in ours.items():
        if (saved := findings.saved_ms(cell)) is None:
            continue
        design.append(StudyFigure(link, SAVED, "ms", DESIGN, ours=saved[0], low=saved[1], high=saved[2]))
        if saved[0] > 0:
            counts = [float(resolution.needed(of, saved[0])) if of else None for of in (published_sd, sd)]
            wanted = StudyFigure(
                link, NEEDED, "count", DESIGN, published=counts[0], here=counts[1], source=published.POST
            )
            design.append(wanted)
    return design


def answer(result: StudyResult) -> Sheet | None:
    """The question of the study as a table: can a missing round trip be shown, and with how many starts?"""
    found = {(figure.operation, figure.figure): figure for figure in result.figures if figure.figure in OF_THE_DESIGN}
    rows = []
    for link in dict.fromkeys(link for link, _ in found):
        saved = found[link, SAVED]
        needed = found.get((link, NEEDED))
        shown = "yes" if saved.low is not None and saved.low > 0 else "no"
        rows.append(
            (
                link,
                f"{saved.ours:.3g}",
                f"{saved.low:.3g} to {saved.high:.3g}".replace("-", "−"),
                shown,
                *(f"{value:,.0f}" if value else "-" for value in (needed and needed.published, needed and needed.here)),
            )
        )
    if not rows:
        return None
    return Sheet(
        "Can one round trip be shown?",
        ("\nlink", "saved,\nms", "\n95 %", "shown\nhere", "starts, as\npublished", "starts,\nhere"),
        rows,
        "Saved by each connection with TLS from the first byte, by our method. Starts of psql of each kind after which the 95 % interval of "
        "their means' difference is as wide as ± what a connection saves: 2 · (1.96 · sd ÷ saved)², with independent starts, from the published "
        "standard deviation of 10 ms and from that here.",
    )


def without_design(result: StudyResult) -> StudyResult:
    return msgspec.structs.replace(
        result, figures=[figure for figure in result.figures if figure.figure not in OF_THE_DESIGN]
    )


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(kept.runs)):
        return reason
    scatter = "; ".join(
        f"{procedure.WAYS[run.arm]} {fmean(values):.1f} ± {stdev(values):.1f} ms"
        for run in kept.runs
        if len(values := run.series[procedure.REAL]) > 1
    )
    return (
        f"psql {record.tools.get('psql', '')} -c '\\q' over loopback, {record.settings['starts']:.0f} starts with sslnegotiation=postgres and "
        f"then as many with direct (published: {published.STARTS:,} of each, 50 ± 10 and 48 ± 10 ms), sslmode=verify-ca. Mean ± standard "
        f"deviation of a start here: {scatter or 'one start each'}. Unlike in the published runs, both arms are proven, and that TLS begins "
        f"with the first byte in one of them{'' if record.complete else '; it was cut off'}"
    )
