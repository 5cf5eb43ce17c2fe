"""What several machines' costs have in common: the overall cost, that of each CPU model, and the variance between machines. Pure.

The model: machine i has the true log ratio μ + bᵢ, where bᵢ has variance τ²; its run estimates that with a standard error eᵢ of its own,
over its sessions. Every machine measures for the same time, so the model is balanced: the mean of the machines is the best linear
estimate of μ, and t over machines is its interval, whatever each machine's own noise (Ibragimov and Müller 2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ciphercost.estimate import f_distribution, failures, statistics, student_t, totals
from ciphercost.estimate.statistics import ALPHA, LEVEL, ROUNDING, Error, Interval
from ciphercost.estimate.to_estimate import to_estimate, with_totals
from ciphercost.estimate.verdict import judge
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.machines import Between, MachineCost, OverMachines, TypeCost
from ciphercost.model.result import Estimate, Failures
from ciphercost.model.spec import Mode

UNIT = "machine"


class OnMachine(NamedTuple):
    """One cell on one machine."""

    machine: str
    host: str
    """Empty: unknown."""
    cpu: str
    intervals: Mapping[str, Interval]
    """The log ratio of each metric, and of its totals, with its standard errors."""
    overhead: Mapping[str, Estimate]
    failures: Failures | None = None


def together(intervals: Sequence[Interval]) -> Interval:
    """The log ratio over k ≥ 1 machines: their unweighted mean, with t on k − 1 degrees of freedom.

    With one machine its own interval, which says nothing about other machines. Like each machine's own, the interval is that of the values that
    the standard errors belong to, and contains the mean of the centres.
    """
    if len(intervals) == 1:
        return intervals[0]
    centre = float(np.mean([interval.centre for interval in intervals]))
    values = np.array([interval.middle for interval in intervals])
    return Interval(centre, (statistics.t_error(values, "machines"),), len(values), mean=float(values.mean()))


def between(intervals: Sequence[Interval]) -> Between:
    """The variance between k ≥ 2 machines, by the method of moments: τ² = s² − mean(eᵢ²), at least 0.

    s² is the variance of the machines' estimates. In a balanced model τ² is the REML estimate (Searle, Casella and McCulloch,
    *Variance Components*, 1992). s² ÷ mean(eᵢ²) has an F distribution if machines don't differ, with k − 1 and, by
    Satterthwaite, ν degrees of freedom; its quantiles also bound τ (Wald, Annals of Mathematical Statistics 1940).
    """
    values = np.array([interval.middle for interval in intervals])
    errors = [widest(interval) for interval in intervals]
    variances = np.array([error.standard**2 for error in errors])
    nus = np.array([error.nu for error in errors])
    k, scatter, noise = len(values), float(np.var(values, ddof=1)), float(variances.mean())
    if noise <= ROUNDING**2:  # counts that are equal in every block leave nothing to chance
        sd = math.sqrt(scatter) if scatter > ROUNDING**2 else 0.0
        return Between(sd, sd, sd, float(not sd))
    nu = float(variances.sum() ** 2 / (variances**2 / nus).sum())
    ratio = scatter / noise
    lower, upper = (
        _sd(scatter / f_distribution.quantile(q, k - 1, nu) - noise) for q in ((1 + LEVEL) / 2, (1 - LEVEL) / 2)
    )
    return Between(_sd(scatter - noise), lower, upper, f_distribution.upper_tail(ratio, k - 1, nu))


def _sd(variance: float) -> float:
    return math.sqrt(max(0.0, variance))


def widest(of: Interval) -> Error:
    """The standard error that sets the width of a machine's own interval."""
    return max(of.errors, key=lambda error: student_t.quantile((1 + LEVEL) / 2, error.nu) * error.standard)


# ── one cell over machines ────────────────────────────────────────────────────────────────────────────────────────────


