"""Reads any table, given a map of its columns: `time=elapsed_ms,arm=mode,operations=n`. Pure.

Frame (`_csv_frames.py`), delimiter and decimal comma are detected. Ambiguous numbers are refused until `decimal=point` or `decimal=comma`
decides. A unit is stated (`time=elapsed:ms`) or is part of the column's name. Without a column `run` each row is a run,
unless the rows look like reports of one run: a column is a clock, each row resembles the previous one, or there are too
many rows. `run=row` makes each row a run in any case.
"""

from __future__ import annotations

import re

from ciphercost.importers.arm_words import arm_of_value
from ciphercost.importers.csv_columns import EXAMPLE, Column, of_each_workload, unit_of
from ciphercost.importers.formats import Bad, Lines
from ciphercost.importers.formats._csv_frames import table as table_in
from ciphercost.importers.formats._csv_numbers import (
    NUMBERS,
    bare,
    has_decimal_comma,
    is_figure,
    numbers,
    own_unit,
    without_thousands,
)
from ciphercost.importers.formats._csv_runs import Row, runs_of, sums_up_others
from ciphercost.model.errors import nearest
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

AVERAGE = re.compile(
    r"\s*(?:average|avg|mean|total|sum|moyenne|média|media|durchschn(?:itt)?|mittel(?:wert)?)\b.*", re.IGNORECASE
)
EACH_ROW = "row"
"""`run=row`: each row is a run, whatever it looks like."""
CLOCKS = re.compile(
    r"(?:time|timestamp|t|s|secs?|seconds?|elapsed|epoch|date|datetime|clock|at|when|offset|uptime)(?:[\s_.\[(-].*)?",
    re.IGNORECASE,
)
"""Names of columns that contain a clock."""


def recognise(head: str) -> int:  # noqa: ARG001 - only the column map tells what a table means
    return 0


def read(lines: Lines, asked: list[Column] | None = None, *, header: bool = True) -> list[Reading]:
    """Return a reading per row, or per run if the map has `run`. If the map has several columns of one figure, each is a workload
    with readings of its own. Raises Bad with the line.

    `header`: whether the first line names the columns; if not, they are column1, column2 …
    """
    if not asked:
        raise Bad(1, f"map the table's columns, e.g. {EXAMPLE}")
    maps = of_each_workload(asked)
    if len(maps) == 1:
        return _read(lines, asked, header=header)
    texts = [f"{line}\n" for line in lines]
    readings: list[Reading] = []
    for workload, mapped in maps:
        own = _read(Lines(texts), mapped, header=header)
        for reading in own:
            reading.workload = workload
        readings += own
    return readings


def _read(lines: Lines, asked: list[Column], *, header: bool) -> list[Reading]:
    """Return the readings of a map in which each figure has one column. Raises Bad with the line."""
    raw_table = table_in(lines, header=header)
    titles, delimiter, at = raw_table.header, raw_table.delimiter, raw_table.line
    place = _places(asked, titles, at)
    factors = _factors(asked, titles, at)
    decimal = next((column.name for column in asked if column.role == "decimal"), "")
    clocks = [index for index, name in enumerate(titles) if CLOCKS.fullmatch(name) and index not in factors.values()]
    extra: dict[int, tuple[dict[str, str], dict[str, str]]] = {}
    table: list[tuple[int, dict[str, str]]] = []
    labels: dict[int, str] = {}
    named = {place.get("arm"), place.get("workload"), *factors.values()}
    texts = [index for index in range(len(titles)) if index not in named]
    for line, words in raw_table.rows:
        if len(words) != len(titles):
            raise Bad(line, f"{len(words)} values for {len(titles)} columns")
        if label := next((words[index] for index in texts if AVERAGE.fullmatch(words[index])), ""):
            labels[line] = label.strip()
        table.append((line, {role: words[index].strip() for role, index in place.items()}))
        extra[line] = (
            {name: words[index].strip() for name, index in factors.items()},
            {titles[index]: words[index].strip() for index in clocks},
        )
    units = {
        column.role: unit_of(column, _unit_in_cells(column, table))
        for column in asked
        if column.role in ("time", "latency", "cpu")
    }
    if "arm" in place:
        for _, row in table:
            row["arm"] = arm_of_value(row["arm"], titles[place["arm"]])
    table = without_thousands([(line, bare(row, units)) for line, row in table], decimal)
    # Only figures count: a version (`8.0`) in another column says nothing about the number format.
    others = {text for _, row in table for role, text in row.items() if role in NUMBERS and "." in text}
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
    readings = runs_of(rows, units, "run" in place, {} if _each_row(asked, place) else extra, extra)
    notes = (
        [Warning_("average-row", f"{averages} average or total rows were skipped because they repeat the others")]
        if averages
        else []
    ) + doubted
    readings[0].notes = [*notes, *readings[0].notes]
    return readings


def _places(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    place = {}
    for column in asked:
        if column.role in ("factor", "decimal") or (
            column.role == "run" and column.name == EACH_ROW and EACH_ROW not in header
        ):
            continue
        fits = [index for index, name in enumerate(header) if name.lower() == column.name.lower()]
        if len(fits) != 1:
            how = "does not exist" if not fits else f"exists {len(fits)} times"
            data = [name for name in header if is_figure(name)]
            more = (
                f"; the first line looks like data ('{data[0][:20]}'): with --no-header its columns are column1, column2 …"
                if data
                else ""
            )
            raise Bad(line, f"column '{column.name}' {how}: {nearest(column.name, header)}{more}")
        place[column.role] = fits[0]
    return place


def _factors(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    """Return the columns that are factors: name in the file -> position."""
    return {
        header[index]: index
        for column in asked
        if column.role == "factor"
        for index in _places([column._replace(role="")], header, line).values()
    }


def _each_row(asked: list[Column], place: dict[str, int]) -> bool:
    """Whether the map declares each row a run."""
    return "run" not in place and any(column.role == "run" for column in asked)


def _unit_in_cells(column: Column, table: list[tuple[int, dict[str, str]]]) -> bool:
    """Whether each value of this column has its own unit, as in `850us`."""
    return bool(table) and all(own_unit(row.get(column.role, "")) for _, row in table)
