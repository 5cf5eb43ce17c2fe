"""Build the figures of every driver and operation, and each end's share of what TLS adds, from publications, record and cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import figures, in_turn, pairs, ran_on
from ciphercost.studies.driver_tls import findings, published, ways
from ciphercost.studies.sheet import Sheet

if TYPE_CHECKING:
    from ciphercost.studies import Study

CLIENT_CPU = "client's CPU"
LEFT_OUT = "left out: its language is not installed here"
"""Of a driver, in a record's conditions."""
COMPARED = {
    ways.BULK.figure: "MB/s of GridFsDownload as published, results of 1 MB a second here, with TLS ÷ without",
    ways.ROW.figure: "MB/s of FindOneByID as published, rows read by their key a second here, with TLS ÷ without",
    ways.CONNECT.figure: "101 connections with 3 queries each through the proxy, after its change, as published, new connections with one "
    "query a second here, with TLS ÷ without",
}


def compare(study: Study, record: StudyRecord, cells: list[Cell]) -> StudyResult:
    """Figures of every driver and operation; none of a pair that was not proven."""
    unproven = pairs.unproven_pairs(record, record.servers)
    kept = msgspec.structs.replace(record, runs=[run for run in record.runs if run.server not in unproven])
    ours = {cell.variant: cell for cell in cells}
    all_figures = []
    for operation in ways.OPERATIONS:
        for driver in drivers_of(record, operation):
            all_figures += of_driver(study, kept, driver, operation, ours.get(ways.name_of(driver, operation.workload)))
    return study.result(
        ran_on("PostgreSQL", record, cells),
        procedure_text(record, kept, unproven),
        all_figures,
        findings.findings(study, ours),
        complete=record.complete and not unproven,
    )


def drivers_of(record: StudyRecord, operation: ways.Operation) -> list[str]:
    """The drivers that the run was to measure, in their order."""
    return [driver for driver in ways.DRIVERS if ways.name_of(driver, operation.workload) in record.servers]


def published_of(study: Study, operation: ways.Operation) -> tuple[float, str]:
    """The published cost in rate beside this operation, and where it is printed."""
    if operation is ways.CONNECT:
        return published.proxy(study, operation.beside), published.PROXY
    return published.pymongo(study, operation.beside), published.PYMONGO


def of_driver(
    study: Study, record: StudyRecord, driver: str, operation: ways.Operation, cell: Cell | None
) -> list[StudyFigure]:
    """One operation with one driver: its rate, and the CPU time of both ends."""
    name = ways.name_of(driver, operation.workload)
    here: figures.Known = {arm: in_turn.rate(record, operation.workload, arm, name) for arm in ARMS}
    *levels, cost = figures.rate(driver, operation.figure, cell, here)
    ratio, source = published_of(study, operation)
    cost = msgspec.structs.replace(cost, published=ratio, source=source)
    return [*levels, cost, *cpu(driver, operation, cell)]


def cpu(driver: str, operation: ways.Operation, cell: Cell | None) -> list[StudyFigure]:
    """CPU time of the client and of the server for an operation, by our method."""
    return [
        figure
        for end, key in ((CLIENT_CPU, "client_cpu"), (figures.CPU, "server_cpu"))
        for figure in figures.cpu(driver, f"{end}, {operation.workload}", key, cell)
    ]


def shares(result: StudyResult) -> Iterator[Sheet]:
    """The study's question as a table: what TLS adds to an operation at each end, and the client's share of it."""
    level = {(figure.operation, figure.figure, figure.arm): figure.ours for figure in result.figures}
    rows: list[tuple[str, ...]] = []
    for operation in ways.OPERATIONS:
        found = []
        for driver in ways.DRIVERS:
            ends = [
                [level.get((driver, f"{end}, {operation.workload}", arm)) for arm in ARMS]
                for end in (CLIENT_CPU, figures.CPU)
            ]
            added = [after - before for before, after in ends if before is not None and after is not None]
            if len(added) == 2:
                found.append((driver, *(f"{value:+,.0f}".replace("-", "−") for value in added), findings.share(*added)))
        if found:
            rows += [(operation.workload,), *found]
    if rows:
        yield Sheet(
            "What TLS adds to an operation, by who pays",
            ("", "client's\nCPU, µs", "server's\nCPU, µs", "client's\nshare"),
            rows,
            "Estimates of our method; their intervals stand in the next table. No share is printed where an end adds nothing.",
        )


def beside(study: Study) -> Sheet:
    """All published rows."""
    rows: list[tuple[str, ...]] = [("PyMongo, MB/s",)]
    for row in study.rows("pymongo.csv"):
        change = 100 * (float(row["encrypted"]) / float(row["plain"]) - 1)
        words = f"{abs(change):.1f} % {'more' if change > 0 else 'fewer'}"
        rows.append((row["test"], *(f"{float(row[arm]):,.4g}" for arm in ARMS), words))
    rows.append(("proxy, s for 101 connections",))
    for row in study.rows("proxy.csv"):
        more = float(row["encrypted"]) - float(row["plain"])
        rows.append((f"{row['when']} its change", row["plain"], row["encrypted"], f"{more:+.0f} s"))
    return Sheet("As published", ("", "without\nTLS", "with\nTLS", "change\nby TLS"), rows)


def procedure_text(record: StudyRecord, kept: StudyRecord, unproven: dict[str, str]) -> str:
    """The procedure as it ran here, or why it didn't."""
    ended = pairs.ending(record, unproven, began=bool(kept.runs))
    if not kept.runs:
        return ended
    settings = record.settings
    missing = "".join(f"; {name} is {reason}" for name, reason in record.conditions.items())
    text = (
        f"each operation with each driver over one connection, {settings[in_turn.RUNS]:.0f} runs of {settings[in_turn.SECONDS]:g} s without TLS and then "
        "as many with it (published: one figure of each, its runs and their length not stated); unlike in the published runs, both arms "
        f"are proven{missing}"
    )
    return f"{text}; {ended}" if ended else text
