"""Text on a trend: its answer, its levels and changes, and what each run adds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate import correlated_runs
from ciphercost.report.comparison_types import Change
from ciphercost.report.trend_types import Level, Point, Series, Shift, Trend
from ciphercost.report.words import added_text, figure_text
from ciphercost.report.words.comparison_text import listed


def headline(of: Trend) -> str:
    """The answer in one sentence."""
    runs_text = f"{len(of.runs)} runs, {span(of)}"
    if not of.series:
        return f"{runs_text}: no cell was measured in two of them, so there is no trend"
    tested = [series for series in of.series if series.found != "too-few"]
    if not tested:
        return f"{runs_text}: too few to say whether a cost changed; {of.least_runs} runs of a cell are needed"
    changed = [series for series in tested if series.found == "changed"]
    cells = f"{len(tested)} cell{'s' * (len(tested) != 1)}"
    answer = (
        f"the cost changed in {len(changed)} of {cells}" if changed else f"no change of the cost was found in {cells}"
    )
    few = len(of.series) - len(tested)
    return f"{runs_text}: {answer}" + (f"; {few} more {'has' if few == 1 else 'have'} too few runs" if few else "")


def span(of: Trend) -> str:
    """`2026-10-01 to 2026-11-23`."""
    first, last = of.runs[0].started[:10], of.runs[-1].started[:10]
    return first if first == last else f"{first} to {last}"


def when(of: Trend, run: int) -> str:
    """`2026-10-01 14:03`."""
    return of.runs[run].started[:16].replace("T", " ")


def number(series: Series, point: int) -> int:
    """The number of a point's run, from 1, as reports print it."""
    return series.points[point].run + 1


def cost(series: Series, of: Point | Level) -> str:
    """`24.9 % fewer`."""
    return figure_text.cost(series.metric, of.estimate)


def bounds(series: Series, of: Point | Level) -> str:
    """`24.1–25.7 %`."""
    return figure_text.bounds(series.metric, of.estimate)


def runs_of(series: Series, level: Level) -> str:
    """`runs 1–14`."""
    first, last = number(series, level.first), number(series, level.last)
    return f"run {first}" if first == last else f"runs {first}–{last}"


def shift_text(of: Trend, series: Series, shift: Shift) -> str:
    """What changed, by how much, and since when."""
    before, after = around(series, shift)
    ratios = figure_text.both(cost(series, before), cost(series, after), " → ")
    run = number(series, shift.point)
    change = figure_text.cost(series.metric, shift.change)
    interval = figure_text.bounds(series.metric, shift.change)
    p = shift.change.p_value or 0.0
    surely = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    text = f"the cost is {'higher' if shift.higher else 'lower'} from run {run} on ({when(of, series.points[shift.point].run)}): "
    if before.added is not None and after.added is not None and before.added.key == after.added.key:
        both = added_text.from_to(added_text.part(before.added.added), added_text.part(after.added.added))
        text += f"{both} of {after.added.whose} per operation; "
    text += f"{ratios} {series.label}; changed by {change} (95 % CI {interval}, {surely})"
    if shift.earliest < shift.latest:
        text += f"; it began with one of runs {number(series, shift.earliest)} to {number(series, shift.latest)}"
    return text


def around(series: Series, shift: Shift) -> tuple[Level, Level]:
    """The levels before and after a change."""
    before = next(level for level in series.levels if level.last == shift.point - 1)
    return before, next(level for level in series.levels if level.first == shift.point)


def candidates(series: Series, shift: Shift) -> str:
    """`what else changed there: kernel 6.1 → 6.6 (run 15)`."""
    if not shift.candidates:
        return "nothing else that the runs record changed there"
    changes = [f"{listed([change])} (run {number(series, point)})" for point, change in shift.candidates]
    return f"what else changed there, and may be the cause: {'; '.join(changes)}"


def verdict(of: Trend, series: Series) -> str:
    """Whether the cost changed, as text; the changes themselves are listed beside it."""
    count = len(series.points)
    runs = f"{count} run{'s' * (count != 1)}"
    if series.found == "too-few":
        return f"{runs} with a number: too few to say whether the cost changed; {of.least_runs} are needed"
    p = series.p_value or 0.0
    surely = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    if series.found == "changed":
        changes = len(series.shifts)
        return f"the cost changed {'once' if changes == 1 else f'{changes} times'} in {runs} ({surely}){independent(series)}"
    if series.withheld:
        return f"no change is sure in {runs}{independent(series)}"
    answer = f"no change found in {runs} ({surely})"
    if series.smallest_step is None:
        return f"{answer}; but so few runs show only very large changes"
    step = series.smallest_step
    size = f"of {100 * step:.2g} %" if step < 0.995 else f"by a factor of {1 + step:.2g}"
    return f"{answer}; a lasting change {size} or more would probably have been found"


