"""Reads the summary of sysbench 0.4 to 1.1, with its `--report-interval` lines and its histogram. Pure.

A summary needs its rate; one that is cut off below it has no latency.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, differ, digits, line_of, number, set_rate
from ciphercost.importers.formats.pgbench_log import quantile
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(
    r"^(?:sysbench \d+\.\d+|\[ *\d+s *\] *(?:thds|threads): \d+|Threads fairness:|SQL statistics:|(?:OLTP test|General) statistics:"
    r"|transactions: +\d+ +\([\d.]+ per sec|events per second: +[\d.]+$|events/s \(eps\): +[\d.]+$)",
    re.MULTILINE,
)
VERSION = re.compile(r"sysbench (\d+\.\d+[\w.]*).*")
INTERVAL = re.compile(rf"\[ *(\d+)s *\] *(?:thds|threads): (\d+),? (?:tps|eps): {NUMBER},? .*")
THREADS = re.compile(r"Number of threads: (\d+)\s*")
BUCKET = re.compile(rf"\s*{NUMBER} \|[* ]*\s(\d+)\s*")
TRANSACTIONS = re.compile(rf"\s*transactions:\s+(\d+)\s+\({NUMBER} per sec\.\)\s*")
EVENTS_RATE = re.compile(rf"\s*(?:events per second|events/s \(eps\)):\s+{NUMBER}\s*")
TIME = re.compile(rf"\s*(?:total time|time elapsed):\s+{NUMBER}s\s*")
"""sysbench 1.1 prints `events/s (eps)` and `time elapsed`."""
EVENTS = re.compile(r"\s*total number of events:\s+(\d+)\s*")
SUM = re.compile(rf"\s*sum:\s+{NUMBER}\s*")
PERCENTILE = re.compile(rf"\s*(?:approx\.\s+)?(\d+)(?:th|st|nd|rd)?\s+percentile:\s+{NUMBER}(ms)?\s*")
ERRORS = re.compile(rf"\s*ignored errors:\s+(\d+)\s+\({NUMBER} per sec\.\)\s*")
TARGET = re.compile(r"Target transaction rate: (\d+)/sec.*")
QUEUE = re.compile(r"\[ *\d+s *\] queue length: .*")
"""Printed only with `--rate`."""
DRIVER = re.compile(r".*(?:--(?:db-driver[= ])?|\bdriver: |\busing )(mysql|pgsql)\b.*")
"""A command line, or what sysbench 0.4 prints, with the client library and so the kind of server."""
SERVERS = {"mysql": "mysql or mariadb", "pgsql": "postgresql"}
END = re.compile(rf"\s*execution time \(avg/stddev\):\s+{NUMBER}/{NUMBER}\s*")
TOLERANCE = 0.02
LEAST_COUNT = 1000
"""Samples that the histogram needs for a 99th percentile."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with `execution time`, with the next run's first line, or with the file."""
    readings: list[Reading] = []
    run = Run()
    server = ""
    for line in lines:
        if match := VERSION.fullmatch(line):
            if run.told or run.series:
                readings.append(run.reading(lines.number, server))
            # `prepare` prints a version too, and no result.
            run = Run(match[1], lines.number)
        elif match := DRIVER.fullmatch(line):
            server = SERVERS[match[1]]
        elif lines.cut and not TRANSACTIONS.fullmatch(line) and not END.fullmatch(line):
            break  # a last line without its end may lack digits
        elif run.take(line, lines.number):
            readings.append(run.reading(lines.number, server))
            run = Run()
    if run.told or run.series:
        readings.append(run.reading(lines.number, server))
    if not readings:
        raise Bad(lines.number, f"it contains no result ('prepare' prints none); {WHOLE} of 'sysbench … run'")
    return readings


