"""Reads the output of mysqlslap and mariadb-slap, as text or with `--csv`. Pure.

They print the mean, minimum and maximum of the iterations but not their number, so one printed block is one run.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, line_of, number
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_
from ciphercost.model.shares import in_percent

AVERAGE = re.compile(rf"\s*Average number of seconds to run all queries: {NUMBER} seconds\s*")
LEAST = re.compile(rf"\s*Minimum number of seconds to run all queries: {NUMBER} seconds\s*")
LONGEST = re.compile(rf"\s*Maximum number of seconds to run all queries: {NUMBER} seconds\s*")
CLIENTS = re.compile(r"\s*Number of clients running queries: (\d+)\s*")
QUERIES = re.compile(r"\s*Average number of queries per client: (\d+)\s*")
CSV = re.compile(r"([^,\n]*),([a-z]+),(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),(\d+),(\d+)\s*")
MARK = re.compile(rf"Average number of seconds to run all queries|^{CSV.pattern}$", re.MULTILINE)
RESOLUTION = 0.001
"""Seconds: times are printed with three decimals."""
COARSE = 0.005


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each block of text, or each line of `--csv`."""
    readings: list[Reading] = []
    block: dict[str, float] = {}
    began = 0
    for line in lines:
        if match := CSV.fullmatch(line):
            if lines.cut:
                raise Bad(lines.number, CUT)
            average, least, longest = (number(match[group]) for group in (3, 4, 5))
            readings.append(reading(lines.number, average, least, longest, int(match[6]), int(match[7])))
            continue
        for name, pattern in (
            ("average", AVERAGE),
            ("least", LEAST),
            ("longest", LONGEST),
            ("clients", CLIENTS),
            ("queries", QUERIES),
        ):
            if match := pattern.fullmatch(line):
                if name == "average":
                    if block:
                        raise Bad(lines.number, f"the block that begins on line {began} has no end; {WHOLE}")
                    began = lines.number
                block[name] = number(match[1])
        if len(block) == 5:
            if lines.cut:
                raise Bad(lines.number, CUT)
            readings.append(
                reading(
                    began,
                    block["average"],
                    block["least"],
                    block["longest"],
                    int(block["clients"]),
                    int(block["queries"]),
                )
            )
            block = {}
    if block or not readings:
        raise Bad(lines.number, f"the block that begins on line {began or lines.number} is cut off; {WHOLE}")
    return readings


WHOLE = "import mysqlslap's whole output"
CUT = f"the line is cut off; {WHOLE} (if it is complete, end it with a line feed)"


def reading(line: int, average: float, least: float, longest: float, clients: int, queries: int) -> Reading:
    """Return the reading of one block. Raises Bad if it gives no rate."""
    if not queries or not clients:
        raise Bad(line, "mysqlslap did not print how many queries it ran (some versions print 0 without --number-of-queries); "
                  "add --number-of-queries and run it again")  # fmt: skip
    if average <= 0:
        raise Bad(line, "the queries took less than a millisecond, mysqlslap's resolution; raise --number-of-queries")
    if not least - RESOLUTION <= average <= longest + RESOLUTION:
        raise Bad(line, f"an average of {average:g} s is not between {least:g} and {longest:g} s; a figure is wrong")
    notes = []
    if least != longest:
        text = (
            f"the mean of several iterations, {least:g} to {longest:g} s; mysqlslap prints neither their number nor their times; "
            "run it with --iterations=1, several times"
        )
        notes.append(Warning_("iterations-hidden", text))
    if COARSE * average < RESOLUTION / 2:
        text = f"{average:g} s is rounded to a millisecond, which alone is an error of ± {in_percent(RESOLUTION / 2 / average)}"
        notes.append(Warning_("coarse", text))
    operations = clients * queries
    return Reading(
        tool="mysqlslap",
        line=line,
        engine="mysql or mariadb",
        workload="queries",
        clients=clients,
        factors={"queries": str(operations)},
        operations=operations,
        seconds=average,
        digits=digits(f"{average:.3f}"),
        figures={"throughput": operations / average},
        notes=notes,
    )
