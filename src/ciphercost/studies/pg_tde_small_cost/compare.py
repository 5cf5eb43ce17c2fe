"""Build the figures of every operation and pair of arms, and how narrow each interval is, from the post, the record and our cells. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import figures, in_turn, pairs, ran_on, resolution, tde_pairs
from ciphercost.studies.pg_tde_small_cost import findings, procedure, published
from ciphercost.studies.pg_tde_small_cost.precision import DESIGN, HALF, MINUTES, RUNS_HALF, RUNS_MINUTES

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str, str], StudyRun]
"""By pair, operation and arm."""


def name_of(operation: str, pair: str) -> str:
    """`small transactions, fscrypt`."""
    return f"{published.WORDS[operation]}, {pair}"


def figure_of(operation: str) -> str:
    """What is compared."""
    return f"time of {published.WORDS[operation]}"


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every operation and pair; none of a pair that was not proven."""
    names = [tde_pairs.name_of(*pair) for pair in zip(record.servers, record.mechanisms, strict=True)]
    unproven = pairs.unproven_pairs(record, names)
    runs = {(tde_pairs.name_of(run.server, run.mechanism), run.operation, run.arm): run for run in record.runs}
    here = {key: run for key, run in runs.items() if key[0] not in unproven}
    ours = {(tde_pairs.name_of(cell.variant, cell.mechanism), cell.workload.rpartition("/")[2]): cell for cell in cells}
    keys = [(pair, operation) for operation in published.MEASURED for pair in names]
    all_figures = [figure for key in keys for figure in of_operation(study, *key, here, ours.get(key))]
    alone = figures.cost(
        f"published alone: {published.WORDS[published.UPDATE]}, with its checkpoint",
        figure_of(published.UPDATE),
        None,
        published.limit(study, published.UPDATE),
        source=published.POST,
    )
    all_figures.append(msgspec.structs.replace(alone, bound="most"))
    for key in keys:
        all_figures += of_design(*key, record, here, ours.get(key))
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, here, unproven),
        all_figures,
        findings.findings(study, ours, all_figures),
        complete=record.complete and not unproven,
    )


def of_operation(study: Study, pair: str, operation: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """The time of one operation on one pair, beside the published limit."""
    name, figure = name_of(operation, pair), figure_of(operation)
    mine = {
        arm: fmean(here[pair, operation, arm].series[procedure.SECONDS])
        for arm in ARMS
        if (pair, operation, arm) in here
    }
    levels = [
        StudyFigure(
            name,
            figure,
            "ms",
            arm,
            here=1e3 * mine[arm] if arm in mine else None,
            ours=_milliseconds(cell, arm),
        )
        for arm in ARMS
    ]
    cost = figures.cost(
        name,
        figure,
        figures.inverse(cell.overhead.get("throughput")) if cell else None,
        published.limit(study, operation),
        in_turn.ratio(mine.get("encrypted"), mine.get("plain")),
        published.POST,
    )
    return [*levels, msgspec.structs.replace(cost, bound="most"), *figures.server_cpu(name, cell)]


def _milliseconds(cell: Cell | None, arm: Arm) -> float | None:
    """The time that each client has for one operation."""
    rate = level(cell, arm, "throughput") if cell and "throughput" in cell.overhead else None
    return 1e3 * cell.clients / rate if cell and rate else None


def of_design(pair: str, operation: str, record: StudyRecord, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """How narrow the interval is, per cent, and the minutes of load until it is ±1 %: by our method, and of averages of the runs here."""
    name, found = name_of(operation, pair), []
    rate = cell.overhead.get("throughput") if cell else None
    if cell and rate and rate.low > 0:
        half = math.log(rate.high / rate.low) / 2
        found.append(StudyFigure(name, HALF, "%", DESIGN, ours=percent(half), n=cell.sessions))
        each = record.settings.get("cell_seconds", 0.0) / max(1, cell.sessions) / 60
        needed = resolution.sessions_needed(half, cell.sessions, published.SEARCHED)
        if needed and each:
            minutes = [each * sessions for sessions in needed]
            found.append(StudyFigure(name, MINUTES, "min", DESIGN, ours=minutes[0], low=minutes[1], high=minutes[2]))
    groups = [
        [math.log(seconds) for seconds in here[pair, operation, arm].series[procedure.SECONDS]]
        for arm in ARMS
        if (pair, operation, arm) in here
    ]
    if len(groups) == len(ARMS) and (of := resolution.spread(groups)) is not None:
        runs = min(map(len, groups))
        value, low, high = resolution.resolution(of, runs)
        found.append(
            StudyFigure(name, RUNS_HALF, "%", DESIGN, ours=percent(value), low=percent(low), high=percent(high), n=runs)
        )
        of_one = fmean(math.exp(fmean(group)) for group in groups)
        length = record.settings[in_turn.SECONDS] if operation == published.OLTP else of_one
        minutes = [
            len(ARMS) * length * resolution.runs_needed(sd, published.SEARCHED) / 60 for sd in (of.sd, of.low, of.high)
        ]
        found.append(StudyFigure(name, RUNS_MINUTES, "min", DESIGN, ours=minutes[0], low=minutes[1], high=minutes[2]))
    return found


def percent(difference: float) -> float:
    """A difference of logarithms as a percentage."""
    return 100 * math.expm1(difference)


def procedure_text(record: StudyRecord, here: Here, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(here))
    below, clauses = tde_pairs.stand_ins(record.mechanisms), []
    if below:
        clauses.append(
            f"no server with pg_tde was named (--bindir), so {tde_pairs.standing_in(below)}: both arms have "
            "the same server, and in one the file system below it encrypts, with 256-bit keys"
        )
    if here:
        settings = record.settings
        clauses.append(
            f"pgbench {record.tools.get('pgbench', '')} -i -s {settings['scale']:.0f}, then {in_turn.often(settings[in_turn.RUNS])} -c "
            f"{settings['clients']:.0f} -T {settings[in_turn.SECONDS]:.0f}, then each statement {in_turn.often(settings[in_turn.RUNS])} on its table of "
            "accounts; all on the plain arm and then all on the encrypted one (published: neither number nor length of the runs). Both arms are proven"
        )
    return "; ".join(filter(None, [*clauses, ended]))
