"""Build each file's figures from the twelve published tables, the procedure's record and our cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import pairs, ran_on
from ciphercost.studies.web_tls import findings, measured, procedure, published
from ciphercost.studies.web_tls.counters import SERVER
from ciphercost.studies.web_tls.measured import (
    BUSY_SECONDS,
    MANY,
    ONE_CLIENT,
    RATE,
    SERVER_CPU,
    SHARE,
    TLS_ITSELF,
    WITHOUT_SENDFILE,
)
from ciphercost.studies.web_tls.published import CV, DISK, MEAN, MEMORY, NETWORK, PROCESSOR, VARIANCE

if TYPE_CHECKING:
    from ciphercost.studies import Study

UNIT = {PROCESSOR: "%", MEMORY: "bytes", NETWORK: "bytes/s", DISK: "", SERVER: "%"}
BUSY = "busy time"
"""Suffix of a figure's name that does not cover the whole window."""
Cells = Mapping[int, Cell]
"""By bytes of the file."""


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every file; none of an arm that was not proven."""
    unproven = pairs.unproven(record)
    here: measured.Here = {} if unproven else {(size_of(run.operation), run.arm): run for run in record.runs}
    printed = published.tables(study)
    megabyte = int(record.settings.get("megabyte", published.MEGABYTE))
    one, many = of_one_client(cells), of_many_clients(cells)
    figures = [
        *(figure for key in printed for figure in counter_figures(printed, here, one, key, megabyte)),
        *(
            figure
            for size in published.SIZES
            for figure in server_figures(here, one.get(size * megabyte), size, record.settings["cpus"])
        ),
        *(figure for size in published.SIZES for figure in fetch_figures(here, size, one.get(size * megabyte))),
        *(figure for size in published.SIZES for figure in our_figures(cells, one.get(size * megabyte), size)),
        *(figure for cell in many for figure in our_figures(cells, cell)),
    ]
    return study.result(
        ran_on(record.engine, record, cells),
        procedure_text(record, here, unproven),
        figures,
        findings.findings(study, record, here, figures),
        complete=record.complete and not unproven,
    )


def size_of(operation: str) -> int:
    """30 of `30MB`."""
    return int(operation.removesuffix("MB"))


def procedure_text(record: StudyRecord, here: measured.Here, unproven: str) -> str:
    """The procedure as it ran here, or why it didn't."""
    parts = [as_run(record)] if here else []
    if record.reason or (unproven and record.proofs):
        parts.append(record.reason or f"not proven: {unproven}")
    elif not here:
        parts.append("the run was cut off before the published procedure began")
    elif not record.complete:
        parts.append("it was cut off")
    return "; ".join(parts)


def as_run(record: StudyRecord) -> str:
    settings = record.settings
    times, interval = settings["speed_up"], settings["interval_s"]
    link = (
        f"over a link of {settings['link_bits'] / 1e6:,.0f} Mb/s (100 Mb/s as published, times {times:.3g})"
        if settings["link_bits"]
        else "over loopback at full speed: a link of fixed bandwidth needs root, so the busy share of a window differs from the published one"
    )
    small = (
        f"; files of {settings['megabyte']:,.0f} bytes for each megabyte in the study"
        if settings["megabyte"] != published.MEGABYTE
        else ""
    )
    negotiated = " ".join(record.encryption.get(name, "") for name in ("protocol", "cipher")).strip()
    return (
        f"one client fetches each file once over HTTP, then each once over HTTPS ({negotiated}), over a connection of its own, {link}; "
        f"around each fetch a window of {settings['window_s']:.3g} s ({published.WINDOW:g} s, which is inferred, ÷ {times:.3g}), sampled every "
        f"{interval:.3g} s ({published.INTERVAL:g} s, which is inferred, ÷ {times:.3g}), including idle time; "
        "also the busy time alone, from the request's first byte to the "
        "answer's last. Client and server share this machine's CPUs; processor time is in per cent of all of them, without that of client and sampling. "
        f"Each file is read from the disk anew{small}. Unlike in the published run, both arms are proven, and the server's log confirms each fetch"
    )


# ── the twelve tables ─────────────────────────────────────────────────────────────────────────────────────────────────


