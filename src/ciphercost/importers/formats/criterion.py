"""Reads what criterion prints of each Rust benchmark: `name   time:   [low estimate high]`. Pure.

criterion prints time per iteration, so throughput is its inverse. Its interval is of the samples within this run, so it is no interval
over runs and is not used.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, SECONDS, Bad, Lines, digits, line_of, number
from ciphercost.importers.formats._names import state_arms
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading

UNITS = {"ps": 1e-12} | SECONDS
UNIT = r"(?:ps|ns|us|µs|μs|ms|s)"
TIME = re.compile(rf"(.*?)time:\s+\[{NUMBER} {UNIT} {NUMBER} ({UNIT}) {NUMBER} {UNIT}\]\s*")
MARK = re.compile(rf"^(?:[^\S\n]*|.*\s)time:\s+\[[\d.]+ {UNIT} [\d.]+ {UNIT} [\d.]+ {UNIT}\]", re.MULTILINE)
BEGIN = re.compile(r"\s*Benchmarking (.+?)(?:: (?:Warming up|Collecting|Analyzing).*)?\s*")
OWN = re.compile(
    r"Benchmarking .*|.*(?:time|thrpt|change):.*|Found \d+ outliers.*|\d+ \([\d.]+%\) .*|Performance has .*|No change in .*|Change within .*"
    r"|Gnuplot .*|running \d+ tests?|test result: .*|[\w./ :()-]{24,}"
)
"""A name of more than 23 letters stands on a line of its own."""
NOT_NAMES = re.compile(
    r"\s*(?:time:|thrpt:|change:|Found \d|\d+ \(|Performance|No change|Change within|Gnuplot|Warning:).*"
)


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per benchmark. A long name stands on the line above its time."""
    every = rows(lines, "criterion")
    readings: list[Reading] = []
    above = ""
    for at, row in enumerate(every, 1):
        if match := TIME.fullmatch(row):
            name = match[1].strip() or above
            if not name:
                raise Bad(at, "a time without the name of its benchmark; import criterion's whole output")
            readings.append(reading(name, number(match[3]), match[4], digits(match[3]), at))
            above = ""
        elif match := BEGIN.fullmatch(row):
            above = match[1].strip()
        elif row.strip() and not NOT_NAMES.fullmatch(row):
            above = row.strip()
    if not readings:
        raise Bad(len(every), "the output has no line 'time: [… … …]'; import criterion's whole output")
    state_arms(readings, [reading.workload for reading in readings])
    return readings


def reading(name: str, time: float, unit: str, digits_: int, line: int) -> Reading:
    seconds = time * UNITS[unit]
    if not seconds > 0:
        raise Bad(line, f"the benchmark {name[:60]} took no time, so there is nothing to compare")
    return Reading(
        tool="criterion",
        line=line,
        engine="code",
        workload=name,
        digits=digits_,
        figures={"throughput": 1 / seconds, "latency_mean": seconds * 1e3},
    )
