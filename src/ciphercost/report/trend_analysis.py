"""The cost of each cell over several runs, and where it changed. Pure.

Runs are ordered by the time at which they began. Cells are matched as `compare` matches them, except that another version
of the server or client is still the same cell: an update is what a trend is to find. `estimate.history` has the method.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ciphercost.estimate import correlated_runs, failures, history, statistics
from ciphercost.estimate.statistics import ALPHA, Interval
from ciphercost.host.procfs import alike
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.report.compare_pair import ACHIEVED, in_common
from ciphercost.report.comparison import MACHINE
from ciphercost.report.comparison_types import Change, Run, Side
from ciphercost.report.match_cells import changes, match, unlike
from ciphercost.report.trend_types import Found, Gap, Level, Point, Series, Shift, Trend
from ciphercost.report.words import added_text, cell_text, figure_text, verdict_text

FORMAT = 1
DONE, ROSE = 0, 3
"""Exit statuses. ROSE: with --fail-on-rise, the last change of a cell made encryption cost more."""
LARGEST = 10.0
"""Largest factor that is stated as the smallest step that would have been found."""
MAY_CHANGE = {"server version", "client"}
"""Parts of a cell's request that may differ within a series."""


class _Cells(NamedTuple):
    """The cells of one series: (run, number of the cell there)."""

    members: list[tuple[int, int]]


def trend(runs: Sequence[Run], *, fail_on_rise: bool = False) -> Trend:
    """The trend of at least two runs; a run that is given twice counts once. Raises UsageError."""
    ordered = _in_order(runs)
    every = [cells for cells in _matched(ordered) if len(cells.members) > 1]
    once = sum(len(run.result.cells) for run in ordered) - sum(len(cells.members) for cells in every)
    known = [_known(ordered, cells) for cells in every]
    series, least = _tested(ordered, known)
    rose = any(cell_series.shifts and cell_series.shifts[-1].higher for cell_series in series)
    return Trend(
        format=FORMAT,
        runs=[_side(run) for run in ordered],
        least_runs=least,
        series=series,
        once=once,
        machines=_machines(ordered),
        exit_status=ROSE if fail_on_rise and rose else DONE,
    )


def _in_order(runs: Sequence[Run]) -> list[Run]:
    by_id = {run.result.id: run for run in reversed(runs)}
    ordered = sorted(by_id.values(), key=lambda run: (_began(run), run.result.id))
    if len(ordered) < 2:
        raise UsageError(
            f"trend needs at least two runs, and got {len(ordered)}: give several runs, or a directory that holds them"
        )
    return ordered


def _began(run: Run) -> datetime:
    try:
        began = datetime.fromisoformat(run.result.started)
    except ValueError:
        raise UsageError(
            f"{run.name}: its start '{run.result.started}' is not a time, so it has no place in a trend; leave it out"
        ) from None
    return began if began.tzinfo else began.replace(tzinfo=UTC)


def _side(run: Run) -> Side:
    cells = run.result.cells
    mode = cells[0].mode if cells else "full"
    return Side(run.name, run.result.id, run.result.started, mode, len(cells), run.result.command)


# ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _matched(runs: Sequence[Run]) -> list[_Cells]:
    """Each run's cells are matched with the newest cell of every series."""
    series: list[_Cells] = []
    for number, run in enumerate(runs):
        newest = [runs[cells.members[-1][0]].result.cells[cells.members[-1][1]] for cells in series]
        pairs, (_, alone) = match(newest, run.result.cells)
        for of, cell in pairs:
            if {change.name for change in unlike(newest[of], run.result.cells[cell])} <= MAY_CHANGE:
                series[of].members.append((number, cell))
            else:
                alone.append(cell)
        series += [_Cells([(number, cell)]) for cell in sorted(alone)]
    return series


class _Known(NamedTuple):
    """A series before it is tested."""

    title: str
    metric: str
    label: str
    points: list[Point]
    intervals: list[Interval]
    gaps: list[Gap]


def _known(runs: Sequence[Run], of: _Cells) -> _Known:
    cells = {run: runs[run].result.cells[cell] for run, cell in of.members}
    first, last = cells[of.members[0][0]], cells[of.members[-1][0]]
    metric = next((lead for cell in reversed(cells.values()) if (lead := figure_text.lead_metric(cell))), "")
    points: list[Point] = []
    intervals: list[Interval] = []
    gaps: list[Gap] = []
    before: dict[str, Any] | None = None
    for run, number in of.members:
        cell, interval = cells[run], runs[run].intervals[number].get(metric)
        if failures.differ(cell.failures):
            gaps.append(Gap(run, f"one arm fails more often, so its cost is not known: {verdict_text.failing(cell)}"))
            continue
        if interval is None:
            gaps.append(Gap(run, _no_number(cell, metric)))
            continue
        facts = _facts(runs[run].result, cell)
        differ = _differ(before, facts) if before is not None else []
        points.append(Point(run, number, cell.overhead[metric], differ, added_text.of(cell)))
        intervals.append(interval)
        before = facts
    label = figure_text.label(last, metric) if metric else ""
    return _Known(in_common(first, last), metric, label, points, intervals, gaps)


def _no_number(cell: Cell, metric: str) -> str:
    if cell.imported is not None:
        return "imported figures are not proven"
    if cell.status != "ok":
        return cell_text.without_number(cell)
    return f"it has no interval for {figure_text.LABELS.get(metric, metric)}" if metric else "it has no figures"


