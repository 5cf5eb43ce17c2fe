"""csv: any table with a line of names and a map of its columns: `time=elapsed_ms,arm=mode,operations=n`. Pure.

Delimiter and decimal comma are found out; a unit is stated (`time=elapsed:ms`) or stands in the column's name. Without a column
`run` each row is a run.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.errors import UsageError, nearest
from ciphercost.importers import SECONDS, Bad, Lines
from ciphercost.model import Reading, Warning_

ROLES = ("time", "latency", "throughput", "operations", "cpu", "arm", "run", "clients", "workload", "at")
NUMBERS = ("time", "latency", "throughput", "operations", "cpu", "clients", "at")
FIGURES = ("time", "latency", "throughput", "cpu")
EXAMPLE = "--columns time=elapsed_ms,arm=mode,operations=n"
TIME_UNITS = ("s", "ms", "us", "µs")
UNIT_IN_NAME = re.compile(
    r"(?:^|[\s_.(\[-])(ms|us|µs|s|sec|secs|seconds|millis|milliseconds|micros|microseconds)[)\]]?\s*$", re.IGNORECASE
)
LONG_UNITS = {
    "sec": "s",
    "secs": "s",
    "seconds": "s",
    "millis": "ms",
    "milliseconds": "ms",
    "micros": "us",
    "microseconds": "us",
}
AVERAGE = re.compile(
    r"\s*(?:average|avg|mean|total|sum|moyenne|média|media|durchschn(?:itt)?|mittel(?:wert)?)\b.*", re.IGNORECASE
)
DELIMITERS = (";", "\t", "|", ",")
THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?%?")
"""What commas between thousands look like, and some figures with a decimal comma too; `0,125` and `1234,500` are no thousands."""
MANY_ROWS = 30
"""Of one arm, above which rows that are taken for runs are doubted aloud."""


class Column(NamedTuple):
    """One column of the map: what it is, what it is called in the file, and its unit, where one was stated."""

    role: str
    name: str
    unit: str


def recognise(head: str) -> int:  # noqa: ARG001 - any table may mean anything: only the map says
    return 0


def columns(text: str) -> list[Column]:
    """The map of `time=elapsed_ms,arm=mode,operations=n`, `latency=p50:us`. Raises UsageError."""
    found: list[Column] = []
    for word in text.split(","):
        role, equals, rest = word.partition("=")
        name, _, unit = rest.partition(":")
        role = role.strip()
        if not equals or not name.strip():
            raise UsageError(f"--columns {text}: '{word}' is not ROLE=COLUMN; e.g. {EXAMPLE}")
        if role not in ROLES:
            raise UsageError(f"--columns {text}: unknown role '{role}': {nearest(role, ROLES)}")
        if role in (each.role for each in found):
            raise UsageError(f"--columns {text}: {role} stands there twice; import the file once for each")
        known = TIME_UNITS if role in ("time", "latency") else ("%", "share") if role == "cpu" else ()
        if unit and unit not in known:
            raise UsageError(f"--columns {text}: '{unit}' is no unit of {role}: {', '.join(known) or 'it has none'}")
        found.append(Column(role, name.strip(), unit))
    if not any(each.role in FIGURES for each in found):
        raise UsageError(f"--columns {text}: no figure: name one of {', '.join(FIGURES)}; e.g. {EXAMPLE}")
    return found


def unit_of(column: Column) -> str:
    """Stated, or as the column's name ends. Raises Bad where neither says."""
    if column.unit:
        return column.unit
    if column.role == "cpu" and ("%" in column.name or re.search("per_?cent|pct", column.name, re.IGNORECASE)):
        return "%"
    if column.role in ("time", "latency") and (match := UNIT_IN_NAME.search(column.name)):
        return LONG_UNITS.get(match[1].lower(), match[1].lower())
    wanted = "% or share" if column.role == "cpu" else "s, ms or us"
    raise Bad(
        1,
        f"the unit of '{column.name}' is not known ({wanted}): state it, e.g. --columns {column.role}={column.name}:{wanted.split()[0].strip(',')}",
    )


