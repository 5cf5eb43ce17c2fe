"""Build the three columns of figures from the publication, the procedure's record and our cells. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import HostSample, StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import pairs, ran_on
from ciphercost.studies.mysql_tls import findings, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

MEMORY = (
    ("RAM available", "memory_available_bytes"),
    ("RAM used", "memory_used_bytes"),
    ("server's RAM", "server_memory_bytes"),
)

Here = dict[tuple[str, str], StudyRun]


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every operation; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    here: Here = {} if unproven else {(run.operation, run.arm): run for run in record.runs}
    ours = {cell.workload.rpartition("/")[2]: cell for cell in cells}
    figures = [
        figure
        for name in study.operations
        for figure in (
            *time_figures(study, name, here, ours.get(name)),
            *server_cpu_figures(name, ours.get(name)),
            *cpu_figures(study, name, here, ours.get(name)),
            *memory_figures(name, here, ours.get(name)),
        )
    ]
    return study.result(
        ran_on(record.engine, record, cells),
        procedure_text(record, here, unproven),
        figures,
        findings.findings(study, here, ours, record.mechanism),
        complete=record.complete and not unproven,
    )


def procedure_text(record: StudyRecord, here: Here, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    if reason := pairs.not_run(record, unproven, began=bool(here)):
        return reason
    counts = {name: int(run.load["queries"]) for (name, _), run in here.items()}
    settings = record.settings
    fewer = [f"{name} {n:,}" for name, n in counts.items() if n < settings["queries"]]
    scaled = (
        f", but fewer queries per iteration to finish in time ({', '.join(fewer)}; seconds are for {published.QUERIES:,})"
        if fewer
        else ""
    )
    memory = settings.get("memory_bytes")
    limited = f", server and client in a control group of {memory / 1e9:.3g} GB of memory" if memory else ""
    cut_off = "" if record.complete else "; it was cut off"
    return (
        f"{settings['iterations']:.0f} iteration{'s' * (settings['iterations'] != 1)} of {settings['queries']:,.0f} queries on "
        f"{settings['rows']:,.0f} rows{scaled}, "
        f"over one connection, {order(record)}{limited}; unlike in the published run, both arms are proven{cut_off}"
    )


def order(record: StudyRecord) -> str:
    """The order of operations and arms; older records ran arm by arm."""
    if record.settings.get("by_operation"):
        ran = tuple(dict.fromkeys(run.operation for run in record.runs))
        papers = [name for name in published.ORDER if name in ran]
        like = (
            "as the paper lists them" if list(ran) == papers else f"where the paper lists {', '.join(published.ORDER)}"
        )
        return f"operation by operation ({', '.join(ran)}), {like}, each with TLS and then without (--order operations)"
    return "every operation without TLS and then every operation with TLS, unlike the paper (--order arms)"


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def seconds_here(run: StudyRun) -> list[float]:
    """Seconds of each iteration, scaled to the published number of queries."""
    return [seconds * published.QUERIES / run.load["queries"] for seconds in run.series["seconds"]]


def time_figures(study: Study, name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    printed = published.times(study)[name]
    repeated = {arm: fmean(seconds_here(here[name, arm])) for arm in ARMS if (name, arm) in here}
    rate = cell.overhead.get("throughput") if cell else None
    levels = []
    for arm in ARMS:
        measured = level(cell, arm, "throughput") if cell and rate else None
        levels.append(
            StudyFigure(
                name,
                "time",
                "s",
                arm,
                published=printed[arm],
                here=repeated.get(arm),
                ours=published.QUERIES / measured if measured else None,
                source=published.TIMES,
            )
        )
    cost = StudyFigure(
        name,
        "time",
        "ratio",
        "cost",
        published=printed["encrypted"] / printed["plain"],
        here=repeated["encrypted"] / repeated["plain"] if len(repeated) == len(ARMS) else None,
        # With one connection in a closed loop, time is one over throughput.
        ours=1 / rate.ratio if rate else None,
        low=1 / rate.high if rate else None,
        high=1 / rate.low if rate else None,
        source=published.TIMES,
    )
    return [*levels, cost]


def server_cpu_figures(name: str, cell: Cell | None) -> list[StudyFigure]:
    """Server CPU by our method alone: other processes hardly affect it, unlike a time."""
    cost = cell.overhead.get("server_cpu_per_op") if cell else None
    if cell is None or cost is None:
        return []
    levels = [
        StudyFigure(name, "server's CPU", "µs", arm, ours=cell.arms[arm].get("server_cpu_us_per_op")) for arm in ARMS
    ]
    return [*levels, StudyFigure(name, "server's CPU", "ratio", "cost", ours=cost.ratio, low=cost.low, high=cost.high)]


# ── what sar prints ───────────────────────────────────────────────────────────────────────────────────────────────────


def mean_of(rows: Sequence[HostSample], counter: str) -> float | None:
    """Mean over the operation's whole time: a shorter row counts less."""
    whole = sum(row.seconds for row in rows)
    return sum(getattr(row, counter) * row.seconds for row in rows) / whole if whole else None


def cpu_figures(study: Study, name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    printed = published.cpu(study)[name]
    return [
        StudyFigure(
            name,
            f"%{counter}",
            "%",
            arm,
            published=printed[arm].mean(counter),
            here=mean_of(here[name, arm].host, counter) if (name, arm) in here else None,
            ours=host_mean(cell, arm, counter),
            source=published.CPU[name],
        )
        for counter in published.COUNTERS
        for arm in ARMS
    ]


def memory_figures(name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """Memory, which the study intended to print but didn't."""
    return [
        StudyFigure(
            name,
            figure,
            "MB",
            arm,
            here=megabytes(mean_of(here[name, arm].host, field) if (name, arm) in here else None),
            ours=megabytes(memory_ours(cell, arm, field)),
        )
        for figure, field in MEMORY
        for arm in ARMS
    ]


def host_mean(cell: Cell | None, arm: str, counter: str) -> float | None:
    host = cell.arms.get(arm, {}).get("host", {}) if cell else {}
    return host[counter]["mean"] if counter in host else None


def memory_ours(cell: Cell | None, arm: str, field: str) -> float | None:
    if field == "server_memory_bytes":
        return cell.arms.get(arm, {}).get("memory_bytes") if cell else None
    return host_mean(cell, arm, field)


def megabytes(value: float | None) -> float | None:
    return value / 1e6 if value is not None else None
