"""Levels, costs with intervals and growth with load, from the record's runs. Pure.

A record has runs of two designs: `published` runs one whole arm before the other, `interleaved` alternates them.
"""

from __future__ import annotations

import math
import statistics as plain_statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.to_estimate import around
from ciphercost.model.spec import ARMS
from ciphercost.model.study import HostSample, StudyRecord, StudyRun

PUBLISHED, PILOT, INTERLEAVED = "", "pilot", "interleaved"
"""Values of a run's `design`."""
SECONDS, SERVER_CPU = "seconds", "server_cpu_s"
POSITIONS = (1.0, 2.0, 3.0, 4.0)
LEAST_POINTS = 3
"""Loads from which a straight line has an interval of its own."""
WHOLE = 0.9
"""Least share of the sampling interval for a sample to count; a run's last sample has any length."""

Key = tuple[str, float]
"""Operation and records."""


class Level(NamedTuple):
    """Mean over runs and their standard deviation (None for one run)."""

    mean: float
    sd: float | None
    n: int


class Cost(NamedTuple):
    """A figure with its 95 % interval (None: too few values), from n sessions or blocks."""

    value: float
    low: float | None
    high: float | None
    n: int
    of: str


def loads(record: StudyRecord) -> list[float]:
    """Loads in the record's settings, ascending."""
    return sorted(value for name, value in record.settings.items() if name.startswith("load_"))


def level(values: Sequence[float]) -> Level | None:
    """Mean ± sd; None without values."""
    if not values:
        return None
    return Level(fmean(values), plain_statistics.stdev(values) if len(values) > 1 else None, len(values))


# ── as published ──────────────────────────────────────────────────────────────────────────────────────────────────────


def as_published(runs: Iterable[StudyRun], engine: str) -> dict[Key, dict[str, list[StudyRun]]]:
    """Runs of the published procedure on one server, by operation and load, then by arm."""
    runs_by_key: dict[Key, dict[str, list[StudyRun]]] = {}
    for run in runs:
        if run.engine == engine and run.design == PUBLISHED:
            runs_by_key.setdefault((run.operation, run.load["records"]), {}).setdefault(run.arm, []).append(run)
    return runs_by_key


def seconds_of(runs: Sequence[StudyRun], series: str = SECONDS) -> Level | None:
    """`series`: what was timed. Records that don't have it timed nothing but the statements."""
    return level([run.series.get(series, run.series[SECONDS])[0] for run in runs])


def cpu_of(runs: Sequence[StudyRun]) -> Level | None:
    """CPU in per cent of the core, sys + user: each run's mean without its first sample; runs with no other sample are left out."""
    return level([fmean(row.user + row.system for row in rows) for run in runs if (rows := counted(run))])


def counted(run: StudyRun) -> list[HostSample]:
    """The run's samples without the first, and without a last one that is shorter than the others."""
    return [row for row in run.host[1:] if row.seconds >= WHOLE * run.host[0].seconds]


def memory_of(runs: Sequence[StudyRun]) -> Level | None:
    """MB in use, total − free: each run's mean of its samples."""
    used = [
        [(row.memory_available_bytes + row.memory_used_bytes - row.memory_free_bytes) / 1e6 for row in run.host]
        for run in runs
    ]
    return level([fmean(megabytes) for megabytes in used if megabytes])


def cost_of(arms: Mapping[str, Sequence[StudyRun]], series: str = SECONDS) -> float | None:
    """Mean encrypted ÷ mean plain; None if an arm is missing. `series`: as in `seconds_of`."""
    plain, encrypted = (seconds_of(arms.get(arm, ()), series) for arm in ARMS)
    return encrypted.mean / plain.mean if plain and encrypted and plain.mean > 0 else None


def headline(costs: Mapping[Key, float]) -> tuple[float, float | None] | None:
    """(mean over operations of the mean over loads of the ratio, its sd over the operations), as the study computes it; None without costs.

    The sd is that of a sample (n − 1). Only loads that every operation has count.
    """
    operations = sorted({name for name, _ in costs})
    loads = [load for load in sorted({load for _, load in costs}) if all((name, load) in costs for name in operations)]
    if not operations or not loads:
        return None
    means = [fmean(costs[name, load] for load in loads) for name in operations]
    return fmean(means), plain_statistics.stdev(means) if len(means) > 1 else None


# ── interleaved ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Block(NamedTuple):
    """Mean log level of each arm's two slices."""

    plain: float
    encrypted: float

    @property
    def value(self) -> float:
        """Encrypted − plain: the log ratio."""
        return self.encrypted - self.plain


Blocks = dict[Key, dict[int, list[Block]]]
"""By operation and load, then by session."""


def blocks(runs: Iterable[StudyRun], engine: str, workload: str, series: str = SECONDS) -> Blocks:
    """Complete blocks: four slices in mirrored order, all above zero."""
    slices: dict[tuple[str, float, int, int], dict[float, StudyRun]] = defaultdict(dict)
    for run in runs:
        if (run.engine, run.workload, run.design) == (engine, workload, INTERLEAVED) and run.load["position"]:
            load = run.load
            block_slices = slices[run.operation, load["records"], int(load["session"]), int(load["block"])]
            block_slices[load["position"]] = run
    complete: Blocks = {}
    for (operation, records, session, _), quad in sorted(slices.items()):
        if tuple(sorted(quad)) != POSITIONS:
            continue
        arms = [quad[position].arm for position in POSITIONS]
        values = [quad[position].series.get(series, [0.0])[0] for position in POSITIONS]
        if arms[0] == arms[1] or arms != [arms[0], arms[1], arms[1], arms[0]] or min(values) <= 0:
            continue
        by_arm = {arm: fmean(math.log(v) for a, v in zip(arms, values, strict=True) if a == arm) for arm in ARMS}
        complete.setdefault((operation, records), {}).setdefault(session, []).append(Block(**by_arm))
    return complete


