"""What several cells add to an operation: the difference between two of them, and the mean over runs or machines. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ciphercost.estimate import statistics, student_t
from ciphercost.model.result import Added, Estimate, Part


def difference(reference: Part, other: Part) -> Part:
    """`other` − `reference`, of two independent figures, with the interval that follows from theirs.

    The square root of the sum of both distances squared, each to the bound on its side (MOVER: Zou and Donner, Statistics in Medicine 2008).
    It needs no standard errors, and is at least as wide as Welch's interval.
    """
    value = other.value - reference.value
    below = math.hypot(other.value - other.low, reference.high - reference.value)
    above = math.hypot(other.high - other.value, reference.value - reference.low)
    return Part(value, value - below, value + above)


def mean(added: Sequence[Added]) -> Added:
    """The unweighted mean of k ≥ 1 figures, with t on k − 1 degrees of freedom. Of one its own interval, which covers that one alone."""
    if len(added) == 1:
        return added[0]
    values = np.array([figure.mean for figure in added])
    centre, half = float(values.mean()), _half(values)
    return Added(centre, centre - half, centre + half, statistics.t_error(values).standard, len(added))


def mean_ratio(ratios: Sequence[Estimate]) -> Estimate:
    """The geometric mean of k ≥ 1 ratios, with t of their logs on k − 1 degrees of freedom; of one itself."""
    if len(ratios) == 1:
        return ratios[0]
    logs = np.log([estimate.ratio for estimate in ratios])
    centre, half = float(logs.mean()), _half(logs)
    ratio, low, high = (math.exp(centre + offset) for offset in (0.0, -half, half))
    return Estimate(ratio, low, high, n=len(ratios))


def _half(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    error = statistics.t_error(values)
    return error.standard * student_t.quantile(0.975, error.nu)
