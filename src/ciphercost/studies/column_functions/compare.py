"""Build the figures of servers, operations and loads from the publication, the record and our cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import pairs
from ciphercost.studies.column_functions import findings, measured, procedure, published
from ciphercost.studies.column_functions.measured import Cost, Level
from ciphercost.studies.column_functions.names import (
    ALL_OPERATIONS,
    CPU,
    EQUAL,
    GROWTH,
    MEMORY,
    RATE,
    SERVER_CPU,
    STORED,
    TIME,
)
from ciphercost.studies.sheet import worded

if TYPE_CHECKING:
    from ciphercost.studies import Study


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every server; none of a server whose arms were not proven."""
    unproven = pairs.unproven_pairs(record, record.engines)
    proven = [name for name in record.engines if name not in unproven]
    figures = [
        *(figure for name in record.engines for figure in headlines(study, record, name, name in proven)),
        *(figure for name in record.engines for figure in server_figures(study, record, name, name in proven)),
        *(figure for name in proven for figure in growth_figures(record, name)),
        *(figure for cell in cells for figure in equal_figures(cell)),
    ]
    return study.result(
        ", ".join(f"{name} {record.versions.get(name, '')}".strip() for name in record.engines),
        procedure_text(record, unproven),
        figures,
        findings.findings(study, record, figures, cells),
        complete=record.complete and not unproven,
    )


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def procedure_text(record: StudyRecord, unproven: Mapping[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    began = any(run.design == measured.PUBLISHED for run in record.runs)
    parts = [as_run(record) if began else "", pairs.ending(record, unproven, began=began)]
    return "; ".join(filter(None, parts))


AES = {
    "on": "OpenSSL could use this CPU's AES instructions; whether it could in the published run is unknown. ",
    "off": "The CPU's AES instructions were hidden from OpenSSL (--cpu-crypto off), as the paper says of its machine. ",
    "none": "OpenSSL had no AES instructions to use here, as the paper says of its machine. ",
}
"""By `cpu_crypto` of the record: which AES instructions were available."""


TIMED = {
    True: "As published, time is that of a separate client process for each operation: its start, the connection and every statement. The "
    "study's client was PHP and also read the CSV file. Our method times the statements alone.",
    False: "Time is measured at the client, around an operation's statements; the published times are those of a whole client process.",
}
"""By whether the record's published runs time whole processes; older records don't."""


def as_run(record: StudyRecord) -> str:
    settings = record.settings
    loads = worded([f"{load:,.0f}" for load in measured.loads(record)])
    times = f"{settings['runs']:.0f} run{'s' * (settings['runs'] != 1)}"
    older = (
        f"; statements of an earlier version, not those of the study's application (`{procedure.STUDYS}` here is now `hospital-sql`)"
        if not settings.get(procedure.APPLICATION)
        else ""
    )
    return (
        f"{loads} records {record.tools.get('records', '')}, {times} of each, on tables created anew each time{older}; server and "
        "client on one core; first every run of the plain arm, then every run of the encrypted arm; ± is the standard deviation over the runs, in the "
        "first table over the four operations; CPU (sys + user of that core, without the "
        "first sample and without a last one that is shorter than the others) and RAM (total − free) sampled every "
        f"{settings['interval_s']:g} s. {TIMED[bool(settings.get(procedure.CLIENT_PROCESS))]} "
        f"{AES.get(record.conditions.get('cpu_crypto', ''), '')}Unlike in the published run, both arms are proven"
    )


# ── figures of a server ───────────────────────────────────────────────────────────────────────────────────────────────


def headlines(study: Study, record: StudyRecord, engine: str, proven: bool) -> list[StudyFigure]:
    """The study's one figure of a server: mean over operations of the mean over loads."""
    printed = published.servers(study)[engine]
    runs = record.runs if proven else []
    costs = {
        key: ratio
        for key, arms in measured.as_published(runs, engine).items()
        if (ratio := measured.cost_of(arms)) is not None
    }
    here = measured.headline(costs)
    ours = {name: measured.headline_ours(measured.blocks(runs, engine, name)) for name in procedure.VERSIONS}
    first = StudyFigure(
        ALL_OPERATIONS,
        TIME,
        "ratio",
        "cost",
        published=printed.ratio,
        published_sd=printed.sd,
        source=published.TABLE,
        here=here[0] if here else None,
        here_sd=here[1] if here else None,
        engine=engine,
        mechanism=mechanism_of(record, engine),
        workload=procedure.STUDYS,
        **_interval(ours[procedure.STUDYS]),
    )
    second = StudyFigure(
        ALL_OPERATIONS,
        TIME,
        "ratio",
        "cost",
        engine=engine,
        mechanism=mechanism_of(record, engine),
        workload=procedure.TUNED,
        **_interval(ours[procedure.TUNED]),
    )
    return [first, second] if ours[procedure.TUNED] else [first]


def mechanism_of(record: StudyRecord, engine: str) -> str:
    return record.mechanisms[record.engines.index(engine)]


def server_figures(study: Study, record: StudyRecord, engine: str, proven: bool) -> list[StudyFigure]:
    """Every operation and load: time, CPU and RAM as published and as run here; interleaved time and server CPU time.

    Loads that were published but not run here have the published figures only.
    """
    runs = record.runs if proven else []
    here = measured.as_published(runs, engine)
    printed = {figure: published.levels(study, figure, engine) for figure in published.FILES}
    loads = sorted({*measured.loads(record), *(load for _, load in printed[TIME])})
    figures = []
    for version in procedure.VERSIONS:
        time = measured.blocks(runs, engine, version)
        cpu = measured.blocks(runs, engine, version, measured.SERVER_CPU)
        names: dict[str, Any] = {"engine": engine, "mechanism": mechanism_of(record, engine), "workload": version}
        of_the_study = version == procedure.STUDYS
        for operation in procedure.OPERATIONS:
            for load in loads:
                key = (operation, load)
                arms = here.get(key, {}) if of_the_study else {}
                of = {**names, "load": load}
                then = {figure: levels.get(key, {}) if of_the_study else {} for figure, levels in printed.items()}
                figures += timed(key, arms, time, then[TIME], of)
                figures += sampled(key, arms, then, of)
                if key in cpu:
                    figures += by_turns(operation, SERVER_CPU, "s", cpu[key], of)
    return figures


def timed(
    key: measured.Key,
    arms: Mapping[str, Sequence[StudyRun]],
    time: measured.Blocks,
    then: Mapping[str, published.Level],
    of: Mapping[str, Any],
) -> list[StudyFigure]:
    """Seconds of both arms and their ratio."""
    operation = key[0]
    interleaved = by_turns(operation, TIME, "s", time.get(key, {}), of)
    if not any(arms.values()) and not then:
        return interleaved
    ours = {figure.arm: figure for figure in interleaved}
    levels: dict[str, Level | None] = {arm: measured.seconds_of(arms.get(arm, ())) for arm in ARMS}
    arm_figures = [
        StudyFigure(
            operation,
            TIME,
            "s",
            arm,
            **_published(then.get(arm), TIME),
            here=arm_level.mean if arm_level else None,
            here_sd=arm_level.sd if arm_level else None,
            ours=ours[arm].ours if arm in ours else None,
            **of,
        )
        for arm, arm_level in levels.items()
    ]
    cost = ours.get("cost")
    return [
        *arm_figures,
        StudyFigure(
            operation,
            TIME,
            "ratio",
            "cost",
            published=then["encrypted"].mean / then["plain"].mean if then else None,
            source=published.FILES[TIME].source if then else "",
            here=measured.cost_of(arms),
            ours=cost.ours if cost else None,
            low=cost.low if cost else None,
            high=cost.high if cost else None,
            n=cost.n if cost else 0,
            of=cost.of if cost else "",
            **of,
        ),
    ]


def by_turns(
    operation: str, figure: str, unit: str, sessions: Mapping[int, Sequence[measured.Block]], of: Mapping[str, Any]
) -> list[StudyFigure]:
    """Both arms' levels and their ratio, from the interleaved blocks alone."""
    levels, cost = measured.levels_of(sessions), measured.ratio_of(sessions)
    if cost is None:
        return []
    both = [StudyFigure(operation, figure, unit, arm, ours=levels[arm], **of) for arm in ARMS]
    return [*both, StudyFigure(operation, figure, "ratio", "cost", **_interval(cost), **of)]


def sampled(
    key: measured.Key,
    arms: Mapping[str, Sequence[StudyRun]],
    then: Mapping[str, Mapping[str, published.Level]],
    of: Mapping[str, Any],
) -> list[StudyFigure]:
    """CPU and RAM as the study sampled them, published and here."""
    figures = []
    for figure, unit, read in ((CPU, "%", measured.cpu_of), (MEMORY, "MB", measured.memory_of)):
        for arm in ARMS:
            here, printed = read(arms.get(arm, ())), then[figure].get(arm)
            if here or printed:
                level: dict[str, Any] = {"here": here.mean, "here_sd": here.sd} if here else {}
                figures.append(StudyFigure(key[0], figure, unit, arm, **_published(printed, figure), **level, **of))
    return figures


def _published(level: published.Level | None, figure: str) -> dict[str, Any]:
    """Published fields of a figure, with their source."""
    source = published.FILES[figure].source
    return {"published": level.mean, "published_sd": level.sd, "source": source} if level else {}


def growth_figures(record: StudyRecord, engine: str) -> list[StudyFigure]:
    """b of time ~ load^b, for each operation, arm and version of the statements."""
    figures = []
    for version in procedure.VERSIONS:
        blocks = measured.blocks(record.runs, engine, version)
        for operation in procedure.OPERATIONS:
            of: dict[str, Any] = {"engine": engine, "mechanism": mechanism_of(record, engine), "workload": version}
            grown = {arm: cost for arm in ARMS if (cost := measured.exponent(blocks, operation, arm))}
            figures += [StudyFigure(operation, GROWTH, "exponent", a, **_interval(e), **of) for a, e in grown.items()]
    return figures


# ── at equal cipher ───────────────────────────────────────────────────────────────────────────────────────────────────


def equal_figures(cell: Cell) -> list[StudyFigure]:
    """One server's cell: operations per second, CPU time per operation, stored bytes."""
    of: dict[str, Any] = {"engine": cell.engine, "mechanism": cell.mechanism, "workload": cell.workload}
    figures = []
    for figure, unit, key in ((RATE, "/s", "throughput"), (SERVER_CPU, "µs", "server_cpu_per_op")):
        if (estimate := cell.overhead.get(key)) is None:
            continue
        levels = [StudyFigure(EQUAL, figure, unit, arm, ours=level(cell, arm, key), **of) for arm in ARMS]
        figures += [*levels, StudyFigure(EQUAL, figure, "ratio", "cost", **_estimate(estimate), **of)]
    stored = {arm: sum(cell.stored.get(arm, {}).values()) for arm in ARMS}
    if cell.status == "ok" and all(stored.values()):
        figures += [StudyFigure(EQUAL, STORED, "bytes", arm, ours=size, **of) for arm, size in stored.items()]
        ratio = stored["encrypted"] / stored["plain"]
        figures.append(StudyFigure(EQUAL, STORED, "ratio", "cost", ours=ratio, **of))
    return figures


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {"ours": estimate.ratio, "low": estimate.low, "high": estimate.high, "n": estimate.n}


def _interval(cost: Cost | None) -> dict[str, Any]:
    """Our fields of a figure."""
    if cost is None:
        return {}
    return {"ours": cost.value, "low": cost.low, "high": cost.high, "n": cost.n, "of": cost.of}
