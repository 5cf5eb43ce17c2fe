"""Reads JMH's results, as the table at the end of its output or as JSON (`-rf json`). Pure.

JSON has a run for each fork, which is a process of its own; the table has only the mean of all. Modes with time per operation
(avgt, sample, ss) give latency, and as throughput the number of threads divided by it.
"""

from __future__ import annotations

import math
import re

import msgspec

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, line_of, number
from ciphercost.importers.formats._names import state_arms
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, json_alone, rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

HEADER = re.compile(r"\s*Benchmark((?:\s+\(\S+\))*)\s+Mode(?:\s+Cnt)?\s+Score(?:\s+Error)?\s+Units\s*")
MARK = re.compile(
    r"^[^\S\n]*(?:Benchmark(?:\s+\(\S+\))*\s+Mode(?:\s+Cnt)?\s+Score(?:\s+Error)?\s+Units\s*$|# JMH version: \S+)",
    re.MULTILINE,
)
JSON = re.compile(r'^[^\S\n]*\[\s*\{(?>[^{}\[\]]*?"benchmark"\s*:)[^{}\[\]]*?"mode"\s*:', re.MULTILINE)
DATA = JSON_BEGIN
OWN = re.compile(
    r"# .*|(?:Iteration|Result|Benchmark)\b.*|REMEMBER: .*|[\w.$]+:?\S*\s.*\s(?:thrpt|avgt|sample|ss)\s.*"
    r"|(?:\(min, avg, max\)|CI \().*|[\d.]+ ±.*|Secondary result.*"
)
ROW = re.compile(
    rf"\s*(\S+?)(?::\S*?(p0\.50|p0\.99))?((?:\s+\S+)*?)\s+(thrpt|avgt|sample|ss)\s+(?:(\d+)\s+)?{NUMBER}(?:\s+±.*?)?\s+(ops/\w+|\w+/op)\s*"
)
ALL_FIGURES = re.compile(r".*\s(?:thrpt|avgt|sample|ss)\s+(?:\d+\s+)?≈ .*")
THREADS = re.compile(r"# Threads: (\d+) threads?, .*")
NAME = re.compile(r"# Benchmark: (\S+)")
VERSION = re.compile(r"# JMH version: (\S+)")
UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "hr": 3600.0,
    "h": 3600.0,
    "day": 86400.0,
}
QUANTILES = {"p0.50": "latency_p50", "p0.99": "latency_p99"}
AGAIN = "run JMH with -rf json again"


class Metric(msgspec.Struct, rename="camel"):
    score: float | str
    score_unit: str
    score_percentiles: dict[str, float | str] = {}
    raw_data: list[list[float]] | None = None


class Benchmark(msgspec.Struct, rename="camel"):
    benchmark: str
    mode: str
    primary_metric: Metric
    threads: int = 1
    jmh_version: str = ""
    params: dict[str, str] = {}


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per row of the table, or per fork of the JSON."""
    every = rows(lines, "JMH", complete=JSON_END)
    if json_alone(every, MARK):
        found = documents(every, "JMH", AGAIN, list[Benchmark], "primaryMetric")
        readings = [reading for line, all_of_it in found for one in all_of_it for reading in of_benchmark(one, line)]
    else:
        readings = of_table(every)
    state_arms(readings, [reading.workload for reading in readings])
    return readings


def of_benchmark(benchmark: Benchmark, line: int) -> list[Reading]:
    metric = benchmark.primary_metric
    forks = metric.raw_data if benchmark.mode != "sample" else None
    values: list[float | str] = [math.fsum(fork) / len(fork) for fork in forks or [] if fork]
    values = values or [metric.score]
    name = " ".join(
        [short(benchmark.benchmark), *(f"{key}={value}" for key, value in sorted(benchmark.params.items()))]
    )
    readings = []
    for at, value in enumerate(values):
        if not isinstance(value, float | int):
            raise Bad(line, f"the score of {name[:60]} is {value}, so there is nothing to compare")
        reading = _reading(name, benchmark.mode, float(value), metric.score_unit, benchmark.threads, line)
        reading.version, reading.digits = benchmark.jmh_version, digits(repr(value))
        if forks and len(forks[at]) > 1 and benchmark.mode == "thrpt":
            scale = reading.figures["throughput"] / value
            reading.series = {"throughput": [each * scale for each in forks[at]]}
        if benchmark.mode == "sample":
            for key, figure in (("50.0", "latency_p50"), ("99.0", "latency_p99")):
                if isinstance(quantile := metric.score_percentiles.get(key), float | int) and quantile > 0:
                    reading.figures[figure] = quantile * _seconds(metric.score_unit, line) * 1e3
        readings.append(reading)
    return readings


def short(name: str) -> str:
    """Return a benchmark's class and method, without the package, as the table has it."""
    return ".".join(name.split(".")[-2:])