def _facts(result: Result, cell: Cell) -> dict[str, Any]:
    """What may explain a change of the cost, by name."""
    facts: dict[str, Any] = {"server version": cell.version, "client": cell.client}
    facts |= {name.replace("_", " "): cell.encryption.get(name) for name in ACHIEVED}
    facts |= {f"machine {name}": result.machine.get(name) for name in MACHINE}
    # Which cores they are changes from run to run without a reason; how many does not.
    facts |= {f"number of cores of {name}": _count(value) for name, value in cell.cores.items()}
    facts |= {
        f"{result.tool.get('name', 'tool')} {name}": value for name, value in result.tool.items() if name != "name"
    }
    return facts | {"mode": cell.mode}


def _count(cores: str) -> str:
    """`4` of the list of cores `0-2,5`; any other text as it is."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", cores):
        return cores
    ranges = [[int(end) for end in part.split("-")] for part in cores.split(",")]
    return str(sum(core_range[-1] - core_range[0] + 1 for core_range in ranges))


def _differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    same = {name for name in now if alike(name.removeprefix("machine "), before.get(name), now.get(name))}
    differences = changes(before, now, [name for name in {**before, **now} if name not in same])
    return [
        msgspec.structs.replace(change, name=change.name.removeprefix("machine "))
        for change in differences
        if change.reference or change.other
    ]


def _machines(runs: Sequence[Run]) -> list[tuple[str, list[int]]]:
    by_machine: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        machine = run.result.machine
        cores = machine.get("cores")
        text = ", ".join(filter(None, (str(machine.get("cpu") or ""), f"{cores} cores" if cores else "")))
        by_machine.setdefault(text or "unknown", []).append(number)
    return list(by_machine.items()) if len(by_machine) > 1 else []


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tested(runs: Sequence[Run], known: Sequence[_Known]) -> tuple[list[Series], int]:
    """The series, and the fewest runs that a tested one has."""
    least = history.least_runs(max(1, sum(len(known_series.points) >= history.least_runs(1) for known_series in known)))
    samples = [
        history.series(known_series.intervals) if len(known_series.points) >= least else None for known_series in known
    ]
    tests = [history.one_level(sample) if sample is not None else None for sample in samples]
    corrected = iter(statistics.holm([test.p_value for test in tests if test is not None]))
    tested = []
    for known_series, sample, test in zip(known, samples, tests, strict=True):
        if sample is None or test is None:
            tested.append(_series(known_series, "too-few", [], []))
            continue
        p = next(corrected)
        # The level of the parts of a series that changed is that at which Holm's correction tested the whole.
        level = ALPHA * test.p_value / p if p > 0 else ALPHA
        at = history.changes(sample, test, min(ALPHA, level)) if p < ALPHA else []
        levels, shifts = _levels(runs, known_series, sample, at)
        correlated, withheld = None, 0
        if shifts:
            correlated = correlated_runs.test(sample, [0, *(shift.point for shift in shifts), len(sample.values)])
            if correlated.p_value >= ALPHA and len(known_series.points) >= correlated_runs.FEW:
                withheld = len(shifts)
                levels, shifts = _levels(runs, known_series, sample, [])
        series = _series(known_series, "changed" if shifts else "unchanged", levels, shifts)
        step = (
            math.expm1(test.smallest_step)
            if not shifts and not withheld and test.smallest_step < math.log(LARGEST)
            else None
        )
        tested.append(msgspec.structs.replace(series, p_value=p, smallest_step=step))
        if correlated is not None:
            tested[-1] = msgspec.structs.replace(tested[-1], correlation=correlated.rho, withheld=withheld)
    return tested, least


def _series(of: _Known, outcome: Found, levels: list[Level], shifts: list[Shift]) -> Series:
    return Series(of.title, of.metric, of.label, outcome, of.points, levels, shifts, of.gaps)


def _levels(runs: Sequence[Run], of: _Known, sample: history.Series, at: list[int]) -> tuple[list[Level], list[Shift]]:
    margin = max((run.result.spec.margin for run in runs if run.result.spec), default=0.01)
    certain_levels = history.certain(sample, at, math.log1p(margin))
    levels = [
        Level(
            first,
            last - 1,
            _estimate(mean, "encrypted ÷ plain"),
            added_text.over([point.added for point in of.points[first:last]]),
        )
        for (first, last), mean in zip(itertools.pairwise(certain_levels.edges), certain_levels.means(), strict=True)
    ]
    shifts = []
    for number, difference in enumerate(certain_levels.differences()):
        earliest, latest = certain_levels.place(number)
        candidates = [
            (point, candidate) for point in range(earliest, latest + 1) for candidate in of.points[point].changed
        ]
        change = _estimate(difference, "ratio of ratios")
        higher = (change.ratio < 1) == (of.metric == "throughput")
        shifts.append(Shift(certain_levels.edges[number + 1], earliest, latest, change, higher, candidates))
    return levels, shifts


def _estimate(interval: Interval, unit: str) -> Estimate:
    low, high = interval.bounds()
    ratio, low, high = (math.exp(value) for value in (interval.centre, low, high))
    p = interval.p_value() if unit == "ratio of ratios" else None
    return Estimate(ratio, low, high, n=interval.n, method=interval.method(), p_value=p, unit=unit)