def session_values(of: Mapping[int, Sequence[Block]]) -> dict[int, float]:
    """Hodges–Lehmann of each session's blocks, as log ratios."""
    return {
        session: statistics.hodges_lehmann(np.array([b.value for b in session_blocks]))
        for session, session_blocks in of.items()
    }


def ratio_of(of: Mapping[int, Sequence[Block]]) -> Cost | None:
    """Encrypted ÷ plain of one operation and load: t over sessions, or over the blocks of a single session."""
    values = session_values(of)
    if len(values) > 1:
        return _exp(list(values.values()), "sessions")
    return (
        _exp([block.value for session_blocks in of.values() for block in session_blocks], "blocks") if values else None
    )


def levels_of(of: Mapping[int, Sequence[Block]]) -> dict[str, float]:
    """Each arm's level by the estimator of `ratio_of`, so that encrypted ÷ plain is that ratio."""
    if (cost := ratio_of(of)) is None:
        return {}
    middles = [[(block.plain + block.encrypted) / 2 for block in session_blocks] for session_blocks in of.values()]
    if len(middles) > 1:
        level = fmean(statistics.hodges_lehmann(np.array(session_middles)) for session_middles in middles)
    else:
        level = fmean(middles[0])
    levels = around(level, math.log(cost.value))
    return {"plain": levels["plain"], "encrypted": levels["encrypted"]}


def headline_ours(of: Blocks) -> Cost | None:
    """The study's own headline for each session, then t over the sessions; sessions that lack a load are left out."""
    by_session: dict[int, dict[Key, float]] = defaultdict(dict)
    for key, sessions in of.items():
        for session, value in session_values(sessions).items():
            by_session[session][key] = math.exp(value)
    whole = [costs for costs in by_session.values() if len(costs) == len(of)]
    values = [math.log(mean_and_sd[0]) for costs in whole if (mean_and_sd := headline(costs))]
    return _exp(values, "sessions") if values else None


def _exp(values: Sequence[float], of: str) -> Cost:
    centre = fmean(values)
    if len(values) < 2:
        return Cost(math.exp(centre), None, None, len(values), of)
    array = np.array(values)
    interval = statistics.session_interval(array) if of == "sessions" else statistics.block_interval(array, centre)
    low, high = interval.bounds()
    return Cost(math.exp(centre), math.exp(low), math.exp(high), len(values), of)


# ── growth with load ──────────────────────────────────────────────────────────────────────────────────────────────────


class Line(NamedTuple):
    """log y = a + slope · log x by least squares; the slope's standard error needs LEAST_POINTS points."""

    slope: float
    error: float | None
    points: int


def line(points: Mapping[float, float]) -> Line | None:
    """Fit to (load, time), all above zero; None for fewer than two loads."""
    if len(points) < 2:
        return None
    x = np.log(np.array(list(points)))
    y = np.log(np.array(list(points.values())))
    across = x - x.mean()
    spread = float(across @ across)
    slope = float(across @ y) / spread
    if len(points) < LEAST_POINTS:
        return Line(slope, None, len(points))
    residuals = y - y.mean() - slope * across
    return Line(slope, math.sqrt(float(residuals @ residuals) / (len(points) - 2) / spread), len(points))


def exponent(of: Blocks, operation: str, arm: str) -> Cost | None:
    """b of time ~ load^b. From LEAST_POINTS loads on its interval is the fit's, t with n − 2; with two loads it is t over the sessions' slopes."""
    logs: dict[int, dict[float, float]] = defaultdict(dict)
    for (name, load), sessions in of.items():
        if name == operation:
            for session, session_blocks in sessions.items():
                logs[session][load] = fmean(getattr(block, arm) for block in session_blocks)
    loads = {load for by_load in logs.values() for load in by_load}
    whole = [by_load for by_load in logs.values() if len(by_load) == len(loads)]
    if len(loads) < 2 or not whole:
        return None
    if len(loads) >= LEAST_POINTS:
        fitted = line({load: math.exp(fmean(by_load[load] for by_load in whole)) for load in sorted(loads)})
        assert fitted is not None
        assert fitted.error is not None
        half = student_t.quantile((1 + statistics.LEVEL) / 2, fitted.points - 2) * fitted.error
        return Cost(fitted.slope, fitted.slope - half, fitted.slope + half, fitted.points, "loads")
    slopes = [fit.slope for by_load in whole if (fit := line({k: math.exp(v) for k, v in sorted(by_load.items())}))]
    if len(slopes) < 2:
        return Cost(slopes[0], None, None, 1, "sessions")
    interval = statistics.session_interval(np.array(slopes))
    return Cost(interval.centre, *interval.bounds(), len(slopes), "sessions")
