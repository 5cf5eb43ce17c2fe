"""csv: any table with a line of names and a map of its columns: `time=elapsed_ms,arm=mode,operations=n`. Pure.

Delimiter and decimal comma are detected; what can be read in two ways is refused until `decimal=point` or `decimal=comma` says which. A
unit is stated (`time=elapsed:ms`) or stands in the column's name. Without a column `run` each row is a run, unless the rows are reports of
one run: a column counts time, each row is like the one before, or there are too many; `run=row` says that they are runs all the same.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import itertools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ciphercost.estimate.statistics import depend
from ciphercost.importers.formats import SECONDS, Bad, Lines, digits
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

ROLES = (
    "time",
    "latency",
    "throughput",
    "operations",
    "cpu",
    "arm",
    "run",
    "clients",
    "workload",
    "factor",
    "at",
    "decimal",
)
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
DECIMALS = ("point", "comma")
EACH_ROW = "row"
"""`run=row`: each row is a run of its own, whatever it looks like."""
GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3})+%?")
"""What points between thousands look like, and figures with three digits behind a decimal point too."""
NUMERIC = re.compile(r"-?\d[\d.]*%?")
FRACTIONS = ("time", "latency", "cpu")
"""Figures that tools print with three digits behind a decimal point, where commas separate the columns."""
CLOCKS = re.compile(
    r"(?:time|timestamp|t|s|secs?|seconds?|elapsed|epoch|date|datetime|clock|at|when|offset|uptime)(?:[\s_.\[(-].*)?",
    re.IGNORECASE,
)
"""Names of columns that count time."""
LEAST_COUNTED = 4
"""Rows, of which a column that counts in equal steps is no chance."""
SHORT_STEP, ABOUT, EXACTLY = 10.0, 0.1, 0.001
"""Seconds from report to report, up to which steps may differ by a tenth; longer ones, as between runs, only by this."""
THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?%?")
"""What commas between thousands look like, and some figures with a decimal comma too; `0,125` and `1234,500` are no thousands."""
MANY_ROWS = 15
"""Of one arm, above which rows are taken for reports of one run: few repeat a run so often, and most reports come in scores."""


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
        if role == "decimal" and name.strip() not in DECIMALS:
            raise UsageError(f"--columns {text}: decimal is 'point' or 'comma', as the figures are written")
        if role != "factor" and role in (each.role for each in found):
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
            raise Bad(lines.number, f"{len(words)} values under {len(header)} columns")
        if label := next((words[index] for index in texts if AVERAGE.fullmatch(words[index])), ""):
            labels[lines.number] = label.strip()
        table.append((lines.number, {role: words[index].strip() for role, index in place.items()}))
        # Only figures tell: a version (`8.0`) in another column says nothing of how numbers are written.
        others |= {words[index].strip() for role, index in place.items() if role in NUMBERS and "." in words[index]}
        extra[lines.number] = (
            {name: words[index].strip() for name, index in factors.items()},
            {header[index]: words[index].strip() for index in clocks},
        )
    if not table:
        raise Bad(lines.number, "there is no row below the columns' names")
    comma = _decimal_comma(table, delimiter, others, decimal)
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
    made = _runs(rows, units, "run" in place, {} if _each_row(asked, place) else extra, extra)
    notes = (
        [Warning_("average-row", f"{averages} average or total rows were left out: they repeat the others")]
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
            raise Bad(lines.number, f"no row of a table: {error}") from None


def _places(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    place = {}
    for each in asked:
        if each.role in ("factor", "decimal") or (
            each.role == "run" and each.name == EACH_ROW and EACH_ROW not in header
        ):
            continue
        fits = [index for index, name in enumerate(header) if name.lower() == each.name.lower()]
        if len(fits) != 1:
            how = "is not there" if not fits else f"stands there {len(fits)} times"
            raise Bad(line, f"column '{each.name}' {how}: {nearest(each.name, header)}")
        place[each.role] = fits[0]
    return place


def _factors(asked: list[Column], header: list[str], line: int) -> dict[str, int]:
    """Columns that are factors, by their names in the file, each with its place."""
    return {
        header[index]: index
        for each in asked
        if each.role == "factor"
        for index in _places([each._replace(role="")], header, line).values()
    }


def _each_row(asked: list[Column], place: dict[str, int]) -> bool:
    """Whether the map says that each row is a run."""
    return "run" not in place and any(each.role == "run" for each in asked)


def _numbers(line: int, row: dict[str, str], comma: bool) -> dict[str, float]:
    return {role: _number(line, text, comma) for role, text in row.items() if role in NUMBERS}


def _decimal_comma(table: list[tuple[int, dict[str, str]]], delimiter: str, others: set[str], said: str) -> bool:
    """Whether the figures have one, so that points are between thousands. Raises Bad where commas, or points, may be either.

    `others`: all figures of the file with a point; `said`: `point`, `comma` or nothing.
    """
    if said:
        return said == "comma"
    if delimiter == ",":
        return _points(table, delimiter, others)
    with_comma = [(line, text) for line, row in table for role, text in row.items() if role in NUMBERS and "," in text]
    if not with_comma:
        return _points(table, delimiter, others)
    if with_comma and all(THOUSANDS.fullmatch(re.sub(r"\s", "", text)) for _, text in with_comma):
        line, text = with_comma[0]
        raise Bad(
            line,
            f"'{text}' can be read in two ways: every comma here has three digits behind it, as between thousands: write figures "
            "with a point, and without commas, or say decimal=comma",
        )
    return True


def _points(table: list[tuple[int, dict[str, str]]], delimiter: str, others: set[str]) -> bool:
    """Whether points are between thousands, in a file without decimal commas. Raises Bad where they may be either.

    One figure anywhere that can only have a decimal point decides for all.
    """
    pointed = [
        (line, role, text) for line, row in table for role, text in row.items() if role in NUMBERS and "." in text
    ]
    if any(text.count(".") > 1 and GROUPED.fullmatch(text) for _, _, text in pointed):
        return True
    if any(NUMERIC.fullmatch(word) and word.count(".") == 1 and not GROUPED.fullmatch(word) for word in others):
        return False
    whole = {
        role for _, row in table for role, text in row.items() if role in NUMBERS and re.fullmatch(r"\d{1,3}", text)
    }
    for line, role, text in pointed:
        if GROUPED.fullmatch(text) and (delimiter != "," or role not in FRACTIONS or role in whole):
            raise Bad(
                line,
                f"'{text}' can be read in two ways: every point in these figures has three digits behind it, as between thousands: say "
                "decimal=point or decimal=comma in --columns",
            )
    return False


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


Extra = dict[int, tuple[dict[str, str], dict[str, str]]]
"""By line: the row's factors, and the columns that may count time."""