class Run:
    """One run, while it is read."""

    def __init__(self, version: str = "", began: int = 0) -> None:
        self.version, self.began, self.rate = version, began, ""
        self.told: dict[str, float] = {}
        self.series: list[float] = []
        self.buckets: dict[int, int] = {}
        self.whole = False

    def take(self, line: str, number_: int) -> bool:
        """Process a line. Return whether it is the last one of a run."""
        told = self.told
        if match := INTERVAL.fullmatch(line):
            self.series.append(number(match[3]))
            told.setdefault("threads", float(match[2]))  # at the end of a run fewer threads may be left
        elif match := TARGET.fullmatch(line):
            self.rate = match[1]
        elif QUEUE.fullmatch(line):
            self.rate = self.rate or "set"
        elif match := BUCKET.fullmatch(line):
            at = round(number(match[1]) * 1e3)
            self.buckets[at] = self.buckets.get(at, 0) + int(match[2])
        elif match := TRANSACTIONS.fullmatch(line):
            told["transactions"], told["rate"], told["digits"] = number(match[1]), number(match[2]), digits(match[2])
        elif match := PERCENTILE.fullmatch(line):
            told[f"latency_p{match[1]}"] = number(match[2])
        elif END.fullmatch(line):
            self.whole = True
        elif match := EVENTS_RATE.fullmatch(line):
            told.setdefault("rate", number(match[1]))
        else:
            for name, pattern in (
                ("threads", THREADS),
                ("time", TIME),
                ("events", EVENTS),
                ("sum", SUM),
                ("errors", ERRORS),
            ):
                if match := pattern.fullmatch(line):
                    told[name] = number(match[1])
        if told or self.series:
            self.began = self.began or number_
        return self.whole

    def reading(self, end: int, server: str) -> Reading:
        """Return the run. Raises Bad if its rate is missing."""
        told = self.told
        if "rate" not in told and not {"time", "events"} <= told.keys():
            raise Bad(
                end,
                f"the run that begins on line {self.began} has no rate ('transactions: … per sec.', 'events per second', or total time "
                f"and number of events); {WHOLE}",
            )
        if "rate" not in told and told["time"] > 0:
            told["rate"] = told["events"] / told["time"]
        result = reading(told, self.series, self.buckets, self.version, self.began)
        result.server = server
        if not self.whole:
            lacks = "" if "latency_mean" in result.figures else ", so it has no latency"
            text = f"the run that begins on line {self.began} is cut off before 'execution time'{lacks}"
            result.notes.append(Warning_("cut-off", text))
        if self.rate not in ("", "0"):
            set_rate(result, self.rate.removeprefix("set"))
        return result


WHOLE = "import sysbench's whole output"


def reading(told: dict[str, float], series: list[float], buckets: dict[int, int], version: str, line: int) -> Reading:
    """Return one run. Its printed rate is checked against its count and time."""
    operations = int(told.get("transactions", told.get("events", 0)))
    counted = "transactions" in told or "events" in told
    if (counted and not operations) or not told.get("time", 1.0) > 0 or not told.get("rate", 0.0) > 0:
        raise Bad(line, "sysbench ran no event, so there is nothing to compare")
    notes = []
    if operations and "time" in told and differ(told["rate"], operations / told["time"], TOLERANCE):
        rate = operations / told["time"]
        text = f"{operations:,} events in {told['time']:g} s are {rate:,.1f} per second, but sysbench printed {told['rate']:,.1f}"
        notes.append(Warning_("contradiction", f"{text}; a figure is wrong or from another run"))
    if errors := int(told.get("errors", 0)):
        notes.append(Warning_("errors", f"sysbench ignored {errors:,} errors in {operations:,} events"))
    figures = {"throughput": told["rate"]}
    if "sum" in told and counted:
        # The printed mean is rounded to hundredths of a millisecond; sum and count are exact.
        figures["latency_mean"] = told["sum"] / told.get("events", operations)
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
        seconds=told.get("time", operations / told["rate"]),
        digits=int(told.get("digits", 0)),
        figures=figures,
        series={"throughput": series} if len(series) > 1 else {},
        notes=notes,
    )
