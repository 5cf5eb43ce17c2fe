"""Reads the output of Apache Kafka's kafka-producer-perf-test: its summary, the last line of a run. Pure.

With `--warmup-records` the tool prints a second summary, of the steady state, which then counts. The clock of the
summary starts after the producer was made, and includes the first connection.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

WINDOW = re.compile(
    rf"\d+ records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max latency\.\s*"
)
SUMMARY = re.compile(
    rf"(\d+)( steady state)? records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, "
    rf"{NUMBER} ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th\.\s*"
)
MARK = re.compile(r"^\d+(?: steady state)? records sent, \S+ records/sec \(", re.MULTILINE)
ERROR = re.compile(r"org\.apache\.kafka\.\S+?(?:Exception|Error)\b:?.*")
"""The first line of the stack trace that the tool prints for each record that failed."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run, from its summary."""
    readings: list[Reading] = []
    began = failed = 0
    for line in lines:
        if match := SUMMARY.fullmatch(line):
            run = reading(match, began or lines.number, failed)
            if match[2] and readings:
                run.line, run.errors = readings[-1].line, readings[-1].errors
                readings[-1] = run
            else:
                readings.append(run)
            began = failed = 0
        elif WINDOW.fullmatch(line):
            began = began or lines.number
        elif ERROR.fullmatch(line):
            failed += 1
    if began or not readings:
        raise Bad(
            lines.number,
            f"the run that begins on line {began or 1} has no summary (the line that ends with '99.9th.'); import the tool's whole output",
        )
    return readings


def reading(match: re.Match[str], line: int, failed: int) -> Reading:
    """Return the run of this summary. Raises Bad if it sent nothing, or if most records failed."""
    sent, rate, mean = (number(match[group]) for group in (1, 3, 5))
    if not sent or not rate > 0:
        raise Bad(line, "no record was sent, so there is nothing to compare")
    if failed > sent:
        raise Bad(
            line,
            f"{failed:,} records failed and {sent:,.0f} were sent, so this is the speed of errors; fix the cause and run it again",
        )
    # Whole milliseconds: a 0 is no time.
    times = {"latency_mean": mean, "latency_p50": number(match[7]), "latency_p99": number(match[9])}
    notes = contradictions(sent, sent / rate, rate)
    if failed:
        notes.append(Warning_("errors", f"{failed:,} records failed, beside {sent:,.0f} that were sent"))
    return Reading(
        tool="kafka-producer-perf-test",
        line=line,
        engine="kafka",
        workload="produce",
        operations=int(sent),
        errors=failed,
        seconds=sent / rate,
        digits=digits(match[3]),
        figures={"throughput": rate} | above_zero(times),
        notes=notes,
    )