def independent(series: Series) -> str:
    """What the correlation of the runs means for the changes that were found: `; neighbouring runs are alike (…) …`, or empty."""
    count, rho = len(series.points), series.correlation
    if rho is None:
        return ""
    alike = (
        f"neighbouring runs are alike (correlation {rho:.1f}): {count} of them are worth about "
        f"{correlated_runs.worth(count, rho):.0f} independent ones"
    )
    if series.withheld:
        changes = f"{series.withheld} change{'s' * (series.withheld != 1)}"
        return (
            f": {alike}, and such runs often show {changes} like what was found without any; spread them over more time"
        )
    text = f"; {alike}" if rho else ""
    if count < correlated_runs.FEW:
        text += (
            f"; with fewer than {correlated_runs.FEW} runs, runs that are alike for a while can't be told from a change: "
            "if they came close in time, repeat some of them later"
        )
    return text


def events(series: Series) -> Iterator[tuple[int, list[Change]]]:
    """(point, what differs from the point before), for points where something does."""
    for point, run_point in enumerate(series.points):
        if run_point.changed:
            yield point, run_point.changed


def marks(series: Series, point: int) -> str:
    """What a table prints beside a run: a new level, and what changed since the run before."""
    shift = next((shift for shift in series.shifts if shift.point == point), None)
    remarks = [f"cost {'higher' if shift.higher else 'lower'} from here"] if shift else []
    return "; ".join([*remarks, *([listed(series.points[point].changed)] if series.points[point].changed else [])])


def machines(of: Trend) -> list[str]:
    """A line for each machine, if there are several."""
    return [f"{name}: {numbers(runs)}" for name, runs in of.machines]


def numbers(runs: Sequence[int]) -> str:
    """`runs 1–3, 5`, of numbers from 0."""
    parts: list[list[int]] = []
    for run in runs:
        if parts and parts[-1][-1] == run - 1:
            parts[-1].append(run)
        else:
            parts.append([run])
    ranges = [str(part[0] + 1) if len(part) == 1 else f"{part[0] + 1}–{part[-1] + 1}" for part in parts]
    return f"run{'s' * (len(runs) != 1)} {', '.join(ranges)}"


LOUD = "DIFFERENT MACHINES: a change may come from the machine"
FEW = "`ciphercost compare RUN RUN` tells whether two runs differ"
ONCE = "measured in one run only, so they have no trend"
METHOD = (
    "A change is a contrast between consecutive runs that at most 5 % of random orders of the same runs show, whatever "
    "their scatter (binary segmentation; METHODOLOGY.md, Trends). Its size is estimated where it is largest, so it is rather "
    "too large than too small."
)


# ── what encryption adds ──────────────────────────────────────────────────────────────────────────────────────────────

MOST_SENTENCES = 3
"""Cells of which each has a sentence on what is added; of more the table and the sections tell it."""


def newest(series: Series) -> Level | Point | None:
    """The newest level, or where there is none the newest run; None: no run has a number."""
    return series.levels[-1] if series.levels else series.points[-1] if series.points else None


def added(of: Trend) -> Iterator[str]:
    """What encryption adds to an operation in the newest runs, a sentence for each cell, if they are few."""
    known = [series for series in of.series if (last := newest(series)) is not None and last.added is not None]
    for series in known if len(known) <= MOST_SENTENCES else []:
        yield f"{series.title}: {added_now(series)}." if len(known) > 1 else f"{capital(added_now(series))}."


def added_now(series: Series) -> str:
    """`runs 13–20 add 6.0 µs of server CPU …: 13 → 19 µs, 46 % more`; empty: unknown."""
    last = newest(series)
    if last is None or last.added is None:
        return ""
    who = runs_of(series, last) if isinstance(last, Level) else f"run {last.run + 1}"
    return f"in {who} encryption {added_text.adds(last.added)}: {added_text.base(last.added)}"


def capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def tells_added(series: Series) -> bool:
    """Whether a run of the cell tells what encryption adds."""
    return any(point.added is not None for point in series.points)


HEAD = ("run", "began")
ADDED = ("adds to CPU/op", "95 % interval")


def head_of_runs(series: Series) -> tuple[str, ...]:
    """Head of `rows_of_runs`."""
    figures = (*ADDED, series.label) if tells_added(series) else (series.label, "95 % interval")
    return (*HEAD, *figures, "changed")


def rows_of_runs(of: Trend, series: Series) -> Iterator[tuple[str, ...]]:
    """A row for each run: what is added, if a run tells it, then the ratio; last what changed before it."""
    for at, point in enumerate(series.points):
        ratio, interval = cost(series, point), bounds(series, point)
        figures: tuple[str, ...] = (ratio, interval)
        if tells_added(series):
            added_ = added_text.figures(point.added) if point.added is not None else ("", "")
            figures = (*added_, f"{ratio} ({interval})")
        yield f"{point.run + 1}", when(of, point.run), *figures, marks(series, at)
