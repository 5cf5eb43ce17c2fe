"""Reads h2load's output. h2load prints the TLS version it used, so a run without that line was unencrypted. Pure."""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, duration, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TIME = rf"{NUMBER}(?:us|ms|s|m|h)"
MARK = re.compile(r"^(?:finished in \S+, \S+ req/s|spawning thread #\d+: |time for request: )", re.MULTILINE)
SPAWN = re.compile(r"spawning thread #(\d+): (\d+) total client\(s\)\..*")
TLS = re.compile(r"TLS Protocol: (\S+)\s*")
CIPHER = re.compile(r"Cipher: (\S+)\s*")
PROTOCOL = re.compile(r"Application protocol: (\S+)\s*")
FINISHED = re.compile(rf"finished in ({TIME}), {NUMBER} req/s, \S+\s*")
REQUESTS = re.compile(r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, .*timeout\s*")
REQUEST_TIME = re.compile(rf"time for request:\s+({TIME})\s+({TIME})\s+({TIME})\s+({TIME})\s+{NUMBER}%\s*")
END = re.compile(rf"req/s\s*:\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}%\s*")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with the table's line `req/s`."""
    made: list[Reading] = []
    told: dict[str, float] = {}
    said: dict[str, str] = {}
    began = 0
    for line in lines:
        if line.startswith("starting benchmark...") or (line.startswith("spawning thread #0:") and not began):
            if "rate" in told:
                raise Bad(lines.number, f"the run that begins on line {began} has no end; import h2load's whole output")
            told, said, began = {}, {}, lines.number
        if match := SPAWN.fullmatch(line):
            told["clients"] = told.get("clients", 0.0) + number(match[2])
        elif match := TLS.fullmatch(line):
            said["protocol"] = match[1]
        elif match := CIPHER.fullmatch(line):
            said["cipher"] = match[1]
        elif match := PROTOCOL.fullmatch(line):
            said["application"] = match[1]
        elif match := FINISHED.fullmatch(line):
            began = began or lines.number
            told["seconds"], told["rate"], told["digits"] = duration(match[1]), number(match[3]), digits(match[3])
        elif match := REQUESTS.fullmatch(line):
            told["done"], told["failed"] = number(match[3]), number(match[5])
            told["succeeded"] = number(match[4])
        elif match := REQUEST_TIME.fullmatch(line):
            told["latency_mean"] = duration(match[5]) * 1e3
        elif END.fullmatch(line):
            if not {"rate", "done"} <= told.keys():
                raise Bad(lines.number, "a run ends without 'finished in' or 'requests:'; import h2load's whole output")
            made.append(reading(told, said, began))
            told, said, began = {}, {}, 0
    if began or told:
        raise Bad(
            lines.number,
            f"the run that begins on line {began or 1} is cut off before its table's line 'req/s'; import h2load's whole output",
        )
    return made


def reading(told: dict[str, float], said: dict[str, str], line: int) -> Reading:
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
    # A run that was split may lack its beginning, which names the TLS version.
    scheme = "https" if "protocol" in said else "http" if "application" in said else ""
    return Reading(
        tool="h2load",
        line=line,
        engine="web",
        workload=f"requests, {said['application'].replace('h2c', 'h2')}" if "application" in said else "requests",
        scheme=scheme,
        encryption={name: said[name] for name in ("protocol", "cipher") if name in said},
        clients=int(told.get("clients", 0)),
        operations=int(told["done"]),
        errors=int(told["failed"]),
        seconds=told["seconds"],
        digits=int(told["digits"]),
        figures={"throughput": told["rate"]}
        | ({"latency_mean": told["latency_mean"]} if told.get("latency_mean") else {}),
        notes=notes,
    )
