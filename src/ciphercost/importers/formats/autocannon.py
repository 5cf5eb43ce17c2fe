"""Reads autocannon's tables, or its JSON (`--json`). Pure.

Rates are sampled once per second. An overall rate that was set (`-R`) is not in the output, but on a command line above it.
"""

from __future__ import annotations

import datetime
import re

import msgspec

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, cut_off, digits, errors_among, line_of, number
from ciphercost.importers.formats._http import addressed
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, has_json, rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:Running \S+ test @ \S+\s*\n\d+ (?:connections|workers)\b|[│|] Req/Sec +[│|] |Req/Bytes counts sampled once per second)",
    re.MULTILINE,
)
OBJECT = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
KEYS = (re.compile(r'"2xx"\s*:'), re.compile(r'"throughput"\s*:\s*\{'))
"""Keys of its JSON, which may stand far below the beginning."""
DATA = JSON_BEGIN
OWN = re.compile(
    r"Running .*|\d+ connections.*|[│├┌└].*|Req/Bytes .*|# of samples.*|[\d.]+k? (?:requests|errors|2xx|non).*"
)
RUNNING = re.compile(r"\s*Running \S+ test @ (\S+)\s*")
CONNECTIONS = re.compile(r"\s*(\d+) connections\b.*")
CELLS = re.compile(r"\s*[│|] (Stat|Latency|Req/Sec) +[│|](.*)[│|]\s*")
TOTAL = re.compile(rf"\s*{NUMBER}(k|M)? requests in {NUMBER}s, .* read\s*")
GOOD = re.compile(r"\s*(\d+) 2xx responses, (\d+) non 2xx responses\s*")
ERRORS = re.compile(rf"\s*{NUMBER}(k|M)? errors \({NUMBER}(k|M)? timeouts\)\s*")
TIMES = {"": 1.0, "k": 1e3, "M": 1e6}
AGAIN = "run autocannon with --json again"


class Latency(msgspec.Struct):
    """Milliseconds."""

    average: float
    p50: float = 0.0
    p99: float = 0.0


class Requests(msgspec.Struct):
    average: float
    total: int


class Result(msgspec.Struct):
    latency: Latency
    requests: Requests
    duration: float
    connections: int = 0
    errors: int = 0
    non2xx: int = 0
    good: int = msgspec.field(name="2xx", default=0)
    url: str = ""
    start: datetime.datetime | None = None
    finish: datetime.datetime | None = None


def recognise(head: str) -> int:
    if line := line_of(MARK, head):
        return line
    begin = OBJECT.search(head)
    return line_of(OBJECT, head) if begin and all(key.search(head, begin.end()) for key in KEYS) else 0


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run, which ends with `… requests in …`."""
    every = rows(lines, "autocannon", complete=JSON_END)
    if not any(row.startswith(("Running ", "│", "|")) for row in every) and has_json(every):
        found = documents(every, "autocannon", AGAIN, Result, "requests")
        return [reading(result, line, digits(repr(result.requests.average))) for line, result in found]
    readings: list[Reading] = []
    run = Run()
    for at, row in enumerate(every, 1):
        if match := RUNNING.fullmatch(row):
            readings += [run.reading(at)] if run.line else []
            run = Run(at, match[1])
        elif run.take(row, at):
            readings.append(run.reading(at, whole=True))
            run = Run()
        elif readings and not run.line and (match := ERRORS.fullmatch(row)):
            lost = number(match[1]) * TIMES[match[2] or ""]
            readings[-1].errors += int(lost)
            readings[-1].notes += errors_among(
                readings[-1].line,
                readings[-1].errors,
                readings[-1].operations + lost,
                "requests failed or were answered with an error",
            )
    if run.line or not readings:
        readings.append(run.reading(len(every)))
    return readings


class Run:
    """One run, while it is read as text."""

    def __init__(self, line: int = 0, url: str = "") -> None:
        self.line, self.url = line, url
        self.columns: list[str] = []
        self.figures: dict[str, float] = {}
        self.told: dict[str, float] = {}
        self.digits = 0

    def take(self, row: str, at: int) -> bool:
        """Process a line. Return whether it is the last one of a run."""
        if match := CONNECTIONS.fullmatch(row):
            self.told["connections"] = number(match[1])
        elif match := CELLS.fullmatch(row):
            self.line = self.line or at
            cells = [cell.strip() for cell in re.split(r"[│|]", match[2])]
            if match[1] == "Stat":
                self.columns = cells
            elif len(cells) == len(self.columns):
                named = dict(zip(self.columns, cells, strict=True))
                if match[1] == "Latency":
                    for name, figure in (("Avg", "latency_mean"), ("50%", "latency_p50"), ("99%", "latency_p99")):
                        self.figures[figure] = number(named[name].removesuffix(" ms")) if name in named else 0.0
                elif "Avg" in named:
                    self.figures["throughput"], self.digits = (
                        number(named["Avg"].replace(",", "")),
                        digits(named["Avg"]),
                    )
        elif match := GOOD.fullmatch(row):
            self.told["wrong"] = number(match[2])
        elif match := TOTAL.fullmatch(row):
            self.told["requests"] = number(match[1]) * TIMES[match[2] or ""]
            self.told["seconds"] = number(match[3])
            return True
        return False

    def reading(self, end: int, *, whole: bool = False) -> Reading:
        """Return the run. Raises Bad if its rate is missing."""
        if "throughput" not in self.figures:
            raise Bad(
                end,
                f"the run that begins on line {self.line or 1} has no row 'Req/Sec'; import autocannon's whole output (2>&1)",
            )
        latency = Latency(*(self.figures.get(f"latency_{name}", 0.0) for name in ("mean", "p50", "p99")))
        result = Result(
            latency,
            Requests(self.figures["throughput"], int(self.told.get("requests", 0))),
            self.told.get("seconds", 0.0),
            int(self.told.get("connections", 0)),
            non2xx=int(self.told.get("wrong", 0)),
            url=self.url,
        )
        reading_ = reading(result, self.line, self.digits, counted=whole)
        if not whole:
            reading_.notes.append(cut_off(self.line, "'requests in'", reading_.figures))
        return reading_


def reading(result: Result, line: int, digits_: int, *, counted: bool = True) -> Reading:
    """Return one run. `counted`: its number of requests is known."""
    done, wrong = result.requests.total, result.errors + result.non2xx
    if not result.requests.average > 0 or (counted and not done):
        raise Bad(line, "no request was answered, so there is nothing to compare")
    latencies = {"mean": result.latency.average, "p50": result.latency.p50, "p99": result.latency.p99}
    workload, scheme = addressed(result.url, "requests")
    timed = result.start is not None and result.finish is not None
    return Reading(
        tool="autocannon",
        line=line,
        engine="web",
        workload=workload,
        scheme=scheme,
        clients=result.connections,
        operations=done,
        errors=wrong,
        seconds=result.duration,
        started=result.start.timestamp() if timed and result.start else None,
        ended=result.finish.timestamp() if timed and result.finish else None,
        clock="utc" if timed else "",
        digits=digits_,
        figures={"throughput": result.requests.average}
        | above_zero({f"latency_{name}": value for name, value in latencies.items()}),
        notes=errors_among(line, wrong, done + result.errors, "requests failed or were answered with an error")
        if counted
        else [],
    )
