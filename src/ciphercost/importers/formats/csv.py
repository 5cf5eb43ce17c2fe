"""Reads any table with a header line, given a map of its columns: `time=elapsed_ms,arm=mode,operations=n`. Pure.

Delimiter and decimal comma are detected. Ambiguous numbers are refused until `decimal=point` or `decimal=comma`
decides. A unit is stated (`time=elapsed:ms`) or is part of the column's name. Without a column `run` each row is a run,
unless the rows look like reports of one run: a column is a clock, each row resembles the previous one, or there are too
many rows. `run=row` makes each row a run in any case.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from ciphercost.importers.csv_columns import EXAMPLE, Column, unit_of
from ciphercost.importers.formats import Bad, Lines
from ciphercost.importers.formats._csv_numbers import NUMBERS, has_decimal_comma, numbers
from ciphercost.importers.formats._csv_runs import Row, runs_of, sums_up_others
from ciphercost.model.errors import nearest
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

AVERAGE = re.compile(
    r"\s*(?:average|avg|mean|total|sum|moyenne|média|media|durchschn(?:itt)?|mittel(?:wert)?)\b.*", re.IGNORECASE
)
DELIMITERS = (";", "\t", "|", ",")
EACH_ROW = "row"
"""`run=row`: each row is a run, whatever it looks like."""
CLOCKS = re.compile(
    r"(?:time|timestamp|t|s|secs?|seconds?|elapsed|epoch|date|datetime|clock|at|when|offset|uptime)(?:[\s_.\[(-].*)?",
    re.IGNORECASE,
)
"""Names of columns that contain a clock."""


def recognise(head: str) -> int:  # noqa: ARG001 - only the column map tells what a table means
    return 0


def read(lines: Lines, asked: list[Column] | None = None) -> list[Reading]:
    """Return a reading per row, or per run if the map has `run`. Raises Bad with the line."""
    if not asked:
        raise Bad(1, f"map the table's columns, e.g. {EXAMPLE}")
    header, delimiter, at = _header(lines)
    units = {each.role: unit_of(each) for each in asked if each.role in ("time", "latency", "cpu")}
    place = _places(asked, header, at)
    factors = _factors(asked, header, at)
    decimal = next((each.name for each in asked if each.role == "decimal"), "")
    clocks = [index for index, name in enumerate(header) if CLOCKS.fullmatch(name) and index not in factors.values()]
    others: set[str] = set()
    extra: dict[int, tuple[dict[str, str], dict[str, str]]] = {}
    table: list[tuple[int, dict[str, str]]] = []
    labels: dict[int, str] = {}
    named = {place.get("arm"), place.get("workload"), *factors.values()}
    texts = [index for index in range(len(header)) if index not in named]
    for words in _rows(lines, delimiter):
        if not any(word.strip() for word in words):
            continue
        if len(words) != len(header):
            raise Bad(lines.number, f"{len(words)} values for {len(header)} columns")
        if label := next((words[index] for index in texts if AVERAGE.fullmatch(words[index])), ""):
            labels[lines.number] = label.strip()
        table.append((lines.number, {role: words[index].strip() for role, index in place.items()}))
        # Only figures count: a version (`8.0`) in another column says nothing about the number format.
        others |= {words[index].strip() for role, index in place.items() if role in NUMBERS and "." in words[index]}
        extra[lines.number] = (
            {name: words[index].strip() for name, index in factors.items()},
            {header[index]: words[index].strip() for index in clocks},
        )
    if not table:
        raise Bad(lines.number, "there is no row below the header line")
    comma = has_decimal_comma(table, delimiter, others, decimal)
    rows: list[Row] = []
    averages, doubted = 0, []
    for line, row in table:
        if line not in labels:
            rows.append((line, row, numbers(line, row, comma)))
        elif sums_up_others(line, row, comma, rows):
            averages += 1
        else:
            rows.append((line, row, numbers(line, row, comma)))
            text = f"line {line}, '{labels[line][:40]}', counts as a normal row because its figures are neither the mean nor the sum of the rows above it"
            doubted.append(Warning_("no-average-row", text))
    if not rows:
        raise Bad(lines.number, "there are only averages below the header line")
    made = runs_of(rows, units, "run" in place, {} if _each_row(asked, place) else extra, extra)
    notes = (
        [Warning_("average-row", f"{averages} average or total rows were skipped because they repeat the others")]
        if averages
        else []
    ) + doubted
    made[0].notes = [*notes, *made[0].notes]
    return made


def _header(lines: Lines) -> tuple[list[str], str, int]:
    for line in lines:
        if line.strip():
            delimiter = max(DELIMITERS, key=lambda each: (line.count(each), -DELIMITERS.index(each)))
            return [word.strip() for word in next(csv.reader([line], delimiter=delimiter))], delimiter, lines.number
    raise Bad(0, "the file is empty")


def _rows(lines: Lines, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(iter(lines), delimiter=delimiter)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Bad(lines.number, f"not a row of a table: {error}") from None


def _places(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    place = {}
    for each in asked:
        if each.role in ("factor", "decimal") or (
            each.role == "run" and each.name == EACH_ROW and EACH_ROW not in header
        ):
            continue
        fits = [index for index, name in enumerate(header) if name.lower() == each.name.lower()]
        if len(fits) != 1:
            how = "does not exist" if not fits else f"exists {len(fits)} times"
            raise Bad(line, f"column '{each.name}' {how}: {nearest(each.name, header)}")
        place[each.role] = fits[0]
    return place


def _factors(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    """Return the columns that are factors: name in the file -> position."""
    return {
        header[index]: index
        for each in asked
        if each.role == "factor"
        for index in _places([each._replace(role="")], header, line).values()
    }


def _each_row(asked: list[Column], place: dict[str, int]) -> bool:
    """Whether the map declares each row a run."""
    return "run" not in place and any(each.role == "run" for each in asked)
