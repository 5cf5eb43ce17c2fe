"""Reads vegeta's report, as text or as JSON. Pure.

vegeta attacks at a rate that was set, so a run has latency but no throughput. Only a command line in the text with `-rate=0`
shows that it attacked as fast as its workers could.
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
    duration,
    errors_among,
    line_of,
    number,
    set_rate,
)
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, has_json, rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:Requests +\[total, rate(?:, throughput)?\] |Latencies +\[min, mean, |Bytes In +\[total, mean\] )",
    re.MULTILINE,
)
JSON = re.compile(r'^[^\S\n]*\{\s*"latencies"\s*:\s*\{\s*"total"\s*:', re.MULTILINE)
OWN = re.compile(
    r"(?:Requests|Duration|Latencies|Bytes (?:In|Out)|Success|Status Codes) +\[.*|Error Set:|(?:Get|Post|Put|Head|Delete) \".*|\d{3} .*"
)
DATA = JSON_BEGIN
UNLIMITED = re.compile(r"(?:.*[\s/;&|])?vegeta\s.*\s--?rate[= ](?:0|infinity)\b.*")
COMMAND = re.compile(r"(?:.*[\s/;&|])?vegeta\s+attack\b.*")
REQUESTS = re.compile(rf"\s*Requests +\[total, rate(?:, throughput)?\] +(\d+), {NUMBER}(?:, {NUMBER})?\s*")
DURATION = re.compile(r"\s*Duration +\[total, attack, wait\] +(\S+), \S+, \S+\s*")
LATENCIES = re.compile(r"\s*Latencies +\[([\w, ]+)\] +(.*\S)\s*")
CODES = re.compile(r"\s*Status Codes +\[code:count\] +((?:\d+:\d+\s*)+)")
AGAIN = "run `vegeta report -type=json` again"


class Latencies(msgspec.Struct):
    """Nanoseconds."""

    mean: float = 0.0
    p50: float = msgspec.field(name="50th", default=0.0)
    p99: float = msgspec.field(name="99th", default=0.0)


class Report(msgspec.Struct):
    latencies: Latencies
    requests: int
    rate: float
    throughput: float = 0.0
    duration: float = 0.0
    wait: float = 0.0
    status_codes: dict[str, int] = {}
    earliest: datetime.datetime | None = None
    end: datetime.datetime | None = None


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per report."""
    every = rows(lines, "vegeta", complete=JSON_END)
    commands = [row for row in every if COMMAND.fullmatch(row)]
    limited = not (commands and all(UNLIMITED.fullmatch(row) for row in commands))
    if has_json(every):
        found = documents(every, "vegeta", AGAIN, Report, "latencies")
        return [of_report(report, line, limited=limited) for line, report in found]
    readings: list[Reading] = []
    report: Report | None = None
    began = 0
    for at, row in enumerate(every, 1):
        if match := REQUESTS.fullmatch(row):
            readings += [of_report(report, began, limited=limited, whole=False)] if report else []
            began = at
            report = Report(Latencies(), int(match[1]), number(match[2]), number(match[3] or match[2]))
        elif report is None:
            continue
        elif match := DURATION.fullmatch(row):
            report.duration = duration(match[1]) * 1e9
        elif match := LATENCIES.fullmatch(row):
            names, values = match[1].split(", "), match[2].split(", ")
            if len(names) != len(values):
                raise Bad(at, f"{len(values)} latencies for {len(names)} names; import vegeta's whole report")
            named = {name: duration(value) * 1e9 for name, value in zip(names, values, strict=True)}
            report.latencies = Latencies(named.get("mean", 0.0), named.get("50", 0.0), named.get("99", 0.0))
        elif match := CODES.fullmatch(row):
            report.status_codes = {code: int(count) for code, count in (pair.split(":") for pair in match[1].split())}
            readings.append(of_report(report, began, limited=limited))
            report = None
    readings += [of_report(report, began, limited=limited, whole=False)] if report else []
    if not readings:
        raise Bad(
            len(every), "the report has no line 'Requests [total, rate, throughput]'; import vegeta's whole report"
        )
    return readings


def of_report(report: Report, line: int, *, limited: bool, whole: bool = True) -> Reading:
    """Return one run. `limited`: a rate was set, as far as the text shows."""
    latencies = {"mean": report.latencies.mean, "p50": report.latencies.p50, "p99": report.latencies.p99}
    figures = above_zero({f"latency_{name}": value / 1e6 for name, value in latencies.items()})
    if not report.requests:
        raise Bad(line, "no request was sent, so there is nothing to compare")
    wrong = sum(count for code, count in report.status_codes.items() if code == "0" or int(code) >= 400)
    reading = Reading(
        tool="vegeta",
        line=line,
        engine="web",
        workload="requests",
        operations=report.requests,
        errors=wrong,
        seconds=(report.duration + report.wait) / 1e9 if report.wait else report.duration / 1e9,
        figures=({"throughput": report.throughput} if report.throughput > 0 else {}) | figures,
        notes=errors_among(line, wrong, report.requests, "requests failed or were answered with an error"),
    )
    if report.earliest and report.end and report.end.year > 1:
        reading.started, reading.ended, reading.clock = report.earliest.timestamp(), report.end.timestamp(), "utc"
    if not whole:
        reading.notes.append(cut_off(line, "'Status Codes'", figures))
    if limited:
        set_rate(reading)
    return reading