def _runs(rows: list[Row], units: dict[str, str], grouped: bool, doubted: Extra, extra: Extra) -> list[Reading]:
    """Rows put together by arm, workload, factors, clients and, where there is one, run; and each arm's average row, that doesn't say so,
    left out. `doubted`: empty where each row surely is a run."""
    by_arm: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (*(row[1].get(role, "") for role in ("arm", "workload", "clients")), *extra[row[0]][0].items())
        by_arm.setdefault(key, []).append(row)
    alike = not grouped and bool(doubted) and _alike(list(by_arm.values()))
    made = []
    for own in by_arm.values():
        arm, workload, clients = (own[0][1].get(role, "") for role in ("arm", "workload", "clients"))
        notes = []
        if not grouped and _average_of_others(own):
            text = f"line {own[-1][0]} is the average of the rows above it, without saying so: it was left out"
            notes.append(Warning_("average-row", text))
            own = own[:-1]
        runs: dict[str, list[Row]] = {}
        for row in own:
            runs.setdefault(row[1]["run"] if grouped else str(row[0]), []).append(row)
        if not grouped and doubted and (found := _of_one_run(own, doubted, alike)):
            text, parts = found
            notes.append(Warning_("rows-of-one-run", text))
            runs = {str(part[0][0]): part for part in parts}
        readings = [_reading(each, units, arm, workload, clients) for each in runs.values()]
        for each in readings:
            each.factors = extra[each.line][0]
        readings[0].notes += notes
        made += readings
    return made