def read(lines: Lines, asked: list[Column] | None = None) -> list[Reading]:
    """A reading for each row, or for each run where the map has `run`. Raises Bad, naming the line."""
    if not asked:
        raise Bad(1, f"which column is what? Say e.g. {EXAMPLE}")
    header, delimiter, at = _header(lines)
    units = {each.role: unit_of(each) for each in asked if each.role in ("time", "latency", "cpu")}
    place = _places(asked, header, at)
    table: list[tuple[int, dict[str, str]]] = []
    labels: dict[int, str] = {}
    texts = [index for index in range(len(header)) if index not in (place.get("arm"), place.get("workload"))]
    for words in _rows(lines, delimiter):
        if not any(word.strip() for word in words):
            continue
        if len(words) != len(header):
            raise Bad(lines.number, f"{len(words)} values under {len(header)} columns")
        if label := next((words[index] for index in texts if AVERAGE.fullmatch(words[index])), ""):
            labels[lines.number] = label.strip()
        table.append((lines.number, {role: words[index].strip() for role, index in place.items()}))
    if not table:
        raise Bad(lines.number, "there is no row below the columns' names")
    comma = delimiter != "," and _decimal_comma(table)
    rows: list[Row] = []
    averages, doubted = 0, []
    for line, row in table:
        if line not in labels:
            rows.append((line, row, _numbers(line, row, comma)))
        elif _of_others(line, row, comma, rows):
            averages += 1
        else:
            rows.append((line, row, _numbers(line, row, comma)))
            text = f"line {line}, '{labels[line][:40]}', was taken for a row like others: its figures are neither the mean nor the sum of rows above it"
            doubted.append(Warning_("no-average-row", text))
    if not rows:
        raise Bad(lines.number, "there is no row below the columns' names but averages")
    made = _runs(rows, units, "run" in place)
    notes = (
        [Warning_("average-row", f"{averages} average or total rows were left out: they repeat the others")]
        if averages
        else []
    ) + doubted
    if "run" not in place and len(made) > MANY_ROWS:
        text = f"each of {len(made)} rows was taken for a run of its own; rows of one run need a column that says so (run=…), else the interval is too narrow"
        notes.append(Warning_("rows-as-runs", text))
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
            raise Bad(lines.number, f"no row of a table: {error}") from None


def _places(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    place = {}
    for each in asked:
        fits = [index for index, name in enumerate(header) if name.lower() == each.name.lower()]
        if len(fits) != 1:
            how = "is not there" if not fits else f"stands there {len(fits)} times"
            raise Bad(line, f"column '{each.name}' {how}: {nearest(each.name, header)}")
        place[each.role] = fits[0]
    return place


def _numbers(line: int, row: dict[str, str], comma: bool) -> dict[str, float]:
    return {role: _number(line, text, comma) for role, text in row.items() if role in NUMBERS}


def _decimal_comma(table: list[tuple[int, dict[str, str]]]) -> bool:
    """Whether the figures have one. Raises Bad where commas may as well be between thousands."""
    with_comma = [(line, text) for line, row in table for role, text in row.items() if role in NUMBERS and "," in text]
    if with_comma and all(THOUSANDS.fullmatch(re.sub(r"\s", "", text)) for _, text in with_comma):
        line, text = with_comma[0]
        raise Bad(
            line,
            f"'{text}' can be read in two ways: every comma here has three digits behind it, as between thousands: write figures "
            "with a point, and without commas",
        )
    return bool(with_comma)


def _number(line: int, text: str, comma: bool) -> float:
    plain = text.replace("\u202f", "").replace("\u00a0", "").replace(" ", "").rstrip("%")
    if comma:
        if "." in plain and not re.fullmatch(r"-?\d{1,3}(?:\.\d{3})+(?:,\d+)?", plain):
            raise Bad(line, f"'{text}' has a point where other figures have a comma: write all of them one way")
        plain = plain.replace(".", "").replace(",", ".")
    elif "," in plain:
        if not re.fullmatch(r"-?\d{1,3}(?:,\d{3})+\.\d+", plain):
            raise Bad(
                line,
                f"'{text}' can be read in two ways, as the columns too are separated by commas: write it with a point",
            )
        plain = plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        raise Bad(line, f"'{text[:40]}' is no number") from None
    if not math.isfinite(value) or value < 0:
        raise Bad(line, f"'{text[:40]}' is no figure that can be compared")
    return value


Row = tuple[int, dict[str, str], dict[str, float]]


def _runs(rows: list[Row], units: dict[str, str], grouped: bool) -> list[Reading]:
    """Rows put together by arm, workload, clients and, where there is one, run; and each arm's average row, that doesn't say so, left out."""
    by_arm: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[1].get(role, "") for role in ("arm", "workload", "clients"))
        by_arm.setdefault(key, []).append(row)
    made = []
    for (arm, workload, clients), own in by_arm.items():
        notes = []
        if not grouped and _average_of_others(own):
            text = f"line {own[-1][0]} is the average of the rows above it, without saying so: it was left out"
            notes.append(Warning_("average-row", text))
            own = own[:-1]
        runs: dict[str, list[Row]] = {}
        for row in own:
            runs.setdefault(row[1]["run"] if grouped else str(row[0]), []).append(row)
        readings = [_reading(each, units, arm, workload, clients) for each in runs.values()]
        readings[0].notes += notes
        made += readings
    return made


