"""Reads the output of redis-benchmark and valkey-benchmark: whole, `-q`, or `--csv`. Pure.

Each test (SET, GET …) is a workload of its own.
"""

from __future__ import annotations

import csv
import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TITLE = re.compile(r"====== (.+?) ======\s*")
QUIET = re.compile(
    rf"(?!throughput summary)([A-Za-z_][\w :().\-]*): {NUMBER} requests per second(?:, p50={NUMBER} msec)?\s*"
)
CSV_HEADER = re.compile(r'"test","rps".*')
CSV_ROW = re.compile(r'"[^"]+","\d+\.\d+"(?:,"\d+\.\d+")*')
MARK = re.compile(
    rf"^(?:====== .+ ======\s*$|throughput summary: |{CSV_HEADER.pattern}|{CSV_ROW.pattern}$|{QUIET.pattern}$)",
    re.MULTILINE,
)
DONE = re.compile(rf"(\d+) requests completed in {NUMBER} seconds\s*")
CLIENTS = re.compile(r"(\d+) parallel clients\s*")
FACTORS = {
    "payload": re.compile(r"(\d+) bytes payload\s*"),
    "keep alive": re.compile(r"keep alive: ([02-9]|\d\d+)\s*"),
    "threads": re.compile(r"threads: (\d+)\s*"),
    "cluster nodes": re.compile(r"cluster mode: yes \((\d+) masters\)\s*"),
}
RATE = re.compile(rf"(?:throughput summary: )?{NUMBER} requests per second\s*")
"""Before version 6.2 the rate stands alone."""
LATENCIES = re.compile(r"avg\s+min\s+p50\s+p95\s+p99\s+max\s*")
ERROR = re.compile(r"Error from server: .*", re.IGNORECASE)
FIGURES = {"avg": "latency_mean", "p50": "latency_p50", "p99": "latency_p99"}


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each test. A test ends with the next one's title or with the file."""
    readings: list[Reading] = []
    test: Test | None = None
    columns: list[str] = []
    heading = False
    for line in lines:
        if ERROR.fullmatch(line):
            raise Bad(lines.number, f"'{line.strip()[:60]}': the server refused the commands, so these are not results")
        if match := TITLE.fullmatch(line):
            readings += [test.reading()] if test else []
            test = Test(match[1].strip(), lines.number)
        elif CSV_HEADER.fullmatch(line):
            columns = next(csv.reader([line]))
        elif CSV_ROW.fullmatch(line):
            if lines.cut:
                raise Bad(lines.number, "the last line is cut off; import the whole output")
            readings.append(of_csv(next(csv.reader([line])), columns, lines.number))
        elif match := QUIET.fullmatch(line):
            figures = {"throughput": number(match[2])} | ({"latency_p50": number(match[3])} if match[3] else {})
            readings.append(reading(match[1].strip(), lines.number, figures, digits(match[2])))
        elif test:
            if heading and (values := line.split()) and len(values) == 6:
                named = dict(zip(LATENCIES_NAMES, values, strict=True))
                test.figures |= {FIGURES[name]: number(named[name]) for name in FIGURES} if not lines.cut else {}
            test.take(line)
        heading = bool(LATENCIES.fullmatch(line))
    return readings + ([test.reading()] if test else [])


LATENCIES_NAMES = ("avg", "min", "p50", "p95", "p99", "max")


class Test:
    """One test, while it is read."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.told: dict[str, float] = {}
        self.figures: dict[str, float] = {}
        self.factors: dict[str, str] = {}
        self.digits = 0

    def take(self, line: str) -> None:
        if match := DONE.fullmatch(line):
            self.told |= {"done": number(match[1]), "seconds": number(match[2])}
        elif match := CLIENTS.fullmatch(line):
            self.told["clients"] = number(match[1])
        elif match := RATE.fullmatch(line):
            self.figures["throughput"], self.digits = number(match[1]), digits(match[1])
        for name, pattern in FACTORS.items():
            if match := pattern.fullmatch(line):
                self.factors[name] = match[1]

    def reading(self) -> Reading:
        """Return the test. Raises Bad if its rate is missing."""
        if "throughput" not in self.figures:
            raise Bad(
                self.line, f"the test {self.name} has no 'throughput summary' and is cut off; import the whole output"
            )
        result = reading(self.name, self.line, self.figures, self.digits)
        result.clients, result.operations = int(self.told.get("clients", 0)), int(self.told.get("done", 0))
        result.seconds, result.factors = self.told.get("seconds", 0.0), self.factors
        if self.told.get("done"):
            result.notes += contradictions(self.told["done"], self.told["seconds"], self.figures["throughput"])
        if len(self.figures) == 1:
            result.notes.append(
                Warning_("no-latency", "the output has no latency summary, so only throughput is compared")
            )
        return result


def reading(test: str, line: int, figures: dict[str, float], digits_: int) -> Reading:
    if not figures["throughput"] > 0:
        raise Bad(line, f"the test {test} did no request, so there is nothing to compare")
    return Reading(
        tool="redis-benchmark",
        line=line,
        engine="redis or valkey",
        workload=test,
        digits=digits_,
        figures=above_zero(figures),
    )


def of_csv(words: list[str], columns: list[str], line: int) -> Reading:
    """Return one line of `--csv`. Before version 6.2 it has no header, and only name and rate."""
    if columns and len(words) != len(columns):
        raise Bad(line, f"{len(words)} values for {len(columns)} columns")
    figures = {"throughput": number(words[1])}
    for name, figure in FIGURES.items():
        if f"{name}_latency_ms" in columns:
            figures[figure] = number(words[columns.index(f"{name}_latency_ms")])
    return reading(words[0], line, figures, digits(words[1]))
