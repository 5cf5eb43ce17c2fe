"""Reads the block `Results:` of cassandra-stress. Pure.

Written from StressMetrics of Cassandra 4 and 5, as no package registry has the tool. Latencies are printed to tenths of a millisecond. A rate
that was set (`fixed=`, `throttle=`) stands in the settings above.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import (
    Bad,
    Lines,
    above_zero,
    cut_off,
    digits,
    errors_among,
    line_of,
    set_rate,
    with_thousands,
)
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:Op rate +: +[\d,]+ op/s|Partition rate +: +[\d,]+ pk/s|Latency 99th percentile +: |type +total ops, +op/s, +pk/s)",
    re.MULTILINE,
)
OWN = re.compile(
    r"\w[\w. ]*?\s*: .*|\*+ .*|\w+, +\d+,.*|type +total ops.*|Warming up .*|Running .*|Connected to cluster.*|Datacenter: .*|(?:Results|END|Sleeping).*"
)
RESULTS = re.compile(r"\s*Results:\s*")
FIELD = re.compile(
    r"\s*(Op rate|Latency mean|Latency median|Latency 99th percentile|Total errors|Total operation time|Total partitions) +: +([\d,.:]+)\s?(.*)"
)
KIND = re.compile(r"\[([\w-]+): ")
THREADS = re.compile(r"\s*Thread Count: (\d+)\s*")
RUNNING = re.compile(r"\s*Running .*?with (\d+) threads.*")
LIMIT = re.compile(r"\s*OpsPer Sec: (\d+)\s*")
FIGURES = {"Latency mean": "latency_mean", "Latency median": "latency_p50", "Latency 99th percentile": "latency_p99"}


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each block `Results:`, which ends with `Total operation time`."""
    every = rows(lines, "cassandra-stress")
    readings: list[Reading] = []
    told: dict[str, str] = {}
    kinds: list[str] = []
    began, threads, limit = 0, 0, ""

    def finish(*, whole: bool = False) -> None:
        nonlocal told, kinds, began
        readings.append(reading(told, kinds, began, threads))
        if not whole:
            readings[-1].notes.append(cut_off(began, "'Total operation time'", readings[-1].figures))
        if limit not in ("", "0"):
            set_rate(readings[-1], limit)
        told, kinds, began = {}, [], 0

    for at, row in enumerate(every, 1):
        if RESULTS.fullmatch(row):
            if told:
                finish()
            began = at
        elif match := THREADS.fullmatch(row) or RUNNING.fullmatch(row):
            threads = int(match[1])
        elif match := LIMIT.fullmatch(row):
            limit = match[1]
        elif match := FIELD.fullmatch(row):
            began = began or at
            told[match[1]] = match[2]
            kinds = kinds or KIND.findall(match[3])
            if match[1] == "Total operation time":
                finish(whole=True)
    if told:
        finish()
    if not readings:
        raise Bad(
            len(every), "the output has no line 'Op rate', which has the result; import cassandra-stress's whole output"
        )
    return readings


def reading(told: dict[str, str], kinds: list[str], line: int, threads: int) -> Reading:
    """Return one run. Raises Bad if its rate is missing, or if most operations failed."""
    rate = with_thousands(told.get("Op rate", "0"))
    if not rate > 0:
        raise Bad(
            line, "cassandra-stress completed no operation, or its line 'Op rate' is missing; import its whole output"
        )
    seconds = 0.0
    for part in told.get("Total operation time", "0").split(":"):
        seconds = seconds * 60 + float(part)
    wrong = int(with_thousands(told.get("Total errors", "0")))
    done = round(rate * seconds)
    figures = {"throughput": rate} | {
        figure: with_thousands(told[name]) for name, figure in FIGURES.items() if name in told
    }
    return Reading(
        tool="cassandra-stress",
        line=line,
        engine="cassandra",
        workload=", ".join(sorted(kind.lower() for kind in kinds)) or "operations",
        clients=threads,
        operations=done,
        errors=wrong,
        seconds=seconds,
        digits=digits(told["Op rate"]),
        figures=above_zero(figures),
        notes=errors_among(line, wrong, done, "operations failed") if done else [],
    )
