"""Reads the lines of Go's `testing` benchmarks (`go test -bench`). Pure.

A line is a run: `-count 10` makes ten. Go prints time per operation, so throughput is its inverse, for all goroutines together. It is
a latency only where one goroutine works, which the line does not say.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, line_of, number
from ciphercost.importers.formats._names import state_arms
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading

LINE = re.compile(rf"\s*(Benchmark\S*?)(?:-(\d+))?\s+(\d+)\s+{NUMBER} ns/op\b(.*)")
MARK = re.compile(r"^[^\S\n]*(?:goos: \w+\s*$|Benchmark\S+\s+\d+\s+[\d.]+ ns/op)", re.MULTILINE)
OWN = re.compile(r"Benchmark.*|(?:goos|goarch|pkg|cpu): .*|(?:PASS|FAIL|ok|exit status|---|===).*")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per line of a benchmark."""
    every = rows(lines, "go test")
    readings = [reading(match, at) for at, row in enumerate(every, 1) if (match := LINE.fullmatch(row))]
    if not readings:
        raise Bad(
            len(every), "the output has no line of a benchmark ('BenchmarkX-8  1000  1234 ns/op'); run go test -bench ."
        )
    state_arms(readings, [reading.workload for reading in readings])
    return readings


def reading(match: re.Match[str], line: int) -> Reading:
    name, count, time = match[1].removeprefix("Benchmark").strip("/_") or match[1], int(match[3]), number(match[4])
    if not time > 0 or not count:
        raise Bad(line, f"the benchmark {name} took no time, so there is nothing to compare")
    return Reading(
        tool="go-test",
        line=line,
        engine="code",
        workload=name,
        factors={"procs": match[2]} if match[2] else {},
        operations=count,
        seconds=count * time / 1e9,
        digits=digits(match[4]),
        figures={"throughput": 1e9 / time},
    )
