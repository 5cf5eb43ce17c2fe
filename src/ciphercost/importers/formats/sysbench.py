"""Reads the summary of sysbench 0.4 to 1.0, with its `--report-interval` lines and its histogram. Pure."""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, differ, digits, line_of, number, set_rate
from ciphercost.importers.formats.pgbench_log import quantile
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r"^(?:sysbench \d+\.\d+|\[ *\d+s *\] *(?:thds|threads): \d+|Threads fairness:)", re.MULTILINE)
VERSION = re.compile(r"sysbench (\d+\.\d+[\w.]*).*")
INTERVAL = re.compile(rf"\[ *(\d+)s *\] *(?:thds|threads): (\d+),? (?:tps|eps): {NUMBER},? .*")
THREADS = re.compile(r"Number of threads: (\d+)\s*")
BUCKET = re.compile(rf"\s*{NUMBER} \|[* ]*\s(\d+)\s*")
TRANSACTIONS = re.compile(rf"\s*transactions:\s+(\d+)\s+\({NUMBER} per sec\.\)\s*")
EVENTS_RATE = re.compile(rf"\s*events per second:\s+{NUMBER}\s*")
TIME = re.compile(rf"\s*total time:\s+{NUMBER}s\s*")
EVENTS = re.compile(r"\s*total number of events:\s+(\d+)\s*")
SUM = re.compile(rf"\s*sum:\s+{NUMBER}\s*")
PERCENTILE = re.compile(rf"\s*(?:approx\.\s+)?(\d+)(?:th|st|nd|rd)?\s+percentile:\s+{NUMBER}(ms)?\s*")
ERRORS = re.compile(rf"\s*ignored errors:\s+(\d+)\s+\({NUMBER} per sec\.\)\s*")
TARGET = re.compile(r"Target transaction rate: (\d+)/sec.*")
QUEUE = re.compile(r"\[ *\d+s *\] queue length: .*")
"""Printed only with `--rate`."""
END = re.compile(rf"\s*execution time \(avg/stddev\):\s+{NUMBER}/{NUMBER}\s*")
TOLERANCE = 0.02
LEAST_COUNT = 1000
"""Samples that the histogram needs for a 99th percentile."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with `execution time`."""
    made: list[Reading] = []
    told: dict[str, float] = {}
    series: list[float] = []
    buckets: dict[int, int] = {}
    version, rate, began = "", "", 0
    for line in lines:
        if match := VERSION.fullmatch(line):
            if began:
                raise Bad(lines.number, f"the run that begins on line {began} has no end; {WHOLE}")
            version, began = match[1], lines.number
        elif match := INTERVAL.fullmatch(line):
            began = began or lines.number
            series.append(number(match[3]))
            told.setdefault("threads", float(match[2]))  # at the end of a run fewer threads may be left
        elif match := TARGET.fullmatch(line):
            rate, began = match[1], began or lines.number
        elif QUEUE.fullmatch(line):
            rate = rate or "set"
        elif match := BUCKET.fullmatch(line):
            buckets[round(number(match[1]) * 1e3)] = buckets.get(round(number(match[1]) * 1e3), 0) + int(match[2])
        elif match := TRANSACTIONS.fullmatch(line):
            told["transactions"], told["rate"], told["digits"] = number(match[1]), number(match[2]), digits(match[2])
        elif match := PERCENTILE.fullmatch(line):
            told[f"latency_p{match[1]}"] = number(match[2])
        elif END.fullmatch(line):
            if "time" not in told or "events" not in told:
                raise Bad(lines.number, f"a run ends without its total time or number of events; {WHOLE}")
            made.append(reading(told, series, buckets, version, began or lines.number))
            if rate not in ("", "0"):
                set_rate(made[-1], rate.removeprefix("set"))
            told, series, buckets, rate, began = {}, [], {}, "", 0
        else:
            for name, pattern in (
                ("threads", THREADS),
                ("rate", EVENTS_RATE),
                ("time", TIME),
                ("events", EVENTS),
                ("sum", SUM),
                ("errors", ERRORS),
            ):
                if match := pattern.fullmatch(line):
                    told[name] = number(match[1])
                    began = began or lines.number
    if told or series:
        raise Bad(
            lines.number,
            f"the run that begins on line {began} is cut off before 'execution time (avg/stddev)'; {WHOLE}",
        )
    if not made:
        raise Bad(lines.number, f"it contains no result ('prepare' prints none); {WHOLE} of 'sysbench … run'")
    return made


WHOLE = "import sysbench's whole output"


def reading(told: dict[str, float], series: list[float], buckets: dict[int, int], version: str, line: int) -> Reading:
    """Return one run. Its printed rate is checked against its count and time."""
    operations = int(told.get("transactions", told["events"]))
    if not operations or not told["time"] > 0:
        raise Bad(line, "sysbench ran no event, so there is nothing to compare")
    rate, notes = operations / told["time"], []
    if "rate" in told and differ(told["rate"], rate, TOLERANCE):
        text = f"{operations:,} events in {told['time']:g} s are {rate:,.1f} per second, but sysbench printed {told['rate']:,.1f}"
        notes.append(Warning_("contradiction", f"{text}; a figure is wrong or from another run"))
    if errors := int(told.get("errors", 0)):
        notes.append(Warning_("errors", f"sysbench ignored {errors:,} errors in {operations:,} events"))
    figures = {"throughput": told.get("rate", rate)}
    if "sum" in told:
        # The printed mean is rounded to hundredths of a millisecond; sum and count are exact.
        figures["latency_mean"] = told["sum"] / told["events"]
    if sum(buckets.values()) >= LEAST_COUNT:
        figures |= {
            name: quantile(buckets, share) / 1e3 for name, share in (("latency_p50", 0.5), ("latency_p99", 0.99))
        }
    elif "latency_p99" in told and told["latency_p99"] > 0:
        figures["latency_p99"] = told["latency_p99"]
    return Reading(
        tool="sysbench",
        version=version,
        line=line,
        engine="database" if "transactions" in told else "sysbench",
        workload="transactions" if "transactions" in told else "events",
        clients=int(told.get("threads", 0)),
        operations=operations,
        errors=int(told.get("errors", 0)),
        seconds=told["time"],
        digits=int(told.get("digits", 0)),
        figures=figures,
        series={"throughput": series} if len(series) > 1 else {},
        notes=notes,
    )
