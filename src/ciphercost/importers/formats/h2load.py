"""Reads h2load's output. h2load prints the TLS version it used, so a run without that line was unencrypted. Pure.

Up to 1.68 its table has the mean in the third column; from 1.69 on it has median, p95, p99 and TTFB too.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, duration, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TIME = rf"{NUMBER}(?:us|ms|s|m|h)"
MARK = re.compile(
    r"^(?:finished in \S+, \S+ req/s|spawning thread #\d+: |time for request: |TLS Protocol: TLS)", re.MULTILINE
)
SPAWN = re.compile(r"spawning thread #(\d+): (\d+) total client\(s\)\..*")
TLS = re.compile(r"TLS Protocol: (\S+)\s*")
CIPHER = re.compile(r"Cipher: (\S+)\s*")
PROTOCOL = re.compile(r"Application protocol: (\S+)\s*")
FINISHED = re.compile(rf"finished in ({TIME}), {NUMBER} req/s, \S+\s*")
REQUESTS = re.compile(r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, .*timeout\s*")
OLD, NEW = ("min", "max", "mean", "sd"), ("min", "max", "median", "p95", "p99", "mean", "sd")
FIGURES = {"mean": "latency_mean", "median": "latency_p50", "p99": "latency_p99"}
REQUEST_TIME = re.compile(rf"(?:time for )?request\s*:((?:\s+{TIME})+)\s+{NUMBER}%\s*")
END = re.compile(rf"req/s\s*:(?:\s+{NUMBER})+?\s+{NUMBER}%\s*")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with the table's line `req/s`, with the next run's first line, or with the file."""
    readings: list[Reading] = []
    told: dict[str, float] = {}
    connection: dict[str, str] = {}
    began = 0
    for line in lines:
        if line.startswith("starting benchmark...") or (line.startswith("spawning thread #0:") and not began):
            if "rate" in told:
                readings.append(reading(told, connection, began, lines.number, whole=False))
            told, connection, began = {}, {}, lines.number
        if match := SPAWN.fullmatch(line):
            told["clients"] = told.get("clients", 0.0) + number(match[2])
        elif match := TLS.fullmatch(line):
            connection["protocol"] = match[1]
            began = began or lines.number
        elif match := CIPHER.fullmatch(line):
            connection["cipher"] = match[1]
        elif match := PROTOCOL.fullmatch(line):
            connection["application"] = match[1]
        elif match := FINISHED.fullmatch(line):
            began = began or lines.number
            told["seconds"], told["rate"], told["digits"] = duration(match[1]), number(match[3]), digits(match[3])
        elif match := REQUESTS.fullmatch(line):
            told["done"], told["failed"] = number(match[3]), number(match[5])
            told["succeeded"] = number(match[4])
        elif match := REQUEST_TIME.fullmatch(line):
            words = match[1].split()
            columns = NEW if len(words) == len(NEW) else OLD
            if len(words) != len(columns):
                raise Bad(
                    lines.number,
                    f"{len(words)} times of a request; h2load prints {len(OLD)} or, from 1.69 on, {len(NEW)}",
                )
            named = dict(zip(columns, words, strict=True))
            told |= {figure: duration(named[name]) * 1e3 for name, figure in FIGURES.items() if name in named}
        elif END.fullmatch(line):
            readings.append(reading(told, connection, began, lines.number))
            told, connection, began = {}, {}, 0
    if began or told:
        readings.append(reading(told, connection, began or 1, lines.number, whole=False))
    return readings


def reading(told: dict[str, float], connection: dict[str, str], line: int, end: int, *, whole: bool = True) -> Reading:
    """Return one run, which ends on line `end`. Raises Bad if its rate or its number of requests is missing.

    `whole`: whether its table is complete.
    """
    if not {"rate", "done"} <= told.keys():
        missing = "'finished in'" if "rate" not in told else "'requests:'"
        raise Bad(
            end,
            f"the run that begins on line {line} has no line {missing}, which has its result; import h2load's whole output",
        )
    if not told["succeeded"] or not told["rate"]:
        raise Bad(
            line, "no request succeeded, so there is nothing to compare (for unencrypted HTTP/1.1 h2load needs --h1)"
        )
    notes = contradictions(told["done"], told["seconds"], told["rate"])
    if told["failed"] > told["succeeded"]:
        text = f"{told['failed']:,.0f} of {told['done']:,.0f} answers were errors"
        raise Bad(line, f"{text}, so this is the speed of error pages; fix the address and run it again")
    if told["failed"]:
        notes.append(Warning_("errors", f"{told['failed']:,.0f} requests failed, {told['succeeded']:,.0f} succeeded"))
    if not whole:
        lacks = "" if told.get("latency_mean") else ", so it has no latency"
        notes.append(
            Warning_("cut-off", f"the run that begins on line {line} is cut off before its table's line 'req/s'{lacks}")
        )
    # A run that was split may lack its beginning, which names the TLS version.
    scheme = "https" if "protocol" in connection else "http" if "application" in connection else ""
    return Reading(
        tool="h2load",
        line=line,
        engine="web",
        workload=f"requests, {connection['application'].replace('h2c', 'h2')}"
        if "application" in connection
        else "requests",
        scheme=scheme,
        encryption={name: connection[name] for name in ("protocol", "cipher") if name in connection},
        clients=int(told.get("clients", 0)),
        operations=int(told["done"]),
        errors=int(told["failed"]),
        seconds=told["seconds"],
        digits=int(told["digits"]),
        figures={"throughput": told["rate"]} | {name: told[name] for name in FIGURES.values() if told.get(name)},
        notes=notes,
    )