def of_table(every: list[str]) -> list[Reading]:
    readings: dict[tuple[str, str], Reading] = {}
    params: list[str] = []
    inside, threads, version = False, 0, ""
    threads_of: dict[str, int] = {}
    several: list[Reading] = []
    for at, row in enumerate(every, 1):
        if match := THREADS.fullmatch(row.strip()):
            threads = int(match[1])
        elif match := NAME.fullmatch(row.strip()):
            threads_of[match[1]] = threads
        elif match := VERSION.fullmatch(row.strip()):
            version = match[1]
        elif match := HEADER.fullmatch(row):
            several += readings.values()
            params, inside, readings = re.findall(r"\((\S+)\)", match[1]), True, {}
        elif inside and (match := ROW.fullmatch(row)):
            values = match[3].split()
            if len(values) != len(params):
                raise Bad(at, f"{len(values)} parameters for {len(params)} columns; import JMH's whole table")
            name = " ".join(
                [
                    match[1],
                    *(f"{key}={value}" for key, value in sorted(zip(params, values, strict=True)) if value != "N/A"),
                ]
            )
            if match[2]:
                if (known := readings.get((name, match[4]))) and number(match[6]) > 0:
                    known.figures[QUANTILES[match[2]]] = number(match[6]) * _seconds(match[7], at) * 1e3
            elif ":" not in match[1]:
                # The table shortens names by their beginning.
                of_it = next((count for full, count in threads_of.items() if f".{full}".endswith(f".{match[1]}")), 0)
                readings[name, match[4]] = _reading(name, match[4], number(match[6]), match[7], of_it, at)
                readings[name, match[4]].version, readings[name, match[4]].digits = version, digits(match[6])
                if match[5]:
                    text = f"the mean of {match[5]} iterations, whose spread over forks is not printed; run JMH with -rf json"
                    readings[name, match[4]].notes = [Warning_("iterations-hidden", text)]
        elif inside and ALL_FIGURES.fullmatch(row) and ":" not in row.split()[0]:
            raise Bad(
                at, "the score is too small to be printed with digits; run JMH with a smaller unit (-tu ns) or -rf json"
            )
    several += readings.values()
    if not several:
        raise Bad(
            len(every),
            "the output has no table 'Benchmark … Mode … Score … Units', which has the result; import JMH's whole output",
        )
    return several


def _seconds(unit: str, line: int) -> float:
    """Return the seconds of a score's unit: `ops/s`, `ms/op`."""
    name = unit.removeprefix("ops/").removesuffix("/op")
    if name not in UNITS:
        raise Bad(line, f"'{unit[:20]}' is not a unit of JMH")
    return UNITS[name]


def _reading(name: str, mode: str, score: float, unit: str, threads: int, line: int) -> Reading:
    """Return one run. `score`: operations per time, or time per operation of one thread. `threads`: 0 if it is unknown."""
    if not score > 0:
        raise Bad(line, f"the score of {name[:60]} is {score:g}, so there is nothing to compare")
    if unit.startswith("ops/"):
        figures = {"throughput": score / _seconds(unit, line)}
    else:
        time = score * _seconds(unit, line)
        figures = {"throughput": max(threads, 1) / time, "latency_mean": time * 1e3}
    return Reading(
        tool="jmh",
        line=line,
        engine="code",
        workload=name,
        clients=threads,
        factors={"mode": mode},
        figures=figures,
    )
