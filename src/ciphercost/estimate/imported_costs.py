"""The cost of one figure, with its interval, from both arms' imported runs. Pure.

The cost of a figure is the difference of the mean logs of both arms' runs, its interval Welch's:

    d = mean(ln e) − mean(ln p),   s² = s²ₑ/nₑ + s²ₚ/nₚ,   ν = s⁴ / ((s²ₑ/nₑ)²/(nₑ−1) + (s²ₚ/nₚ)²/(nₚ−1)),   d ± t(97.5 %, ν) · s

(Welch, "The generalization of 'Student's' problem when several different population variances are involved", Biometrika 34, 1947;
ν by Satterthwaite, Biometrics Bulletin 2, 1946.) Seconds within a run share its server start, its data and its time of day, so they
are not units. With a single run per arm they give no interval, only the least width that one would have, by batch means (Schmeiser,
"Batch size effects in the analysis of simulation output", Operations Research 30, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.statistics import Error, Floats, Interval
from ciphercost.model.imported import Reading
from ciphercost.model.result import Estimate, ImportedCost

EFFECT = math.log(1.05)
"""The difference that `runs_needed` must resolve."""
MOST_RUNS = 1000
FEWEST_BATCHES, MOST_BATCHES = 8, 20
FOLLOWING = "runs that follow each other"


def compared(name: str) -> bool:
    """Whether a figure is compared. Shares of a share have no meaningful ratio, nor have levels of the machine's memory."""
    return name in ("throughput", "client_cpu_per_op", "host_cpu_per_op", "host_busy") or name.startswith("latency_")


def values(name: str, runs: Sequence[Reading]) -> Floats:
    """Logs of one figure over the runs in which it is above 0."""
    return np.log(np.array([run.figures[name] for run in runs if run.figures.get(name, 0.0) > 0], dtype=np.float64))


def cost(name: str, plain: Sequence[Reading], encrypted: Sequence[Reading]) -> tuple[ImportedCost, Interval | None]:
    """One figure's cost, with its interval if both arms have at least two runs that are not all equal."""
    a, b = values(name, plain), values(name, encrypted)
    centre = (float(np.mean(b)) if len(b) else math.nan) - (float(np.mean(a)) if len(a) else math.nan)
    if not math.isfinite(centre):
        return ImportedCost(1.0, 0.0, 0.0, len(a), len(b)), None
    imported_cost = ImportedCost(
        math.exp(centre), math.exp(float(np.mean(a))), math.exp(float(np.mean(b))), len(a), len(b)
    )
    error = welch(a, b) if min(len(a), len(b)) >= 2 else None
    if error is None:
        half = within(name, plain, encrypted) if len(a) == len(b) == 1 else None
        if half is None:
            return imported_cost, None
        return msgspec.structs.replace(
            imported_cost, within_low=math.exp(centre - half), within_high=math.exp(centre + half)
        ), None
    errors: tuple[Error, ...] = (error,)
    if in_order(plain) and in_order(encrypted) and statistics.depend((a, b)):
        errors = (error, long_run(a, b))
    interval = Interval(centre, errors, len(a) + len(b))
    low, high = interval.bounds()
    needed = runs_needed(float(np.var(a, ddof=1)) + float(np.var(b, ddof=1)))
    return msgspec.structs.replace(imported_cost, low=math.exp(low), high=math.exp(high), runs_needed=needed), interval


def welch(plain: Floats, encrypted: Floats) -> Error | None:
    """Standard error of the difference of two means; None where no run differs from another, so that nothing is known of scatter."""
    parts = [float(np.var(logs, ddof=1)) / len(logs) for logs in (plain, encrypted)]
    whole = sum(parts)
    if math.sqrt(whole) <= statistics.ROUNDING:
        return None
    nu = whole**2 / sum(part**2 / (len(logs) - 1) for part, logs in zip(parts, (plain, encrypted), strict=True))
    method = f"Welch's t over {len(plain)} plain and {len(encrypted)} encrypted runs, ν = {nu:.1f}"
    return Error(math.sqrt(whole), nu, method)


def in_order(runs: Sequence[Reading]) -> bool:
    """Whether the runs stand in the order in which they were made: in one file, or with a time of each that increases."""
    times = [run.started for run in runs if run.started is not None]
    if len(times) == len(runs):
        return times == sorted(times)
    return len({run.file for run in runs}) == 1 and [run.line for run in runs] == sorted(run.line for run in runs)


def long_run(plain: Floats, encrypted: Floats) -> Error:
    """Standard error of the difference of two means of autocorrelated series: equal-weighted cosines, as few as Lazarus, Lewis, Stock and
    Watson (2018) advise for such; ν by Satterthwaite."""
    parts = [
        statistics.cosine_error(logs, min(len(logs) - 1, max(4, math.ceil(0.4 * len(logs) ** (2 / 3)))))
        for logs in (plain, encrypted)
    ]
    whole = sum(part.standard**2 for part in parts)
    nu = whole**2 / sum(part.standard**4 / part.nu for part in parts) if whole > 0 else parts[0].nu
    return Error(math.sqrt(whole), nu, f"long-run variance of {FOLLOWING} (equal-weighted cosines), ν = {nu:.1f}")


def estimate(imported_cost: ImportedCost, interval: Interval) -> Estimate:
    assert imported_cost.low is not None
    assert imported_cost.high is not None
    return Estimate(
        imported_cost.ratio,
        imported_cost.low,
        imported_cost.high,
        n=interval.n,
        method=interval.method(),
        p_value=interval.p_value(),
        unit="run",
    )


def within(name: str, plain: Sequence[Reading], encrypted: Sequence[Reading]) -> float | None:
    """Half-width of the log ratio of two runs by the scatter within each alone: batch means."""
    parts = []
    for run in (*plain, *encrypted):
        series = np.array(run.series.get(name, []), dtype=np.float64)
        if name not in run.figures:
            continue
        batches = min(MOST_BATCHES, len(series) if len(series) < 2 * FEWEST_BATCHES else len(series) // 2)
        if batches < FEWEST_BATCHES or not series.mean() > 0:
            return None
        means = np.array([float(batch.mean()) for batch in np.array_split(series, batches)])
        parts.append((float(np.std(means, ddof=1)) / math.sqrt(batches) / float(series.mean()), batches - 1))
    if len(parts) != 2 or not any(error > 0 for error, _ in parts):
        return None
    variance = sum(error**2 for error, _ in parts)
    nu = variance**2 / sum(error**4 / freedom for error, freedom in parts)
    return student_t.quantile(0.975, nu) * math.sqrt(variance)


def runs_needed(variance: float) -> int | None:
    """Runs of each arm to find a difference of 5 % (95 % level, 80 % power) where the arms' variances make this sum; None: above a thousand."""
    for runs in range(2, MOST_RUNS + 1):
        nu = 2 * (runs - 1)
        if (student_t.quantile(0.975, nu) + student_t.quantile(statistics.POWER, nu)) * math.sqrt(
            variance / runs
        ) <= EFFECT:
            return runs
    return None


IMPORTED = ("throughput", "latency_mean", "latency_p50", "latency_p99", "host_busy")
"""Candidates for the metric of an imported verdict: the first that has an interval counts."""
