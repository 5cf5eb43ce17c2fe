"""_csv_runs: rows of a table -> runs: each row is one, unless a column or the rows themselves say otherwise. Pure."""

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
"""Rows, of which a column that counts in equal steps is no chance."""
SHORT_STEP, ABOUT, EXACTLY = 10.0, 0.1, 0.001
"""Seconds from report to report, up to which steps may differ by a tenth; longer ones, as between runs, only by this."""
MANY_ROWS = 15
"""Of one arm, above which rows are taken for reports of one run: few repeat a run so often, and most reports come in scores."""
Row = tuple[int, dict[str, str], dict[str, float]]
Extra = dict[int, tuple[dict[str, str], dict[str, str]]]
"""By line: the row's factors, and the columns that may count time."""


def runs_of(rows: list[Row], units: dict[str, str], grouped: bool, doubted: Extra, extra: Extra) -> list[Reading]:
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


def sums_up_others(line: int, row: dict[str, str], comma: bool, above: list[Row]) -> bool:
    """Whether a row that names itself an average or a sum is one: of all rows above it, of its arm's, or without figures of its own."""
    try:
        own: Row = (line, row, numbers(line, row, comma))
    except Bad:
        return True
    names = [name for name in own[2] if name in FIGURES]
    alike = [each for each in above if each[1].get("arm") == row.get("arm")]
    arms = [[each for each in above if each[1].get("arm") == arm] for arm in {each[1].get("arm") for each in above}]
    for rows in (above, alike, *arms):
        means = [sum(each[2][name] for each in rows) / max(1, len(rows)) for name in names]
        for times in (1, len(rows)):
            if rows and all(
                abs(own[2][name] - mean * times) <= 0.51 * 10.0 ** -decimal_digits(row[name])
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
