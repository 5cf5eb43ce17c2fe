"""Reads the output of wrk and wrk2, with or without `--latency`. Pure."""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, duration, line_of, number, set_rate
from ciphercost.importers.formats._http import contradictions, path
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r"^(?:Running \S+ test @ (?!.*\n\d+ (?:connections|workers)\b)|Requests/sec: )", re.MULTILINE)
"""autocannon begins with the same line, and has its connections below it."""
RUNNING = re.compile(r"Running (\S+) test @ (\S+)\s*")
CONNECTIONS = re.compile(r"\s*\d+ threads and (\d+) connections\s*")
LATENCY = re.compile(rf"\s*Latency\s+({NUMBER}(?:us|ms|s|m|h))\s+.*%\s*")
QUANTILE = re.compile(rf"\s*(50|99)(?:\.0+)?%\s+({NUMBER}(?:us|ms|s|m|h))\s*")
REQUESTS = re.compile(rf"\s*(\d+) requests in ({NUMBER}(?:us|ms|s|m|h)), .* read\s*")
NON_2XX = re.compile(r"\s*Non-2xx or 3xx responses: (\d+)\s*")
SOCKET = re.compile(r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*")
RATE = re.compile(rf"Requests/sec:\s+{NUMBER}\s*")
WHOLE_RATE = re.compile(r"Requests/sec:\s+\d+[.,]\d\d\s*")
"""wrk prints two decimals, so a last line without its end is complete with them."""
STAMP = re.compile(r"(STARTTIME|ENDTIME) (1\d{9})\s*")
"""Lines that TechEmpower's script prints below each run."""
SECTION = re.compile(r"\s*Latency Distribution(?: \(HdrHistogram - (.*)\))?\s*")
"""wrk2 prints two distributions: recorded latencies, from when a request was due, and uncorrected ones, from when it
was sent.
"""
CALIBRATION = re.compile(r"\s*Thread calibration: .*")
MODE = re.compile(r"\s*Mode: (?:constant rate (\d+) req/s|closed loop).*")
"""Forks of wrk2 that work without a rate print which mode they used."""
END = re.compile(r"Transfer/sec:\s+\S+B\s*")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with `Transfer/sec`, with the next run's first line, or with the file."""
    readings: list[Reading] = []
    told: dict[str, float] = {}
    url, began, status, lost = "", 0, 0, 0
    rate, recorded = "", True

    def finish(end: int, *, whole: bool = False) -> None:
        nonlocal told, url, began, status, lost, rate, recorded
        if not {"rate", "requests"} <= told.keys():
            missing = "'Requests/sec'" if "rate" not in told else "'requests in'"
            raise Bad(end, f"the run that begins on line {began or 1} has no line {missing}; import wrk's whole output")
        readings.append(reading(told, url, status, lost, began))
        if not whole and "latency_mean" not in told:
            readings[-1].notes.append(
                Warning_("cut-off", f"the run that begins on line {began} is incomplete, so it has no latency")
            )
        if rate not in ("", "none"):
            set_rate(readings[-1], rate.removeprefix("set"))
        told, url, began, status, lost = {}, "", 0, 0, 0
        rate, recorded = "", True

    for line in lines:
        if match := RUNNING.fullmatch(line):
            if began:
                finish(lines.number)
            url, began = match[2], lines.number
        elif match := CONNECTIONS.fullmatch(line):
            told["connections"] = number(match[1])
        elif match := LATENCY.fullmatch(line):
            told["latency_mean"] = duration(match[1]) * 1e3
        elif match := SECTION.fullmatch(line):
            recorded = not (match[1] or "").startswith("Uncorrected")
            rate = rate or ("set" if match[1] else "")
        elif CALIBRATION.fullmatch(line):
            rate = rate or "set"
        elif match := MODE.fullmatch(line):
            rate = match[1] or "none"
        elif match := QUANTILE.fullmatch(line):
            if recorded:
                told[f"latency_p{match[1]}"] = duration(match[2]) * 1e3
        elif match := REQUESTS.fullmatch(line):
            began = began or lines.number
            told["requests"], told["seconds"] = number(match[1]), duration(match[2])
        elif match := NON_2XX.fullmatch(line):
            status += int(match[1])
        elif match := SOCKET.fullmatch(line):
            lost += sum(int(count) for count in match.groups())
        elif lines.cut and RATE.fullmatch(line) and not WHOLE_RATE.fullmatch(line):
            break
        elif match := RATE.fullmatch(line):
            told["rate"], told["digits"] = number(match[1]), digits(match[1])
        elif END.fullmatch(line):
            finish(lines.number, whole=True)
        elif (match := STAMP.fullmatch(line)) and readings and not began:
            if match[1] == "STARTTIME":
                readings[-1].started = float(match[2])
            elif readings[-1].started:
                readings[-1].ended, readings[-1].clock = float(match[2]), "utc"
    if began or told:
        finish(lines.number)
    return readings


def reading(told: dict[str, float], url: str, status: int, lost: int, line: int) -> Reading:
    """Return one run. `status`: answers other than 2xx or 3xx; `lost`: requests without an answer."""
    wrong = status + lost
    if not told["requests"] or not told["rate"]:
        raise Bad(line, "no request was answered, so there is nothing to compare")
    if status > told["requests"] / 2:
        text = f"{status:,} of {told['requests']:,.0f} answers were errors (neither 2xx nor 3xx)"
        raise Bad(line, f"{text}, so this is the speed of error pages; fix the address and run it again")
    notes = contradictions(told["requests"], told["seconds"], told["rate"])
    if wrong:
        notes.append(
            Warning_(
                "errors",
                f"{wrong:,} answers were errors or never arrived, in a run of {told['requests']:,.0f} requests",
            )
        )
    scheme, _, rest = url.partition("://")
    return Reading(
        tool="wrk",
        line=line,
        engine="web",
        workload=path(rest) if rest else "requests",
        scheme=scheme if rest else "",
        clients=int(told.get("connections", 0)),
        operations=int(told["requests"]),
        errors=wrong,
        seconds=told["seconds"],
        digits=int(told["digits"]),
        figures={
            "throughput": told["rate"],
            **{name: told[name] for name in told if name.startswith("latency_") and told[name] > 0},
        },
        notes=notes,
    )
