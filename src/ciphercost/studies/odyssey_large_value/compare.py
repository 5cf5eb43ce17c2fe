"""Build the times of both poolers at both sizes, and Odyssey ÷ PgBouncer, from the issue, record and cells. Pure."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, table
from ciphercost.studies.odyssey_large_value import findings, procedure, published, ways
from ciphercost.studies.sheet import Sheet

if TYPE_CHECKING:
    from ciphercost.studies import Study

TIME, CPU = "time", "pooler's CPU"
COMPARED = "time of one psql with a large value over TLS as published and repeated, the cost of TLS in time by our method, with Odyssey ÷ with PgBouncer"
"""What a row of two poolers compares."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of both sizes with each pooler; none of one that was not proven."""
    unproven = pairs.unproven_pairs(record, record.servers)
    kept = msgspec.structs.replace(record, runs=[run for run in record.runs if run.server not in unproven])
    ours = {(cell.group, cell.variant): cell for cell in cells}
    size = int(record.settings[procedure.SIZE])
    all_figures: list[StudyFigure] = []
    for each in reversed(ways.sizes(size)):
        repeated = kept if each == size else None
        for pooler in ways.POOLERS:
            all_figures += of_pooler(study, repeated, pooler, each, ours.get((ways.label(each), ways.POOLERS[pooler])))
        all_figures.append(between(study, repeated, each, ours.get((ways.label(each), ways.POOLERS[ways.QUESTIONED]))))
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, size, ours),
        complete=record.complete and not unproven,
    )


def printed(study: Study, pooler: str, size: int) -> float | None:
    """The issue's milliseconds, beside a value of its size only."""
    return published.milliseconds(study, pooler) if size == published.BYTES else None


def here(record: StudyRecord | None, pooler: str) -> float | None:
    """Mean milliseconds of the starts of psql through that pooler."""
    for run in record.runs if record else ():
        if run.server == ways.POOLERS[pooler]:
            return fmean(run.series[procedure.REAL])
    return None


def of_pooler(study: Study, record: StudyRecord | None, pooler: str, size: int, cell: Cell | None) -> list[StudyFigure]:
    """The time of one value without TLS and with it, and the CPU time of the pooler."""
    operation = ways.name_of(pooler, size)
    levels = [
        StudyFigure(
            operation,
            TIME,
            "ms",
            arm,
            value := printed(study, pooler, size) if arm == procedure.ARM else None,
            here(record, pooler) if arm == procedure.ARM else None,
            findings.milliseconds(cell, arm),
            source=published.ISSUE if value is not None else "",
        )
        for arm in ARMS
    ]
    cost = figures.cost(operation, TIME, figures.inverse(cell.overhead.get("throughput") if cell else None))
    return [*levels, cost, *figures.cpu(operation, CPU, "hop_cpu", cell)]


def between(study: Study, record: StudyRecord | None, size: int, cell: Cell | None) -> StudyFigure:
    """Odyssey ÷ PgBouncer with a value of this size. `cell`: Odyssey's."""
    values = [printed(study, pooler, size) for pooler in (ways.QUESTIONED, ways.REFERENCE)]
    repeated = [here(record, pooler) for pooler in (ways.QUESTIONED, ways.REFERENCE)]
    ratio = in_turn.ratio(*values)
    return figures.cost(
        f"{ways.name_of(ways.QUESTIONED, size)}{figures.OVER}{ways.POOLERS[ways.REFERENCE]}",
        TIME,
        figures.inverse(cell.against_reference if cell else None),
        ratio,
        in_turn.ratio(*repeated),
        published.ISSUE if ratio is not None else "",
    )


def answer(study: Study, result: StudyResult) -> Sheet:
    """The study's question as a table: how much longer does a value take with Odyssey, over TLS and without it?"""
    known = {(figure.operation, figure.arm): figure for figure in result.figures if figure.figure == TIME}
    issue = [published.milliseconds(study, pooler) for pooler in ways.POOLERS]
    rows: list[tuple[str, ...]] = [("as published, 40 MB", *_row([None, issue[0]], [None, issue[1]]))]
    sizes = list(dict.fromkeys(name.partition(", ")[0] for name, _ in known))
    for size in sizes:
        figures_ = {pooler: [known[f"{size}, {ways.POOLERS[pooler]}", arm] for arm in ARMS] for pooler in ways.POOLERS}
        repeated = {pooler: [each.here for each in both] for pooler, both in figures_.items()}
        if any(value for both in repeated.values() for value in both):
            rows.append((f"psql here, {size}", *_row(*repeated.values())))
        rows.append((f"our method, {size}", *_row(*([each.ours for each in both] for both in figures_.values()))))
    return Sheet(
        "How much longer does a value take with Odyssey?",
        (
            "\nTLS off → on",
            "PgBouncer,\nms",
            "Odyssey,\nms",
            "Odyssey ÷ PgBouncer,\nTLS off → on",
        ),
        rows,
        "psql is started anew for each value; our method reads value after value over one connection. Both receive it whole.",
    )


def _row(reference: list[float | None], questioned: list[float | None]) -> tuple[str, str, str]:
    """Milliseconds of each pooler, off → on, and the quotients of the two."""
    quotients = [in_turn.ratio(above, below) for above, below in zip(questioned, reference, strict=True)]
    words = ["-" if quotient is None else f"{quotient:.3g}" for quotient in quotients]
    return table.pair(reference) or "-", table.pair(questioned) or "-", " → ".join(words)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(kept.runs))
    if not kept.runs:
        return ended
    size = int(record.settings[procedure.SIZE])
    scatter = "; ".join(
        f"{run.server} {fmean(values):,.0f}{f' ± {stdev(values):,.0f}' if len(values) > 1 else ''} ms"
        for run in kept.runs
        if (values := run.series[procedure.REAL])
    )
    versions = ", ".join(
        f"{title} {record.tools[pooler]}" for pooler, title in ways.POOLERS.items() if pooler in record.tools
    )
    runs = record.settings[in_turn.RUNS]
    starts = "one start" if runs == 1 else f"{runs:.0f} starts"
    text = (
        f"psql {record.tools.get('psql', '')} -Atc \"select repeat('1', {size})\" with sslmode=require over loopback, "
        f"{starts} through each pooler ({versions}), one pooler after the other (published: one start each, 40 MB, "
        f"no versions). Mean ± standard deviation here: {scatter}. Unlike in the published runs, it is proven that TLS ends at the pooler"
    )
    return f"{text}; {ended}" if ended else text
