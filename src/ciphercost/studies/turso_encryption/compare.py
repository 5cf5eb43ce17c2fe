"""Build the three columns of figures from the publication, the procedure's record and our cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, without_runs
from ciphercost.studies.turso_encryption import findings, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

RATE = "transactions/s"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every operation; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    kept = record if not unproven else without_runs(record)
    ours = {findings.name_of(cell): cell for cell in cells}
    all_figures = [figure for name in study.operations for figure in operation(study, kept, name, ours.get(name))]
    for name, cell in ours.items():
        if name not in study.operations:
            all_figures += [*figures.rate(name, RATE, cell, {}), *cpu(name, cell)]
    return study.result(
        ran_on("Turso", record, [cell for cell in cells if cell.engine == record.engine]),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, kept, ours),
        complete=record.complete and not unproven,
    )


def operation(study: Study, record: StudyRecord, name: str, cell: Cell | None) -> list[StudyFigure]:
    """One kind of transaction: the mixed one beside both published rates, the others beside the announcement's per cent."""
    here: figures.Known = {arm: in_turn.rate(record, name, arm) for arm in ARMS}
    if name == published.MIXED:
        printed = published.rates(study, "transactions")
        return [*figures.rate(name, RATE, cell, here, printed, published.PULL), *cpu(name, cell)]
    *levels, cost = figures.rate(name, RATE, cell, here)
    cost = msgspec.structs.replace(cost, published=published.ratio(study, name), source=published.PAGE)
    return [*levels, cost, *cpu(name, cell)]


def cpu(name: str, cell: Cell | None) -> list[StudyFigure]:
    """CPU time of a transaction: the database runs inside the client."""
    return figures.cpu(name, "process's CPU", "client_cpu", cell)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(kept.runs)):
        return reason
    settings, runs = record.settings, record.settings[in_turn.RUNS]
    return (
        f"one connection, transactions of {published.BATCH} operations in a table of {settings['rows']:,.0f} rows, {runs:.0f} run{'s' * (runs != 1)} of "
        f"{settings[in_turn.SECONDS]:g} s of each kind of transaction, all without encryption and then all with {record.encryption.get('cipher', 'it')} "
        "(published: one run of each arm, 100,000 transactions, in a table that was empty at first, with a connection for each transaction). Unlike "
        "in the published runs, both arms are proven, reads come before writes, each read fetches its row, and its statement is prepared once"
        f"{'' if record.complete else '; it was cut off'}"
    )
