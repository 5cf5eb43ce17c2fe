"""Build the three columns of figures from the pull request, the procedure's record and our cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.estimate import bottleneck
from ciphercost.model.estimate import Estimate
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, table, without_runs
from ciphercost.studies.costs import with_interval
from ciphercost.studies.saturation import in_short
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.valkey_storm import findings, procedure, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

RATE = "operations/s"
CERTIFICATES: Mapping[str, str] = {"RSA 2048": "rsa2048", "ECDSA P-256": "ecdsa-p256"}
"""Certificates by the names of their cells; the pull request states none. The first one is that of the procedure, and
stands beside the published figure."""
FIRST = next(iter(CERTIFICATES))
BEFORE, DURING = ARMS
"""A figure's two levels stand where those of two arms stand elsewhere."""
NEW = "new connection"
OPENED: Mapping[str, str] = {"back_p50": "p50", "back_last": "last"}
BEYOND, FALLS = "TLS against no TLS", "during ÷ before"
PARTS: Mapping[Arm, str] = {BEFORE: "throughput_before", DURING: "throughput_during"}


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every certificate; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    kept = record if not unproven else without_runs(record)
    ours = {cell.variant: cell for cell in cells}
    all_figures = [
        figure
        for arm in reversed(ARMS)
        for name in CERTIFICATES
        for figure in of_arm(study, kept, arm, name, ours.get(name))
    ]
    for name, cell in ours.items():
        if cell.storm:
            all_figures += [further(name, cell), *opened(name, cell)]
    alone = published.fall(study, published.THREADS)
    words = "published alone: TLS, handshakes in I/O threads"
    all_figures += figures.rate(words, RATE, None, {}, {BEFORE: alone.before, DURING: alone.during}, published.THREAD)
    title = {"valkey": "Valkey", "redis": "Redis"}[record.engine]
    return study.result(
        ran_on(title, record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, ours),
        complete=record.complete and not unproven,
    )


def of_arm(study: Study, record: StudyRecord, arm: Arm, name: str, cell: Cell | None) -> list[StudyFigure]:
    """Operations per second of one arm before and during the storm, and their ratio."""
    encrypted = arm == "encrypted"
    beside = encrypted and name == FIRST
    operation = f"{'TLS' if encrypted else 'no TLS'}, {name}"
    printed = published.fall(study, published.MAIN)
    known: figures.Known = {BEFORE: printed.before, DURING: printed.during} if beside else {}
    here: figures.Known = dict(zip(ARMS, means(record, arm), strict=True)) if name == FIRST else {}
    source = published.THREAD if beside else ""
    levels = [
        StudyFigure(
            operation,
            RATE,
            "",
            part,
            known.get(part),
            here.get(part),
            cell.storm.arms[arm].levels.get(PARTS[part]) if cell and cell.storm else None,
            source=source,
        )
        for part in ARMS
    ]
    cost = figures.cost(
        operation,
        RATE,
        change_of(cell, arm),
        in_turn.ratio(known.get(DURING), known.get(BEFORE)),
        in_turn.ratio(here.get(DURING), here.get(BEFORE)),
        source,
    )
    return [*levels, cost]


def change_of(cell: Cell | None, arm: Arm) -> Estimate | None:
    """Operations per second of one arm, during ÷ before; None if the cell has none."""
    return cell.storm.arms[arm].change.get(PARTS[DURING]) if cell and cell.storm else None


def further(name: str, cell: Cell) -> StudyFigure:
    """How much further the arm with TLS falls."""
    assert cell.storm is not None
    return figures.cost(f"{BEYOND}, {name}", FALLS, cell.storm.change.get(PARTS[DURING]))


def opened(name: str, cell: Cell) -> Iterator[StudyFigure]:
    """Milliseconds until a new connection had its answer, in both arms."""
    assert cell.storm is not None
    for key, part in OPENED.items():
        for arm in ARMS:
            yield StudyFigure(f"{NEW}, {name}", part, "ms", arm, ours=cell.storm.arms[arm].levels.get(key))


def times(by: Mapping[tuple[str, str, str], StudyFigure], name: str, part: str) -> str:
    """`5.1 → 9.8`."""
    both = [by[name, part, arm].ours if (name, part, arm) in by else None for arm in ARMS]
    return table.pair(both) or "-"


def means(record: StudyRecord, arm: str) -> tuple[float | None, float | None]:
    """Means of an arm's runs before and during the storm."""
    for run in record.runs:
        if run.arm == arm:
            return fmean(run.series[procedure.QUIET]), fmean(run.series[procedure.STORM])
    return None, None


def falls(result: StudyResult) -> Iterator[Sheet]:
    """What TLS adds to the fall."""
    by = {(figure.operation.partition(", ")[2], figure.figure, figure.arm): figure for figure in result.figures}
    rows = [
        (name, with_interval(figure), *(times(by, name, part) for part in OPENED.values()))
        for (name, kind, arm), figure in by.items()
        if (kind, arm) == (FALLS, "cost")
    ]
    if rows:
        note = (
            "The storm's change with TLS ÷ that without TLS, in the same blocks: no change if TLS adds nothing to what new connections take. "
            "New connections: from when they were due to their answer, no TLS → TLS. Where the last one takes longer than a part of a storm (0.5 s), "
            "the server did not reach the rate, and the fall is spread beyond that part."
        )
        head = (
            "",
            "operations/s during ÷ before,\nTLS against no TLS (95 %)",
            *(f"new connection,\n{part}, ms" for part in OPENED.values()),
        )
        yield Sheet("What TLS adds to the fall", head, rows, note)


def saturated(cells: Sequence[Cell]) -> Iterator[Sheet]:
    """What limited each cell without a storm, by arm."""
    rows = [
        (cell.variant, *(in_short(bottleneck.uses(cell, arm)) for arm in ARMS))
        for cell in cells
        if cell.status == "ok" and all(bottleneck.uses(cell, arm) for arm in ARMS)
    ]
    if rows:
        note = (
            f'What was saturated ({100 * bottleneck.SATURATED:.0f} % busy or more); after "-:" nothing was, and how busy each was. The fall is '
            "what the server's thread spends on new connections only where the server was saturated."
        )
        yield Sheet("What limited each cell before the storms, %", ("", "no TLS", "TLS"), rows, note)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(kept.runs)):
        return reason
    settings = record.settings
    encryption = " ".join(record.encryption.get(key, "") for key in ("protocol", "cipher")).strip()
    length = f"{settings[in_turn.SECONDS]:g} s"
    return (
        f"{settings['clients']:.0f} connections (published 650) that send SET as fast as they can, {in_turn.often(settings[in_turn.RUNS])} {length} quiet and "
        f"{length} with {settings['storm']:.0f} new connections a second, first without TLS (not published) and then with it; certificate {FIRST}; "
        f"TLS is {encryption}; one thread of the server does everything. Unlike in the published run, both arms are proven"
        f"{'' if record.complete else '; it was cut off'}"
    )
