"""Reads Locust's `*_stats.csv`, and the table that `--headless --only-summary` prints. Pure.

A run is the row `Aggregated`. Times are in ms. Users of most tests wait between requests, so throughput is often set by their number.
"""

from __future__ import annotations

import csv
import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, errors_among, line_of, number
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading

HEADER = re.compile(r"\"?Type\"?,\"?Name\"?,\"?Request Count\"?,\"?Failure Count\"?,.*")
MARK = re.compile(rf"^[^\S\n]*(?:{HEADER.pattern}$|Type +Name +# reqs +# fails )", re.MULTILINE)
DATA = HEADER
OWN = re.compile(
    r"(?:Type +Name|Response time percentiles|Request statistics|Error report|-+\||Aggregated ).*|[A-Z]* +\S+ +\d+ .*|\d+ +[A-Z]+ .*|\[\d{4}-.*"
)
AGGREGATED = re.compile(
    rf"\s*Aggregated\s+(\d+)\s+(\d+)\({NUMBER}%\)\s*\|\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\|\s*{NUMBER}\s+{NUMBER}\s*"
)
QUANTILES = re.compile(r"\s*Aggregated\s+((?:\d+\s+)+)(\d+)\s*")
QUANTILE_HEADER = re.compile(r"\s*Type\s+Name\s+((?:[\d.]+%\s+)+)# reqs\s*")
FIGURES = {"Average Response Time": "latency_mean", "50%": "latency_p50", "99%": "latency_p99"}
WHOLE = "import Locust's whole *_stats.csv"


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each row `Aggregated`."""
    every = rows(lines, "Locust")
    readings: list[Reading] = []
    header: list[str] = []
    names: list[str] = []
    for at, row in enumerate(every, 1):
        if HEADER.fullmatch(row):
            header = next(csv.reader([row]))
        elif header and ",Aggregated," in row:
            readings.append(of_row(next(csv.reader([row])), header, at))
        elif match := AGGREGATED.fullmatch(row):
            figures = {
                "throughput": number(match[8]),
                "latency_mean": number(match[4]),
                "latency_p50": number(match[7]),
            }
            readings.append(reading(at, int(match[1]), int(match[2]), figures, digits(match[8])))
        elif match := QUANTILE_HEADER.fullmatch(row):
            names = match[1].split()
        elif readings and (match := QUANTILES.fullmatch(row)) and len(values := match[1].split()) == len(names):
            named = dict(zip(names, values, strict=True))
            readings[-1].figures |= above_zero(
                {FIGURES[name]: number(named[name]) for name in ("50%", "99%") if name in named}
            )
    if not readings:
        raise Bad(len(every), f"the table has no row 'Aggregated', which has the result; {WHOLE}")
    return readings


def of_row(words: list[str], header: list[str], line: int) -> Reading:
    """Return one row of the CSV file."""
    if len(words) != len(header):
        raise Bad(line, f"{len(words)} values for {len(header)} columns; {WHOLE}")
    row = dict(zip(header, words, strict=True))
    try:
        figures = {figure: number(row[name]) for name, figure in FIGURES.items() if row.get(name, "N/A") != "N/A"}
        return reading(
            line,
            int(row["Request Count"]),
            int(row["Failure Count"]),
            {"throughput": number(row["Requests/s"])} | figures,
            digits(row["Requests/s"]),
        )
    except KeyError as error:
        raise Bad(line, f"the table has no column {error}; {WHOLE}") from None


def reading(line: int, done: int, wrong: int, figures: dict[str, float], digits_: int) -> Reading:
    if not done or not figures["throughput"] > 0:
        raise Bad(line, "Locust made no request, so there is nothing to compare")
    return Reading(
        tool="locust",
        line=line,
        engine="web",
        workload="requests",
        operations=done,
        errors=wrong,
        seconds=done / figures["throughput"],
        digits=min(17, digits_),
        figures=above_zero(figures),
        notes=errors_among(line, wrong, done, "requests failed"),
    )
