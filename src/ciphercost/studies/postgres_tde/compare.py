"""compare: published figures, pgbench's own here and our cells -> three columns and what they say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.model import ARMS, Cell, StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import pairs, ran_on
from ciphercost.studies.postgres_tde import findings, published, servers
from ciphercost.words import level

if TYPE_CHECKING:
    from ciphercost.studies import Study

FIGURES = (
    # figure, unit, field of a published arm, series of a run here
    ("TPS", "", "tps", "tps"),
    ("latency avg", "ms", "latency_average_ms", "latency_average_ms"),
    ("latency sd", "ms", "latency_stddev_ms", "latency_stddev_ms"),
    ("connecting", "ms", "initial_connection_ms", "initial_connection_ms"),
    ("transactions", "count", "transactions", "transactions"),
)
"""What pgbench prints and the study printed."""
OURS_ALONE = (
    # figure, unit, keys of an arm, divisor, key of the cost
    ("server's CPU", "µs", ("server_cpu_us_per_op",), 1.0, "server_cpu_per_op"),
    ("disk traffic", "KB", ("read_bytes_per_op", "write_bytes_per_op"), 1e3, "disk_bytes_per_op"),
)
"""For each transaction, by our method."""

Here = Mapping[tuple[str, str], StudyRun]


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every pair of arms. Of a pair that was not proven nothing is said."""
    unproven = pairs.unproven(record, record.mechanisms)
    here: Here = {(run.mechanism, run.arm): run for run in record.runs if run.mechanism not in unproven}
    ours = {cell.mechanism: cell for cell in cells}
    figures = [each for name in record.mechanisms for each in pair_figures(study, record, name, here, ours.get(name))]
    return study.result(
        ran_on(record.engine, record, cells),
        words(record, here, unproven),
        [*figures, *other_server(study)],
        findings.findings(study, record, here, ours),
        complete=record.complete and not unproven,
    )


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def words(record: StudyRecord, here: Here, unproven: Mapping[str, str]) -> str:
    """The procedure as it was run here, or why it wasn't."""
    said = [what_encrypts(record), as_run(record, here) if here else ""]
    return "; ".join(filter(None, [*said, pairs.ending(record, unproven, began=bool(here))]))


def what_encrypts(record: StudyRecord) -> str:
    """Whether it is the server that encrypts, as it was in the study."""
    if own := [name for name in record.mechanisms if name in servers.VENDORS]:
        return f"encrypted by the server itself ({', '.join(own)}), as it was in the study; the plain arm is the same binaries without it"
    return (
        f"no server with TDE was named (--bindir), so the server is stock PostgreSQL in both arms, and in one of them the file "
        f"system below it encrypts: {' and '.join(record.mechanisms)}"
    )


def as_run(record: StudyRecord, here: Here) -> str:
    settings = record.settings
    failed = sum(run.series["failed"][0] for run in here.values())
    return (
        f"pgbench {record.tools.get('pgbench', '')} -i -s {settings['scale']:.0f}, then -c {settings['clients']:.0f} "
        f"-j {settings['threads']:.0f} -P 1 -T {settings['duration_s']:.0f}, the encrypted arm first and then the other; "
        f"{failed:,.0f} transactions failed; unlike the published run, with both arms proven"
    )


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def heading(name: str) -> str:
    return f"TPC-B-like, {name}"


def pair_figures(study: Study, record: StudyRecord, name: str, here: Here, cell: Cell | None) -> list[StudyFigure]:
    """One pair of arms here beside the study's own pair."""
    printed = published.arms(study)
    arms = {"plain": printed[published.PLAIN], "encrypted": printed[published.TDE]}
    found = []
    for figure, unit, field, series in FIGURES:
        mine = our_levels(figure, record.settings["clients"], cell)
        levels = [
            StudyFigure(
                heading(name),
                figure,
                unit,
                arm,
                published=getattr(arms[arm], field),
                here=here[name, arm].series[series][0] if (name, arm) in here else None,
                ours=mine.get(arm),
                source=printed_in(figure),
            )
            for arm in ARMS
        ]
        found += [*levels, *cost_of(heading(name), figure, levels, cell)]
    return [*found, *ours_alone(name, cell)]


def our_levels(figure: str, clients: float, cell: Cell | None) -> dict[str, float]:
    """Ours of a closed loop: its rate, and its mean latency, which is clients ÷ rate as no client ever rests."""
    if cell is None or "throughput" not in cell.overhead:
        return {}
    rates: dict[str, float] = {arm: level(cell, arm, "throughput") or 0.0 for arm in ARMS}
    if figure == "TPS":
        return rates
    return {arm: clients / rate * 1000 for arm, rate in rates.items()} if figure == "latency avg" else {}


def cost_of(operation: str, figure: str, levels: Sequence[StudyFigure], cell: Cell | None) -> list[StudyFigure]:
    """encrypted ÷ plain, of rate and latency."""
    if figure not in ("TPS", "latency avg"):
        return []
    rate = cell.overhead.get("throughput") if cell else None
    ratio, low, high = (rate.ratio, rate.low, rate.high) if rate else (None, None, None)
    if rate and figure != "TPS":
        ratio, low, high = 1 / rate.ratio, 1 / rate.high, 1 / rate.low
    plain, encrypted = levels
    return [
        StudyFigure(
            operation,
            figure,
            "ratio",
            "cost",
            published=quotient(encrypted.published, plain.published),
            here=quotient(encrypted.here, plain.here),
            ours=ratio,
            low=low,
            high=high,
            source=printed_in(figure),
        )
    ]


def printed_in(figure: str) -> str:
    """The published table of a figure, or the text where it is in none."""
    return published.LATENCIES if figure == "latency avg" else published.OUTPUT


def ours_alone(name: str, cell: Cell | None) -> list[StudyFigure]:
    """What encryption costs where it works, which a rate that waits for the disk does not show."""
    found = []
    for figure, unit, keys, divisor, ratio in OURS_ALONE:
        cost = cell.overhead.get(ratio) if cell else None
        if cell is None or cost is None or keys[0] not in cell.arms["plain"]:
            continue
        for arm in ARMS:
            level = sum(cell.arms[arm][key] for key in keys) / divisor
            found.append(StudyFigure(heading(name), figure, unit, arm, ours=level))
        found.append(StudyFigure(heading(name), figure, "ratio", "cost", ours=cost.ratio, low=cost.low, high=cost.high))
    return found


def other_server(study: Study) -> list[StudyFigure]:
    """The study's third server, without TDE: beside the same arm with it. There is no such server here."""
    printed = published.arms(study)
    arms = {"plain": printed[published.OTHER], "encrypted": printed[published.TDE]}
    operation = "published alone: EnterpriseDB 15.10 as the plain arm"
    found = []
    for figure, unit, field, _ in FIGURES:
        levels = [
            StudyFigure(operation, figure, unit, arm, published=getattr(arms[arm], field), source=printed_in(figure))
            for arm in ARMS
        ]
        found += [*levels, *cost_of(operation, figure, levels, None)]
    return found


def quotient(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None
