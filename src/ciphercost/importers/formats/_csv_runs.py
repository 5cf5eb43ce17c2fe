"""Groups the rows of a table into runs: each row is a run, unless a column or the rows themselves show otherwise. Pure."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import re

import numpy as np

from ciphercost.estimate.statistics import depend
from ciphercost.importers.csv_columns import FIGURES
from ciphercost.importers.formats import SECONDS, Bad, digits
from ciphercost.importers.formats._csv_numbers import decimal_digits, numbers
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

LEAST_COUNTED = 4
"""Rows needed before equal steps in a column count as a clock rather than as chance."""
SHORT_STEP, ABOUT, EXACTLY = 10.0, 0.1, 0.001
"""Up to SHORT_STEP seconds between reports, steps may differ by a tenth; longer ones, as between runs, only by a
thousandth.
"""
MANY_ROWS = 15
"""Above this many rows of one arm, rows count as reports of one run: few people repeat a run so often, and reports are
numerous.
"""
Row = tuple[int, dict[str, str], dict[str, float]]
Extra = dict[int, tuple[dict[str, str], dict[str, str]]]
"""By line: the row's factors, and the columns that may contain a clock."""


def runs_of(rows: list[Row], units: dict[str, str], grouped: bool, doubted: Extra, extra: Extra) -> list[Reading]:
    """Group rows by arm, workload, factors, clients and, if there is such a column, run. Drop each arm's unlabelled
    average row.

    `doubted`: empty if each row is certainly a run.
    """
    by_arm: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (*(row[1].get(role, "") for role in ("arm", "workload", "clients")), *extra[row[0]][0].items())
        by_arm.setdefault(key, []).append(row)
    alike = not grouped and bool(doubted) and _alike(list(by_arm.values()))
    all_readings = []
    for group in by_arm.values():
        arm, workload, clients = (group[0][1].get(role, "") for role in ("arm", "workload", "clients"))
        notes = []
        if not grouped and _average_of_others(group):
            text = f"line {group[-1][0]} is an unlabelled average of the rows above it; it was skipped"
            notes.append(Warning_("average-row", text))
            group = group[:-1]
        runs: dict[str, list[Row]] = {}
        for row in group:
            runs.setdefault(row[1]["run"] if grouped else str(row[0]), []).append(row)
        if not grouped and doubted and (reason_and_parts := _of_one_run(group, doubted, alike)):
            text, parts = reason_and_parts
            notes.append(Warning_("rows-of-one-run", text))
            runs = {str(part[0][0]): part for part in parts}
        readings = [_reading(run_rows, units, arm, workload, clients) for run_rows in runs.values()]
        for reading in readings:
            reading.factors = extra[reading.line][0]
        readings[0].notes += notes
        all_readings += readings
    return all_readings


def _of_one_run(rows: list[Row], extra: Extra, alike: bool) -> tuple[str, list[list[Row]]] | None:
    """Return (reason, rows of each run) if rows of one arm are reports of one or of consecutive runs; None: each row is
    a run.

    `alike`: whether each row of the table resembles the previous one. Raises Bad if a clock was mapped as the time that
    each row took.
    """
    otherwise = "if each row is a run, set run=row in --columns"
    for name in extra[rows[0][0]][1]:
        stamps = [_stamp(extra[row[0]][1][name]) for row in rows]
        parts = _counted(rows, stamps)
        if parts is None:
            continue
        step = np.diff(np.array([_stamp(extra[row[0]][1][name]) for row in max(parts, key=len)])).min()
        if all(row[1].get("time") == extra[row[0]][1][name] for row in rows):
            text = f"column '{name}' increases in equal steps, so it is a clock, not the time that each row took; remove time={name}"
            raise Bad(rows[0][0], text)
        runs_ = f"reports of {len(parts)} consecutive runs" if len(parts) > 1 else "reports of one run"
        return (
            f"column '{name}' increases in steps of {step:g}, so the {len(rows)} rows are {runs_}, not separate runs; {otherwise}",
            parts,
        )
    if len(rows) > MANY_ROWS:
        return (
            f"{len(rows)} rows of one arm and no column for runs: they count as reports of one run; {otherwise}",
            [rows],
        )
    if alike and len(rows) > 1:
        return (
            f"each row resembles the previous one, like reports of one run, so {len(rows)} rows count as one run; {otherwise}",
            [rows],
        )
    return None


def _counted(rows: list[Row], stamps: list[float]) -> list[list[Row]] | None:
    """Return the rows of each run if a clock increases in equal steps and restarts with each run; None otherwise."""
    if not all(math.isfinite(stamp) for stamp in stamps):
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
        # If a report is missing, its step is a multiple of the others.
        if (
            least <= 0
            or np.abs(steps / least - np.maximum(1, np.round(steps / least))).max() > near
            or np.mean(steps < 1.5 * least) < 0.7
        ):
            return None
    return parts if 2 * short < len(rows) else None


