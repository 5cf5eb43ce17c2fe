"""Reads fortio's results, as text or as JSON (`-json`), over HTTP, gRPC, TCP and UDP. Pure.

A run at a set rate (`-qps`) has latency but no throughput. fortio prints its address, so http or https is known.
"""

from __future__ import annotations

import datetime
import re

import msgspec

from ciphercost.importers.formats import (
    NUMBER,
    Bad,
    Lines,
    above_zero,
    cut_off,
    digits,
    duration,
    errors_among,
    line_of,
    number,
    set_rate,
)
from ciphercost.importers.formats._http import addressed
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, json_alone, rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:Fortio \S+ running at |Aggregated Function Time : count \d|All done \d+ calls |Ended after \S+ : \d+ calls\. qps=)",
    re.MULTILINE,
)
JSON = re.compile(r'^[^\S\n]*\{\s*"RunType"\s*:\s*"', re.MULTILINE)
DATA = JSON_BEGIN
OWN = re.compile(
    r"Fortio .*|Start(?:ing|ed) .*|Ended after .*|Aggregated .*|# (?:range|target|Socket).*|>=? .*|Sockets used:.*|Uniform:.*|IP addresses.*"
    r"|Code +.*|Response .*|All done .*|Error cases.*|Connection .*|Health .*|\d\d:\d\d:\d\d.* [A-Z] .*|\{\"ts\":.*|jitter:.*|Successfully .*"
)
RUNNING = re.compile(rf"\s*Fortio (\S+) running at (?:(max)|{NUMBER}) queries per second, .*?: (\S+)\s*")
STARTING = re.compile(rf"\s*Starting at (?:(max)|{NUMBER}) qps with (\d+) thread\(s\) .*")
ENDED = re.compile(rf"\s*Ended after (\S+) : (\d+) calls\. qps={NUMBER}\s*")
TIME = re.compile(rf"\s*Aggregated Function Time : count (\d+) avg {NUMBER} \+/- .*")
TARGET = re.compile(rf"\s*# target (50|99)% {NUMBER}\s*")
OTHER = re.compile(r"\s*(?:Error cases|Aggregated (?!Function Time)|Connection time|Response .*) ?.*")
CODE = re.compile(r"\s*Code +(-?\w+) : (\d+) \(.*\)\s*")
END = re.compile(rf"\s*All done (\d+) calls .*?{NUMBER} ms avg, {NUMBER} qps\s*")
GOOD = re.compile(r"[23]\d\d|OK|SERVING|0")
AGAIN = "run fortio with -json again"


class Percentile(msgspec.Struct, rename="pascal"):
    percentile: float
    value: float


class Histogram(msgspec.Struct, rename="pascal"):
    """Seconds."""

    count: int
    avg: float
    percentiles: list[Percentile] | None = None


class Result(msgspec.Struct, rename="pascal"):
    duration_histogram: Histogram
    actual_qps: float = msgspec.field(name="ActualQPS")
    actual_duration: float
    """Nanoseconds."""
    requested_qps: str = msgspec.field(name="RequestedQPS", default="max")
    num_threads: int = 0
    version: str = ""
    ret_codes: dict[str, int] | None = None
    url: str = msgspec.field(name="URL", default="")
    destination: str = ""
    start_time: datetime.datetime | None = None


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run."""
    every = rows(lines, "fortio", complete=JSON_END)
    if json_alone(every, MARK):
        return [
            of_result(result, line) for line, result in documents(every, "fortio", AGAIN, Result, "DurationHistogram")
        ]
    readings: list[Reading] = []
    run = Run(0)
    for at, row in enumerate(every, 1):
        if match := RUNNING.fullmatch(row):
            readings += [run.reading(at)] if run.told else []
            run = Run(at)
            run.version, run.url = match[1], match[4]
        elif run.take(row, at):
            readings.append(run.reading(at, whole=True))
            run = Run(0)
    if run.told or not readings:
        readings.append(run.reading(len(every)))
    return readings


class Run:
    """One run, while it is read as text."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.version = self.url = self.rate = ""
        self.told: dict[str, float] = {}
        self.codes: dict[str, int] = {}
        self.digits = 0
        self.of_calls = False
        """The lines below are quantiles of the calls' times, not of another histogram."""

    def take(self, row: str, at: int) -> bool:
        """Process a line. Return whether it is the last one of a run."""
        told = self.told
        if match := STARTING.fullmatch(row):
            self.rate = match[1] or match[2]
            told["threads"] = number(match[3])
        elif match := ENDED.fullmatch(row):
            told |= {"seconds": duration(match[1]), "calls": number(match[2]), "rate": number(match[3])}
            self.digits = digits(match[3])
        elif match := TIME.fullmatch(row):
            self.of_calls = True
            told |= {"calls": number(match[1]), "latency_mean": number(match[2]) * 1e3}
        elif OTHER.fullmatch(row):
            self.of_calls = False
        elif self.of_calls and (match := TARGET.fullmatch(row)):
            told[f"latency_p{match[1]}"] = number(match[2]) * 1e3
        elif match := CODE.fullmatch(row):
            self.codes[match[1]] = self.codes.get(match[1], 0) + int(match[2])
        if told:
            self.line = self.line or at
        return bool(END.fullmatch(row))

    def reading(self, end: int, *, whole: bool = False) -> Reading:
        """Return the run. Raises Bad if its rate is missing."""
        told = self.told
        if "rate" not in told:
            raise Bad(
                end,
                f"the run that begins on line {self.line or 1} has no line 'Ended after'; import fortio's whole output",
            )
        figures = {"throughput": told["rate"]} | {
            name: value for name, value in told.items() if name.startswith("latency_")
        }
        reading = _reading(self.line, figures, int(told["calls"]), told["seconds"], self.codes, self.url)
        reading.version, reading.digits, reading.clients = self.version, self.digits, int(told.get("threads", 0))
        if not whole:
            reading.notes.append(cut_off(self.line, "'All done'", figures))
        if self.rate != "max":
            set_rate(reading, self.rate)
        return reading


def of_result(result: Result, line: int) -> Reading:
    times = result.duration_histogram
    quantiles = {each.percentile: each.value for each in times.percentiles or []}
    figures = {"throughput": result.actual_qps, "latency_mean": times.avg * 1e3}
    figures |= {f"latency_p{name}": quantiles[name] * 1e3 for name in (50, 99) if name in quantiles}
    url = result.url or result.destination
    reading = _reading(line, figures, times.count, result.actual_duration / 1e9, result.ret_codes or {}, url)
    reading.version, reading.clients, reading.digits = (
        result.version,
        result.num_threads,
        digits(repr(result.actual_qps)),
    )
    if result.start_time:
        reading.started = result.start_time.timestamp()
        reading.ended, reading.clock = reading.started + reading.seconds, "utc"
    if result.requested_qps != "max":
        set_rate(reading, result.requested_qps)
    return reading


def _reading(
    line: int, figures: dict[str, float], calls: int, seconds: float, codes: dict[str, int], url: str
) -> Reading:
    if not calls or not figures["throughput"] > 0:
        raise Bad(line, "fortio made no call, so there is nothing to compare")
    wrong = sum(count for code, count in codes.items() if not GOOD.fullmatch(code))
    workload, scheme = addressed(url, "calls")
    return Reading(
        tool="fortio",
        line=line,
        engine="web",
        workload=workload,
        scheme=scheme,
        operations=calls,
        errors=wrong,
        seconds=seconds,
        figures=above_zero(figures),
        notes=errors_among(line, wrong, calls, "calls failed or were answered with an error"),
    )