def counter_figures(
    printed: published.Tables, here: measured.Here, one: Cells, key: tuple[str, str], megabyte: int
) -> list[StudyFigure]:
    """One table: the published row, its repetition over the window and over its busy time, and ours."""
    counter, statistic = key
    figures = []
    for size, row in printed[key].rows.items():
        of: dict[str, Any] = {
            "operation": procedure.name_of(size),
            "load": float(size),
            "unit": unit(counter, statistic),
        }
        printed_in = published.source(printed[key])
        runs = {arm: here[size, arm] for arm in ARMS if (size, arm) in here}
        over = {arm: measured.whole(run, counter).get(statistic) for arm, run in runs.items()}
        within = {arm: measured.busy(run, counter).get(statistic) for arm, run in runs.items()}
        mine = {arm: ours(one.get(size * megabyte), arm, counter).get(statistic) for arm in ARMS}
        name = figure(counter, statistic)
        for arm in ARMS:
            figures.append(
                StudyFigure(
                    figure=name,
                    arm=arm,
                    published=row[arm],
                    here=over.get(arm),
                    ours=mine[arm],
                    source=printed_in,
                    **of,
                )
            )
            if runs:
                figures.append(StudyFigure(figure=f"{name}, {BUSY}", arm=arm, here=within.get(arm), **of))
        if statistic == MEAN:
            of["unit"] = "ratio"
            cost = StudyFigure(
                figure=name,
                arm="cost",
                published=quotient(row["encrypted"], row["plain"]),
                here=quotient(over.get("encrypted"), over.get("plain")),
                ours=quotient(mine["encrypted"], mine["plain"]),
                source=printed_in,
                **of,
            )
            figures.append(cost)
            if runs:
                while_busy = quotient(within.get("encrypted"), within.get("plain"))
                figures.append(StudyFigure(figure=f"{name}, {BUSY}", arm="cost", here=while_busy, **of))
    return figures


def figure(counter: str, statistic: str) -> str:
    """`processor time, mean`."""
    return f"{NAMES[counter]}, {statistic}"


NAMES = {
    PROCESSOR: "processor time",
    MEMORY: "available memory",
    NETWORK: "network bytes",
    DISK: "disk queue",
    SERVER: "server's processor time",
}


def unit(counter: str, statistic: str) -> str:
    if statistic == CV or not UNIT[counter]:
        return ""
    return f"({UNIT[counter]})²" if statistic == VARIANCE else UNIT[counter]


def ours(cell: Cell | None, arm: str, counter: str) -> dict[str, float]:
    """A counter over the slices of our method, which have no idle time. Processor time includes the client's."""
    host = cell.arms.get(arm, {}).get("host", {}) if cell else {}
    if not host:
        return {}
    if counter == PROCESSOR:
        idle = host["idle"]
        mean = 100 - idle["mean"]
        return {MEAN: mean, VARIANCE: idle["variance"]} | ({CV: idle["variance"] ** 0.5 / mean} if mean else {})
    statistics = host[{MEMORY: "memory_available_bytes", NETWORK: "network_bytes_per_s", DISK: "disk_queue"}[counter]]
    return {name: statistics[name] for name in (MEAN, VARIANCE)} | ({CV: statistics[CV]} if statistics[MEAN] else {})