def _of_one_run(rows: list[Row], extra: Extra, alike: bool) -> tuple[str, list[list[Row]]] | None:
    """(why, the rows of each run) where rows of one arm are reports of one run, or of some that follow each other; None: each is a run.

    `alike`: whether the table's rows are each like the one before. Raises Bad where the clock was given for a time that each row took.
    """
    otherwise = "if each row is a run of its own, say run=row in --columns"
    for name in extra[rows[0][0]][1]:
        stamps = [_stamp(extra[row[0]][1][name]) for row in rows]
        parts = _counted(rows, stamps)
        if parts is None:
            continue
        step = np.diff(np.array([_stamp(extra[row[0]][1][name]) for row in max(parts, key=len)])).min()
        if all(row[1].get("time") == extra[row[0]][1][name] for row in rows):
            text = f"column '{name}' counts up in equal steps: it is the clock, and not how long each row took: leave time={name} out"
            raise Bad(rows[0][0], text)
        runs_ = f"reports of {len(parts)} runs that follow each other" if len(parts) > 1 else "reports of one run"
        return (
            f"column '{name}' counts up in steps of {step:g}: the {len(rows)} rows are {runs_}, and no runs; {otherwise}",
            parts,
        )
    if len(rows) > MANY_ROWS:
        return (
            f"{len(rows)} rows of one arm, and no column that tells of runs, were taken for reports of one run; {otherwise}",
            [rows],
        )
    if alike and len(rows) > 1:
        return (
            f"each row is like the one before it, as reports of one run are: {len(rows)} rows were taken for one run; {otherwise}",
            [rows],
        )
    return None


def _counted(rows: list[Row], stamps: list[float]) -> list[list[Row]] | None:
    """The rows by run, each of which a clock counts in equal steps, and begins again with the next; None where it doesn't."""
    if not all(math.isfinite(each) for each in stamps):
        return None
    begins = [0, *(at for at in range(1, len(rows)) if stamps[at] <= stamps[at - 1]), len(rows)]
    parts = [rows[a:b] for a, b in itertools.pairwise(begins)]
    short = 0
    for first, last in itertools.pairwise(begins):
        steps = np.diff(np.array(stamps[first:last]))
        if len(steps) < LEAST_COUNTED - 1:
            short += last - first
            continue
        least = float(np.median(steps))
        near = ABOUT if least <= SHORT_STEP else EXACTLY
        # A report may be missing: then a step is a multiple of the others.
        if (
            least <= 0
            or np.abs(steps / least - np.maximum(1, np.round(steps / least))).max() > near
            or np.mean(steps < 1.5 * least) < 0.7
        ):
            return None
    return parts if 2 * short < len(rows) else None


def _stamp(text: str) -> float:
    """Seconds of `12.5`, `12,5`, `12:34:56`, `2026-11-21 12:34:56`, epochs in milliseconds too; nan: no time."""
    if match := re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)", text):
        return int(match[1] or 0) * 3600 + int(match[2]) * 60 + float(match[3].replace(",", "."))
    with contextlib.suppress(ValueError, OverflowError):
        value = float(text.replace(",", "."))
        return value / 1e3 if value > 1e11 else value
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
    return math.nan


def _alike(groups: list[list[Row]]) -> bool:
    """Whether rows are each like the one before, in all arms together."""
    names = [name for name in FIGURES if groups and all(name in row[2] for own in groups for row in own)]
    return bool(names) and depend([np.log(np.maximum([row[2][names[0]] for row in own], 1e-300)) for own in groups])


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
        digits=min(17, max(digits(text) for role, text in rows[0][1].items() if role in FIGURES) + len(rows) - 1),
        operations=round(sum(operations)) if "operations" in values[0] else 0,
        seconds=sum(times),
        started=min(stamped) if stamped else None,
        ended=max(stamped) if stamped else None,
        clock="utc" if stamped else "",
        figures=figures,
        series={single: series} if series else {},
        notes=notes,
    )
