"""Reads k6's summary, as text or as JSON (`--summary-export`, or `handleSummary`'s data). Pure.

An operation is an HTTP request or, in scripts without any, an iteration. k6 times a request without its connection and its TLS
handshake. Executors with an arrival rate set the rate.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ciphercost.importers.formats import (
    NUMBER,
    Bad,
    Lines,
    above_zero,
    digits,
    duration,
    errors_among,
    line_of,
    number,
    set_rate,
)
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, json_alone, rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(
    r"^[^\S\n]*(?:http_reqs|iterations|iteration_duration|http_req_duration|vus_max)\.{3,}: +\S", re.MULTILINE
)
OBJECT = re.compile(r'^[^\S\n]*\{\s*"(?:root_group|metrics|options|state)"\s*:', re.MULTILINE)
KEY = re.compile(r'"(?:iterations|http_reqs)"\s*:\s*\{')
"""A key of its JSON, which may stand far below the beginning."""
OWN = re.compile(
    r"(?:[✓✗↳█] ?)?[a-z]\w*(?:\{.*\})?\.*: .*|\{ .*\}\.*:.*|HTTP|EXECUTION|NETWORK|GRPC|BROWSER|█ .*|[✓✗↳] .*|checks?.*|default .*|running \(.*"
    r"|(?:execution|script|output|scenarios|web dashboard): .*|\* .*|time=\".*|(?:INFO|WARN|ERRO)\[\d+\].*"
)
DATA = JSON_BEGIN
BEGIN = re.compile(r"\s*execution: local\s*")
METRIC = re.compile(
    r"\s*(?:[✓✗] )?(http_reqs|http_req_duration|http_req_failed|iterations|iteration_duration|vus)\.{2,}: +(.*\S)\s*"
)
TREND = re.compile(r"([\w().]+)=(\S+)")
RATE = re.compile(rf"(\d+)\s+{NUMBER}/s(?:\s.*)?")
FAILED = re.compile(rf"{NUMBER}%\s+(?:✓ (\d+)\s+✗ \d+|(\d+) out of \d+)")
GAUGE = re.compile(r"\d+\s+min=\d+\s+max=(\d+)")
SCENARIO = re.compile(r"\s*\* [^:]+: (.*)")
VUS = re.compile(r"(\d+) looping VUs|shared among (\d+) VUs|for each of (\d+) VUs|Up to (\d+) looping VUs")
ARRIVALS = re.compile(rf"(?:Up to )?{NUMBER} iterations/s for .*")
VALUES = {"avg": "mean", "med": "p50", "p(50)": "p50", "p(99)": "p99"}
WAITING = 2.0
"""A script waits where an iteration takes more than this times its requests."""
AGAIN = "run k6 with --summary-export=FILE again"
Metrics = dict[str, dict[str, float]]


class Export(msgspec.Struct):
    metrics: dict[str, dict[str, Any]]
    options: dict[str, Any] = {}


def recognise(head: str) -> int:
    if line := line_of(MARK, head):
        return line
    begin = OBJECT.search(head)
    return line_of(OBJECT, head) if begin and KEY.search(head, begin.end()) else 0


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run begins with `execution: local` or with a metric that the run before has."""
    every = rows(lines, "k6", complete=JSON_END)
    if json_alone(every, MARK):
        found = documents(every, "k6", AGAIN, Export, "metrics")
        return [reading(of_export(export), line, rate_of(export.options), known=False) for line, export in found]
    readings: list[Reading] = []
    metrics: Metrics = {}
    began, rate, users, known = 0, "", 0, False

    def finish(end: int) -> None:
        nonlocal metrics, began, rate, users, known
        readings.append(reading(metrics, began or 1, rate, end, known=known))
        readings[-1].clients = readings[-1].clients or users
        metrics, began, rate, users, known = {}, 0, "", 0, False

    for at, row in enumerate(every, 1):
        if BEGIN.fullmatch(row):
            if metrics:
                finish(at)
            began = at
        elif (match := SCENARIO.fullmatch(row)) and not metrics:
            known = True
            arrivals, looping = ARRIVALS.search(match[1]), VUS.search(match[1])
            rate = arrivals[1] if arrivals else rate
            users += int(next(filter(None, looping.groups()))) if looping else 0
        elif match := METRIC.fullmatch(row):
            if match[1] in metrics:
                finish(at)
            began = began or at
            metrics[match[1]] = values_of(match[2])
    if metrics or not readings:
        finish(len(every))
    return readings


