"""Build the three columns of figures from the thread, the procedure's record and our cells. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on, without_runs
from ciphercost.studies.valkey_tls import findings, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

BOTH = "set-get"
"""One set and one get, as many of each."""
SETS, RATE = "sets/s", "operations/s"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every operation; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    kept = record if not unproven else without_runs(record)
    ours = {(cell.workload.rpartition("/")[2], cell.clients): cell for cell in cells}
    all_figures = [figure for name in study.operations for figure in operation(study, kept, name, ours.get((name, 1)))]
    for (name, clients), cell in ours.items():
        if clients > 1:
            title = f"{name}, {clients} clients"
            all_figures += [*figures.rate(title, figure_of(name), cell, {}), *figures.server_cpu(title, cell)]
    title = {"valkey": "Valkey", "redis": "Redis"}[record.engine]
    return study.result(
        ran_on(title, record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, kept, ours),
        complete=record.complete and not unproven,
    )


def figure_of(operation: str) -> str:
    """An operation that is a set and a get is counted as its set, as published."""
    return SETS if operation == BOTH else RATE


def operation(study: Study, record: StudyRecord, name: str, cell: Cell | None) -> list[StudyFigure]:
    line = published.lines(study)["sets"]
    printed: figures.Known | None = {"plain": line.plain, "encrypted": line.encrypted} if name == BOTH else None
    here: figures.Known = {arm: in_turn.rate(record, name, arm) for arm in ARMS}
    return [
        *figures.rate(name, figure_of(name), cell, here, printed, published.THREAD),
        *figures.server_cpu(name, cell),
    ]


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(kept.runs)):
        return reason
    settings = record.settings
    encryption = " ".join(record.encryption.get(key, "") for key in ("protocol", "cipher")).strip()
    return (
        f"one connection that waits for each answer, {settings[in_turn.RUNS]:.0f} runs of {settings[in_turn.SECONDS]:g} s for each command, all "
        "without TLS and then all with it (published: one run of each arm, of 100,000 requests); no certificate is checked, as published; "
        f"TLS is {encryption}. Unlike in the published run, both arms are proven, and every get finds its value"
        f"{'' if record.complete else '; it was cut off'}"
    )