def quotient(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None


def server_figures(here: measured.Here, cell: Cell | None, size: int, cpus: float) -> list[StudyFigure]:
    """Processor time of the server's own processes alone: mean over the window and over the busy time."""
    runs = {arm: here[size, arm] for arm in ARMS if (size, arm) in here}
    figures = []
    for arm in ARMS:
        levels = cell.arms.get(arm, {}) if cell else {}
        cores = levels.get("server_cpu_us_per_op", 0.0) * levels.get("throughput", 0.0) / 1e6
        of: dict[str, Any] = {"operation": procedure.name_of(size), "load": float(size), "unit": "%", "arm": arm}
        over = measured.whole(runs[arm], SERVER)[MEAN] if arm in runs else None
        mine = cores / cpus * 100 if cores else None
        name = figure(SERVER, MEAN)
        figures.append(StudyFigure(figure=name, here=over, ours=mine, **of))
        if arm in runs:
            figures.append(StudyFigure(figure=f"{name}, {BUSY}", here=measured.busy(runs[arm], SERVER)[MEAN], **of))
    return figures


# ── beyond the twelve ─────────────────────────────────────────────────────────────────────────────────────────────────


def fetch_figures(here: measured.Here, size: int, cell: Cell | None) -> list[StudyFigure]:
    """One file's fetches: duration, share of the window, and the server's own CPU time, which ours has too."""
    runs = {arm: here[size, arm] for arm in ARMS if (size, arm) in here}
    of: dict[str, Any] = {"operation": procedure.name_of(size), "load": float(size)}
    figures = []
    for name, unit_, read in (
        (BUSY_SECONDS, "s", measured.busy_seconds),
        (SHARE, "share", measured.busy_share),
        (SERVER_CPU, "s", measured.server_seconds),
    ):
        levels: dict[str, float | None] = {arm: read(run) for arm, run in runs.items()}
        mine, cost = server_cpu(cell) if name == SERVER_CPU else ({}, {})
        if not levels and not mine:
            continue
        figures += [
            StudyFigure(figure=name, unit=unit_, arm=arm, here=levels.get(arm), ours=mine.get(arm), **of)
            for arm in ARMS
        ]
        ratio = quotient(levels.get("encrypted"), levels.get("plain"))
        figures.append(StudyFigure(figure=name, unit="ratio", arm="cost", here=ratio, **cost, **of))
    return figures


def server_cpu(cell: Cell | None) -> tuple[dict[str, float | None], dict[str, Any]]:
    """One file by our method: seconds by arm, and fields of their ratio."""
    if cell is None or (estimate := cell.overhead.get("server_cpu_per_op")) is None:
        return {}, {}
    micro = {arm: cell.arms[arm].get("server_cpu_us_per_op") for arm in ARMS}
    return {arm: value / 1e6 if value is not None else None for arm, value in micro.items()}, interval(estimate)


def of_one_client(cells: list[Cell]) -> dict[int, Cell]:
    """Our cells for the study's files, by their bytes."""
    return {int(cell.factors["size"]): cell for cell in cells if cell.group == ONE_CLIENT and is_tls(cell)}


def of_many_clients(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.group == MANY and is_tls(cell)]


def is_tls(cell: Cell) -> bool:
    return cell.mechanism == "tls" and cell.status == "ok" and "size" in cell.factors


def our_figures(cells: list[Cell], cell: Cell | None, size: int | None = None) -> list[StudyFigure]:
    """One of our cells: files per second; with a control, the part of the cost that isn't TLS. `size`: megabytes, for one client."""
    if cell is None:
        return []
    of: dict[str, Any] = {"operation": procedure.name_of(size), "load": float(size)} if size else {}
    if not size:
        of = {"operation": cell.factors["size"], "load": float(cell.clients), "workload": MANY}
    figures = []
    if estimate := cell.overhead.get("throughput"):
        rates = {arm: level(cell, arm, "throughput") for arm in ARMS}
        figures += [StudyFigure(figure=RATE, unit="/s", arm=arm, ours=rates[arm], **of) for arm in ARMS]
        figures.append(StudyFigure(figure=RATE, unit="ratio", arm="cost", **interval(estimate), **of))
    if not size:
        mine, cost = server_cpu(cell)
        figures += [StudyFigure(figure=SERVER_CPU, unit="s", arm=arm, ours=value, **of) for arm, value in mine.items()]
        figures += [StudyFigure(figure=SERVER_CPU, unit="ratio", arm="cost", **cost, **of)] if cost else []
    for name, left in cell.beside.items():
        control = cells[cell.control] if cell.control is not None else None
        if control and control.mechanism == name and "throughput" in control.overhead:
            of_control = interval(control.overhead["throughput"])
            figures.append(StudyFigure(figure=WITHOUT_SENDFILE, unit="ratio", arm="cost", **of_control, **of))
            figures.append(StudyFigure(figure=TLS_ITSELF, unit="ratio", arm="cost", **interval(left), **of))
    return figures


def interval(estimate: Estimate) -> dict[str, Any]:
    return {"ours": estimate.ratio, "low": estimate.low, "high": estimate.high, "n": estimate.n}