def values_of(text: str) -> dict[str, float]:
    """Return what one line says of a metric: count and rate, share and number of failures, times in ms, or a maximum."""
    if match := RATE.fullmatch(text):
        return {"count": number(match[1]), "rate": number(match[2]), "digits": float(digits(match[2]))}
    if match := FAILED.fullmatch(text):
        return {"failed": number(match[2] or match[3])}
    if match := GAUGE.fullmatch(text):
        return {"max": number(match[1])}
    return {name: duration(value) * 1e3 for name, value in TREND.findall(text)}


def of_export(export: Export) -> Metrics:
    """Return the metrics of either form of JSON, in which `values` may stand between."""
    metrics: Metrics = {}
    for name, told in export.metrics.items():
        values = told.get("values", told)
        if not isinstance(values, dict):
            continue
        kept = {key: float(value) for key, value in values.items() if isinstance(value, int | float)}
        if name == "http_req_failed" and "passes" in kept:
            kept["failed"] = kept["passes"]
        if "rate" in kept:
            kept["digits"] = float(digits(repr(kept["rate"])))
        metrics[name] = kept
    return metrics


def rate_of(options: dict[str, Any]) -> str:
    """Return the rate that an executor of the script's options sets: a number, `set`, or empty."""
    scenarios = options.get("scenarios")
    for scenario in scenarios.values() if isinstance(scenarios, dict) else ():
        if isinstance(scenario, dict) and str(scenario.get("executor", "")).endswith("arrival-rate"):
            return str(scenario.get("rate", "set"))
    return str(options["rps"]) if options.get("rps") else ""


def reading(metrics: Metrics, line: int, rate: str, end: int = 0, *, known: bool) -> Reading:
    """Return one run. Raises Bad if its rate is missing. `known`: the executors are, so an empty rate means that none was set."""
    of_requests = "http_reqs" in metrics
    counted = metrics.get("http_reqs") or metrics.get("iterations") or {}
    if not {"count", "rate"} <= counted.keys():
        text = f"the run that begins on line {line} has no line 'http_reqs' or 'iterations' with a rate"
        raise Bad(end or line, f"{text}; import k6's whole summary")
    done = int(counted["count"])
    if not done or not counted["rate"] > 0:
        raise Bad(line, "k6 made no request, so there is nothing to compare")
    times = metrics.get("http_req_duration" if of_requests else "iteration_duration", {})
    figures = {"throughput": counted["rate"]}
    figures |= {f"latency_{figure}": times[name] for name, figure in VALUES.items() if name in times}
    wrong = int(metrics.get("http_req_failed", {}).get("failed", 0)) if of_requests else 0
    notes = errors_among(line, wrong, done, "requests failed or were answered with an error")
    iteration = metrics.get("iteration_duration", {}).get("avg", 0.0)
    iterations = metrics.get("iterations", {}).get("count", 0.0)
    if of_requests and not rate and iteration and iterations and times.get("avg", 0.0) > 0:
        share = iteration / (times["avg"] * done / iterations)
        if share > WAITING:
            text = f"an iteration took {share:,.1f} times as long as its requests: the script sleeps, computes or connects in between"
            notes.append(Warning_("script-waits", f"{text}, and throughput depends on that too"))
    result = Reading(
        tool="k6",
        line=line,
        engine="web",
        workload="requests" if of_requests else "iterations",
        clients=int(metrics.get("vus", {}).get("max", 0.0)),
        operations=done,
        errors=wrong,
        seconds=done / counted["rate"],
        digits=int(counted["digits"]),
        figures=above_zero(figures),
        notes=notes,
    )
    if not rate and not known:
        text = "the output does not show its executors: if one sets the arrival rate, throughput is not a result, and only latency counts"
        notes.append(Warning_("rate-hidden", text))
    if rate:
        set_rate(result, rate.removeprefix("set"))
    return result