def over_machines(cells: Sequence[OnMachine], mode: Mode) -> dict[str, OverMachines]:
    """Every metric that at least one machine has, over all machines that have it."""
    names = dict.fromkeys(name for cell in cells for name in cell.overhead if name in cell.intervals)
    return {name: _metric(name, [cell for cell in cells if name in cell.intervals], mode) for name in names}


def _metric(name: str, cells: Sequence[OnMachine], mode: Mode) -> OverMachines:
    models: dict[str, list[OnMachine]] = {}
    for cell in cells:
        models.setdefault(cell.cpu, []).append(cell)
    intervals = [cell.intervals[name] for cell in cells]
    return OverMachines(
        overall=estimate(name, cells, mode),
        covers=covers(cells),
        machines=[MachineCost(cell.machine, cell.overhead[name]) for cell in cells],
        types=[
            TypeCost(
                cpu, [cell.machine for cell in model_cells], estimate(name, model_cells, mode), covers(model_cells)
            )
            for cpu, model_cells in sorted(models.items(), key=lambda model: (-len(model[1]), model[0]))
        ],
        between=between(intervals) if len(intervals) > 1 else None,
    )


def estimate(name: str, cells: Sequence[OnMachine], mode: Mode) -> Estimate:
    """One metric over these machines. With one machine, what its own run says."""
    if len(cells) == 1:
        return cells[0].overhead[name]
    combined = to_estimate(interval(name, cells), "full", UNIT)
    key = totals.key(name)
    if mode == "quick":
        combined = msgspec.structs.replace(combined, method=f"{combined.method}; one start each")
    return with_totals(combined, interval(key, cells) if all(key in cell.intervals for cell in cells) else None)


def interval(key: str, cells: Sequence[OnMachine]) -> Interval:
    """The log ratio of a metric, or of its totals, over these machines."""
    return together([cell.intervals[key] for cell in cells])


def hosts(cells: Sequence[OnMachine]) -> int:
    """On how many hosts these machines run. One whose host is unknown counts as a host of its own."""
    return len({cell.host or f"of {cell.machine}" for cell in cells})


def covers(cells: Sequence[OnMachine]) -> str:
    """What an interval over these machines covers, in words."""
    if len(cells) == 1:
        return f"one machine ({cells[0].machine}), and no other"
    count = hosts(cells)
    if count == 1:
        return f"{len(cells)} nodes of one host, and no other host"
    shared = f" on {count} hosts" if count < len(cells) else ""
    return f"{len(cells)} machines{shared}, and others of which these are a fair sample"


def verdicts(
    cells: Sequence[Sequence[OnMachine]], metrics: Sequence[str], mode: Mode, margin: float
) -> list[Verdict | None]:
    """The verdict on each cell over its machines, with Holm's correction for their number. None: no number."""
    verdicts: list[Verdict | None] = []
    p_values: dict[int, float] = {}
    for number, (on_machines, name) in enumerate(zip(cells, metrics, strict=True)):
        known = [cell for cell in on_machines if name in cell.intervals]
        if not known:
            verdicts.append(None)
            continue
        whole, key = interval(name, known), totals.key(name)
        of_totals = interval(key, known) if all(key in cell.intervals for cell in known) else None
        failing = failures.key(name)
        of_failures = together([cell.intervals.get(failing, cell.intervals[name]) for cell in known])
        one_fails = failures.differ(failures.together([cell.failures for cell in known]))
        judged = judge(
            whole,
            of_totals,
            mode if len(known) == 1 else "full",
            margin,
            of_failures if any(failing in cell.intervals for cell in known) else None,
            one_fails=one_fails,
        )
        verdicts.append(judged.verdict)
        p_values[number] = whole.p_value()
    for number, p_value in zip(p_values, statistics.holm(list(p_values.values())), strict=True):
        if verdicts[number] == "differs" and p_value >= ALPHA:
            verdicts[number] = "unresolved"
    return verdicts
