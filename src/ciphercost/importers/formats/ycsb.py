"""Reads YCSB's measurements, as its text exporter prints them. Pure.

A run's throughput is that of all operations, its latency their mean by count. Quantiles are those of the only kind of operation, if a
run has one.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, errors_among, line_of, number, set_rate
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r"^[^\S\n]*\[(?:OVERALL|READ|UPDATE|INSERT|SCAN|READ-MODIFY-WRITE|CLEANUP)\], \S", re.MULTILINE)
OWN = re.compile(r"\[[\w%-]+\], .*|YCSB Client .*|Loading workload\.\.\.|Starting test\.|\d{4}-\d\d-\d\d .*")
LINE = re.compile(rf"\s*\[([\w-]+)\], ([^,]+), {NUMBER}\s*")
COMMAND = re.compile(r"\s*Command line: (.*)")
TARGET = re.compile(r"(?:^|\s)-target (\d+)\b")
THREADS = re.compile(r"(?:^|\s)-threads (\d+)\b")
OVERALL = "OVERALL"
TOLERANCE = 0.02
BY_MEASUREMENT = {
    "99thPercentileLatency(us)": "latency_p99",
    "99": "latency_p99",
    "50thPercentileLatency(us)": "latency_p50",
}
NOT_KINDS = re.compile(r"OVERALL|CLEANUP|TOTAL_\w+|Intended-.*|.*-FAILED")


class Run:
    """One run, while it is read."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.overall: dict[str, float] = {}
        self.kinds: dict[str, dict[str, float]] = {}
        self.digits = 0

    def take(self, match: re.Match[str]) -> None:
        """Process `[KIND], name, value`."""
        kind, name, value = match[1], match[2].strip(), number(match[3])
        if kind == OVERALL:
            self.overall[name] = value
            if name.startswith("Throughput"):
                self.digits = digits(match[3])
        else:
            self.kinds.setdefault(kind, {})[name] = value

    def reading(self, end: int, threads: int, target: str) -> Reading:
        """Return the run. Raises Bad if its rate is missing, or if most operations failed."""
        rate = self.overall.get("Throughput(ops/sec)")
        if rate is None:
            raise Bad(
                end,
                f"the run that begins on line {self.line} has no line '[OVERALL], Throughput(ops/sec)'; import YCSB's whole output",
            )
        if not rate > 0:
            raise Bad(self.line, "YCSB completed no operation, so there is nothing to compare")
        counted = {
            name: told
            for name, told in self.kinds.items()
            if not NOT_KINDS.fullmatch(name) and told.get("Operations", 0) > 0
        }
        done = sum(told["Operations"] for told in counted.values())
        wrong = sum(
            count
            for name, told in self.kinds.items()
            if not NOT_KINDS.fullmatch(name)
            for what, count in told.items()
            if what.startswith("Return=") and what not in ("Return=OK", "Return=BATCHED_OK", "Return=NOT_FOUND")
        )
        seconds = self.overall.get("RunTime(ms)", 0.0) / 1e3
        figures = {"throughput": rate}
        failed = sum(told.get("Operations", 0.0) for name, told in self.kinds.items() if name.endswith("-FAILED"))
        whole = done > 0 and (not seconds or done + failed > (1 - TOLERANCE) * rate * seconds)
        if whole and all("AverageLatency(us)" in told for told in counted.values()):
            figures["latency_mean"] = (
                sum(told["AverageLatency(us)"] * told["Operations"] for told in counted.values()) / done / 1e3
            )
        if whole and len(counted) == 1:
            (told,) = counted.values()
            figures |= {figure: told[name] / 1e3 for name, figure in BY_MEASUREMENT.items() if name in told}
        notes = errors_among(self.line, wrong, max(done, wrong), "operations did not return OK")
        if not whole:
            text = "has fewer operations than its rate and time say; its end is missing, so it has no latency"
            notes.append(Warning_("cut-off", f"the run that begins on line {self.line} {text}"))
        result = Reading(
            tool="ycsb",
            line=self.line,
            engine="database",
            workload=", ".join(sorted(name.lower() for name in counted)) or "operations",
            clients=threads,
            operations=int(done),
            errors=int(wrong),
            seconds=seconds,
            digits=self.digits,
            figures=above_zero(figures),
            notes=notes,
        )
        if target not in ("", "0"):
            set_rate(result, target)
        return result


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run begins with `[OVERALL], RunTime(ms)`."""
    every = rows(lines, "YCSB")
    readings: list[Reading] = []
    run: Run | None = None
    threads, target, next_threads, next_target = 0, "", 0, ""
    for at, row in enumerate(every, 1):
        if match := COMMAND.fullmatch(row):
            next_threads = int(found[1]) if (found := THREADS.search(match[1])) else 1
            next_target = found[1] if (found := TARGET.search(match[1])) else ""
        elif match := LINE.fullmatch(row):
            if match[1] == OVERALL and (run is None or match[2].strip() in run.overall):
                readings += [run.reading(at, threads, target)] if run else []
                run, threads, target = Run(at), next_threads, next_target
            run = run or Run(at)
            run.take(match)
    if run:
        readings.append(run.reading(len(every), threads, target))
    if not readings:
        raise Bad(
            len(every),
            "the output has no line '[OVERALL], Throughput(ops/sec)', which has the result; import YCSB's whole output",
        )
    return readings
