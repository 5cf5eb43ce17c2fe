"""Reads BenchBase's (formerly OLTPBench's) `*.summary.json`. Pure.

Written from BenchBase's ResultWriter and DistributionStatistics (2023), as no package registry has BenchBase. Times are in
microseconds. A rate that was set is not in the file, so a rate that both arms have is only doubted (rate-alike).
"""

from __future__ import annotations

import re

import msgspec

from ciphercost.importers.formats import Bad, Lines, above_zero, digits, line_of
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_
from ciphercost.model.shares import in_percent

JSON = re.compile(r'^[^\S\n]*\{[^{}]*(?:\{[^{}]*\}[^{}]*)*?"Throughput \(requests/second\)"\s*:', re.MULTILINE)
DATA = JSON_BEGIN
AGAIN = "import the whole *.summary.json of BenchBase"
SERVERS = {"postgres": "postgresql", "mysql": "mysql", "mariadb": "mariadb"}


class Latencies(msgspec.Struct):
    """Microseconds; -1: none."""

    mean: float = msgspec.field(name="Average Latency (microseconds)", default=0.0)
    p50: float = msgspec.field(name="Median Latency (microseconds)", default=0.0)
    p99: float = msgspec.field(name="99th Percentile Latency (microseconds)", default=0.0)


class Summary(msgspec.Struct):
    throughput: float = msgspec.field(name="Throughput (requests/second)")
    latencies: Latencies = msgspec.field(name="Latency Distribution")
    goodput: float | None = msgspec.field(name="Goodput (requests/second)", default=None)
    benchmark: str = msgspec.field(name="Benchmark Type", default="")
    database: str = msgspec.field(name="DBMS Type", default="")
    terminals: str | int | None = None
    scale: str | float | None = msgspec.field(name="scalefactor", default=None)
    isolation: str | None = None
    elapsed: float = msgspec.field(name="Elapsed Time (nanoseconds)", default=0.0)
    requests: int = msgspec.field(name="Measured Requests", default=0)


def recognise(head: str) -> int:
    return line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per summary."""
    every = rows(lines, "BenchBase", complete=JSON_END)
    return [
        of_summary(summary, line)
        for line, summary in documents(every, "BenchBase", AGAIN, Summary, "Latency Distribution")
    ]


def of_summary(summary: Summary, line: int) -> Reading:
    """Return one run. Its throughput is the goodput, if the file has it: transactions that neither failed nor were aborted."""
    rate = summary.goodput if summary.goodput is not None else summary.throughput
    if not rate > 0:
        raise Bad(line, "BenchBase completed no transaction, so there is nothing to compare")
    notes = []
    errors = 0
    if rate < summary.throughput:
        lost = summary.throughput - rate
        errors = round(summary.requests * lost / summary.throughput)
        text = f"{in_percent(lost / summary.throughput)} of the transactions were aborted or failed; throughput counts the others"
        if lost > summary.throughput / 2:
            raise Bad(line, f"{text}, so this is no usable result; fix the cause and run it again")
        notes.append(Warning_("errors", text))
    times = {"mean": summary.latencies.mean, "p50": summary.latencies.p50, "p99": summary.latencies.p99}
    database = summary.database.lower()
    factors = {
        "scale": summary.scale,
        "isolation": summary.isolation,
        "database": "" if database in SERVERS else summary.database,
    }
    return Reading(
        tool="benchbase",
        line=line,
        engine="database",
        server=SERVERS.get(database, ""),
        workload=summary.benchmark or "transactions",
        clients=int(terminals) if (terminals := str(summary.terminals or "")).isdigit() else 0,
        factors={name: str(value) for name, value in factors.items() if value},
        operations=summary.requests,
        errors=errors,
        seconds=summary.elapsed / 1e9,
        digits=digits(repr(rate)),
        figures={"throughput": rate} | above_zero({f"latency_{name}": value / 1e3 for name, value in times.items()}),
        notes=notes,
    )
