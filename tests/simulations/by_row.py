"""The estimates and intervals of `ciphercost.estimate` for thousands of simulations at once: one simulation per row of a 2-D array. Pure."""

from __future__ import annotations

import math

import numpy as np

from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.statistics import LEVEL, Floats


def hodges_lehmann(values: Floats) -> Floats:
    """`statistics.hodges_lehmann` of each row of a 2-D array (r, n) with n ≤ 300."""
    r, n = values.shape
    i, j = np.triu_indices(n)
    chunk = max(1, 4_000_000 // len(i))
    result = np.empty(r)
    for start in range(0, r, chunk):
        part = values[start : start + chunk]
        result[start : start + chunk] = np.median((part[:, i] + part[:, j]) / 2, axis=1)
    return result


def block_halves(values: Floats, level: float = LEVEL) -> Floats:
    """`statistics.block_interval(…).half(level)` of each row of a 2-D array (r, n)."""
    n = values.shape[1]
    nu = statistics.cosine_count(n)
    by_t = values.std(axis=1, ddof=1) / math.sqrt(n) * statistics._autoregressive_inflation(values)
    by_cosines = statistics._cosine_standard(values, nu)
    halves: Floats = np.maximum(
        student_t.quantile((1 + level) / 2, n - 1) * by_t, student_t.quantile((1 + level) / 2, nu) * by_cosines
    )
    return halves


def block_bounds(values: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """`statistics.block_interval(…).bounds(level)` of each row of a 2-D array (r, n) with n ≤ 300: lower and upper bounds (r,)."""
    centres, means, halves = hodges_lehmann(values), values.mean(axis=1), block_halves(values, level)
    return np.minimum(centres, means - halves), np.maximum(centres, means + halves)


def machine_bounds(values: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """`machines.together(…).bounds(level)` of each row of machines' values (r, k), k ≥ 2."""
    k = values.shape[1]
    half = student_t.quantile((1 + level) / 2, k - 1) * values.std(axis=1, ddof=1) / math.sqrt(k)
    return values.mean(axis=1) - half, values.mean(axis=1) + half
