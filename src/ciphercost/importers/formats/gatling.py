"""Reads Gatling's `Global Information`, as the console prints it, or `global_stats.json` and `stats.json` of its report. Pure.

Times are in ms. Injection profiles often set the rate, and the output does not show it.
"""

from __future__ import annotations

import re

import msgspec

from ciphercost.importers.formats import Bad, Lines, above_zero, cut_off, digits, errors_among, line_of
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, json_alone, rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:---- Global Information -|> (?:mean requests/sec|mean throughput \(rps\)) )", re.MULTILINE
)
JSON = re.compile(r'^[^\S\n]*\{[^{}]*(?:"stats"\s*:\s*\{[^{}]*)?"numberOfRequests"\s*:\s*\{', re.MULTILINE)
DATA = JSON_BEGIN
OWN = re.compile(
    r"=+|---- .*|> .*|\[[ #x-]+\].*|Simulation .*|(?:Reports|Parsing|Generating|Please open).*|\d{4}-\d\d-\d\d \d\d:.*|\w+: \d.*|\d\d:\d\d:\d\d\.\d+ \[.*"
)
BEGIN = re.compile(r"\s*---- Global Information -.*")
COUNT = r"([\d.,\u202f\u00a0']+|-)"
OLD = re.compile(rf"\s*> (.+?)\s+{COUNT}\s+\(OK={COUNT}\s+KO={COUNT}\s*\)\s*")
NEW = re.compile(rf"\s*> (.+?)\s+\|\s*{COUNT}\s*\|\s*{COUNT}\s*\|\s*{COUNT}\s*\|?\s*")
QUANTILE = re.compile(r"(?:response time )?(50|99)th percentile(?: \(ms\))?")
REQUESTS, RATES = "request count", ("mean requests/sec", "mean throughput (rps)")
AGAIN = "import the report's whole js/global_stats.json"


class Figure(msgspec.Struct):
    """A figure of all requests, of those that succeeded, and of those that failed."""

    total: float | str
    ok: float | str
    ko: float | str

    def of_all(self) -> float:
        """Return the figure of all requests. Newer reports write numbers as text, and `-` for none."""
        return _number(str(self.total))


class Stats(msgspec.Struct, rename="camel"):
    number_of_requests: Figure
    mean_number_of_requests_per_second: Figure
    mean_response_time: Figure | None = None
    percentiles1: Figure | None = None
    """The 50th, unless Gatling's configuration says otherwise."""
    percentiles4: Figure | None = None
    """The 99th, unless Gatling's configuration says otherwise."""


class Group(msgspec.Struct):
    stats: Stats


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run."""
    every = rows(lines, "Gatling", complete=JSON_END)
    if json_alone(every, MARK):
        if any('"stats"' in row for row in every):
            return [of_stats(group.stats, line) for line, group in documents(every, "Gatling", AGAIN, Group, "stats")]
        found = documents(every, "Gatling", AGAIN, Stats, "numberOfRequests")
        return [of_stats(stats, line) for line, stats in found]
    readings: list[Reading] = []
    told: dict[str, tuple[str, str, str]] = {}
    began = 0
    for at, row in enumerate(every, 1):
        if BEGIN.fullmatch(row):
            if began and told:
                readings.append(of_text(told, began, at))
            told, began = {}, at
        elif began and (match := OLD.fullmatch(row) or NEW.fullmatch(row)):
            told[match[1]] = (match[2], match[3], match[4])
            if match[1] in RATES:
                readings.append(of_text(told, began, at))
                told, began = {}, 0
    if began or not readings:
        readings.append(of_text(told, began or 1, len(every)))
    return readings


def of_text(told: dict[str, tuple[str, str, str]], line: int, end: int) -> Reading:
    """Return one run of the console's output. Raises Bad if its rate is missing."""
    rate = next((told[name] for name in RATES if name in told), None)
    if rate is None or REQUESTS not in told:
        missing = REQUESTS if REQUESTS not in told else RATES[0]
        raise Bad(end, f"the run that begins on line {line} has no line '> {missing}'; import Gatling's whole output")
    figures = {}
    for name, values in told.items():
        if name.startswith("mean response time"):
            figures["latency_mean"] = _number(values[0])
        elif match := QUANTILE.fullmatch(name):
            figures[f"latency_p{match[1]}"] = _number(values[0])
    reading = _reading(line, _number(told[REQUESTS][0]), _number(told[REQUESTS][2]), _number(rate[0]), figures)
    reading.digits = digits(rate[0])
    if "latency_mean" not in figures:
        reading.notes.append(cut_off(line, "its times", figures))
    return reading


def of_stats(stats: Stats, line: int) -> Reading:
    times = {"mean": stats.mean_response_time, "p50": stats.percentiles1, "p99": stats.percentiles4}
    figures = {f"latency_{name}": figure.of_all() for name, figure in times.items() if figure}
    requests, rate = stats.number_of_requests, stats.mean_number_of_requests_per_second
    reading = _reading(line, requests.of_all(), _number(str(requests.ko)), rate.of_all(), figures)
    reading.digits = digits(str(rate.total))
    return reading


def _reading(line: int, done: float, wrong: float, rate: float, figures: dict[str, float]) -> Reading:
    if not done or not rate > 0:
        raise Bad(line, "Gatling made no request, so there is nothing to compare")
    return Reading(
        tool="gatling",
        line=line,
        engine="web",
        workload="requests",
        operations=int(done),
        errors=int(wrong),
        seconds=done / rate,
        figures={"throughput": rate} | above_zero(figures),
        notes=errors_among(line, wrong, done, "requests failed"),
    )


def _number(text: str) -> float:
    """Parse `1,234.5` or `-` (none). Gatling writes commas between thousands."""
    return 0.0 if text == "-" else float(re.sub(r"[,\u202f\u00a0']", "", text))