def _stamp(text: str) -> float:
    """Parse `12.5`, `12,5`, `12:34:56`, `2026-11-21 12:34:56` or an epoch, also in milliseconds, to seconds; nan: not a
    time.
    """
    if match := re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)", text):
        return int(match[1] or 0) * 3600 + int(match[2]) * 60 + float(match[3].replace(",", "."))
    with contextlib.suppress(ValueError, OverflowError):
        value = float(text.replace(",", "."))
        return value / 1e3 if value > 1e11 else value
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
    return math.nan


def _alike(groups: list[list[Row]]) -> bool:
    """Whether rows resemble the previous row, over all arms together."""
    names = [name for name in FIGURES if groups and all(name in row[2] for group in groups for row in group)]
    return bool(names) and depend([np.log(np.maximum([row[2][names[0]] for row in group], 1e-300)) for group in groups])


def sums_up_others(line: int, row: dict[str, str], comma: bool, above: list[Row]) -> bool:
    """Whether a row labelled average or sum is one: of all rows above it, or of its arm's, or a row without its own
    figures.
    """
    try:
        summary: Row = (line, row, numbers(line, row, comma))
    except Bad:
        return True
    names = [name for name in summary[2] if name in FIGURES]
    alike = [other for other in above if other[1].get("arm") == row.get("arm")]
    arms = [
        [other for other in above if other[1].get("arm") == arm] for arm in {other[1].get("arm") for other in above}
    ]
    for rows in (above, alike, *arms):
        means = [sum(other[2][name] for other in rows) / max(1, len(rows)) for name in names]
        for times in (1, len(rows)):
            if rows and all(
                abs(summary[2][name] - mean * times) <= 0.51 * 10.0 ** -decimal_digits(row[name])
                for name, mean in zip(names, means, strict=True)
            ):
                return True
    return False


def _average_of_others(rows: list[Row]) -> bool:
    if len(rows) < 4:
        return False
    names = [name for name in rows[0][2] if name not in ("clients", "at", "operations")]
    for name in names:
        digits = decimal_digits(rows[-1][1][name])
        above = [row[2][name] for row in rows[:-1]]
        if max(above) == min(above) or abs(rows[-1][2][name] - sum(above) / len(above)) > 0.51 * 10.0**-digits:
            return False
    return bool(names)


def _reading(rows: list[Row], units: dict[str, str], arm: str, workload: str, clients: str) -> Reading:
    line = rows[0][0]
    values = [row[2] for row in rows]
    figures: dict[str, float] = {}
    operations = [row_values.get("operations", 1.0) for row_values in values]
    times = [row_values["time"] * SECONDS[units["time"]] for row_values in values] if "time" in units else []
    notes = []
    if times:
        if min(times) <= 0 or sum(operations) <= 0:
            raise Bad(line, "the time or the number of operations is 0, so there is no rate")
        figures["throughput"] = sum(operations) / sum(times)
    if "throughput" in values[0]:
        rate = sum(row_values["throughput"] for row_values in values) / len(values)
        if rate <= 0:
            raise Bad(line, "a throughput of 0 can't be compared")
        if times and "operations" in values[0] and abs(rate / figures["throughput"] - 1) > 0.05:
            text = f"line {line}: operations and time give {figures['throughput']:,.4g} per second, but the column says {rate:,.4g}; a unit is wrong"
            notes.append(Warning_("contradiction", text))
        figures["throughput"] = rate
    if "latency" in units:
        figures["latency_mean"] = (
            sum(row_values["latency"] for row_values in values) / len(values) * SECONDS[units["latency"]] * 1e3
        )
        if figures["latency_mean"] <= 0:
            raise Bad(line, "a latency of 0 can't be compared")
    if "cpu" in units:
        scale = 100.0 if units["cpu"] == "share" else 1.0
        figures["host_busy"] = sum(row_values["cpu"] for row_values in values) / len(values) * scale
        if figures["host_busy"] > 100:
            raise Bad(line, f"{figures['host_busy']:.0f} % of CPU time in use is impossible; check the unit")
    single = "throughput" if "throughput" in figures else "latency_mean"
    raw = {"throughput": "throughput", "latency_mean": "latency"}[single]
    series = [row_values[raw] for row_values in values] if len(values) > 1 and raw in values[0] else []
    if not series and len(values) > 1 and times:
        series = [done / took for done, took in zip(operations, times, strict=True)]
    stamped = [row_values["at"] for row_values in values if row_values.get("at", 0) > 1e9]
    # Times of 13 digits are in milliseconds.
    stamped = [stamp / 1e3 if stamp > 1e11 else stamp for stamp in stamped]
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