def _of_others(line: int, row: dict[str, str], comma: bool, above: list[Row]) -> bool:
    """Whether a row that names itself an average or a sum is one: of all rows above it, of its arm's, or without figures of its own."""
    try:
        own: Row = (line, row, _numbers(line, row, comma))
    except Bad:
        return True
    names = [name for name in own[2] if name in FIGURES]
    alike = [each for each in above if each[1].get("arm") == row.get("arm")]
    arms = [[each for each in above if each[1].get("arm") == arm] for arm in {each[1].get("arm") for each in above}]
    for rows in (above, alike, *arms):
        means = [sum(each[2][name] for each in rows) / max(1, len(rows)) for name in names]
        for times in (1, len(rows)):
            if rows and all(
                abs(own[2][name] - mean * times) <= 0.51 * 10.0 ** -_digits(row[name])
                for name, mean in zip(names, means, strict=True)
            ):
                return True
    return False


def _digits(text: str) -> int:
    """Behind the point or the comma."""
    return len(re.split("[.,]", text.rstrip("% "))[-1]) if re.search("[.,]", text) else 0


def _average_of_others(rows: list[Row]) -> bool:
    if len(rows) < 4:
        return False
    names = [name for name in rows[0][2] if name not in ("clients", "at", "operations")]
    for name in names:
        digits = _digits(rows[-1][1][name])
        above = [row[2][name] for row in rows[:-1]]
        if max(above) == min(above) or abs(rows[-1][2][name] - sum(above) / len(above)) > 0.51 * 10.0**-digits:
            return False
    return bool(names)


def _reading(rows: list[Row], units: dict[str, str], arm: str, workload: str, clients: str) -> Reading:
    line = rows[0][0]
    values = [row[2] for row in rows]
    figures: dict[str, float] = {}
    operations = [each.get("operations", 1.0) for each in values]
    times = [each["time"] * SECONDS[units["time"]] for each in values] if "time" in units else []
    notes = []
    if times:
        if min(times) <= 0 or sum(operations) <= 0:
            raise Bad(line, "a time, or a number of operations, of 0: there is no rate in it")
        figures["throughput"] = sum(operations) / sum(times)
    if "throughput" in values[0]:
        rate = sum(each["throughput"] for each in values) / len(values)
        if rate <= 0:
            raise Bad(line, "a throughput of 0 can't be compared")
        if times and "operations" in values[0] and abs(rate / figures["throughput"] - 1) > 0.05:
            text = f"line {line}: operations in that time are {figures['throughput']:,.4g} a second, and not the {rate:,.4g} of the column: a unit is wrong"
            notes.append(Warning_("contradiction", text))
        figures["throughput"] = rate
    if "latency" in units:
        figures["latency_mean"] = (
            sum(each["latency"] for each in values) / len(values) * SECONDS[units["latency"]] * 1e3
        )
        if figures["latency_mean"] <= 0:
            raise Bad(line, "a latency of 0 can't be compared")
    if "cpu" in units:
        scale = 100.0 if units["cpu"] == "share" else 1.0
        figures["host_busy"] = sum(each["cpu"] for each in values) / len(values) * scale
        if figures["host_busy"] > 100:
            raise Bad(
                line, f"{figures['host_busy']:.0f} % of the CPU's time in use: more than there is; is its unit right?"
            )
    single = "throughput" if "throughput" in figures else "latency_mean"
    raw = {"throughput": "throughput", "latency_mean": "latency"}[single]
    series = [each[raw] for each in values] if len(values) > 1 and raw in values[0] else []
    if not series and len(values) > 1 and times:
        series = [done / took for done, took in zip(operations, times, strict=True)]
    stamped = [each["at"] for each in values if each.get("at", 0) > 1e9]
    # Stamps of 13 digits are in milliseconds.
    stamped = [each / 1e3 if each > 1e11 else each for each in stamped]
    return Reading(
        tool="csv",
        line=line,
        engine="table",
        workload=workload or "rows",
        clients=round(float(clients)) if re.fullmatch(r"\d+(?:\.0+)?", clients) else 0,
        names=[arm] if arm else [],
        operations=round(sum(operations)) if "operations" in values[0] else 0,
        seconds=sum(times),
        started=min(stamped) if stamped else None,
        ended=max(stamped) if stamped else None,
        clock="utc" if stamped else "",
        figures=figures,
        series={single: series} if series else {},
        notes=notes,
    )
