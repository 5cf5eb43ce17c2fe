"""The chi-square distribution, without scipy. The tests compare both functions with scipy's."""

from __future__ import annotations

import math

_STEPS = 200
_MOST_TERMS = 1_000_000


def lower_tail(x: float, nu: float) -> float:
    """P(X ≤ x) for `nu` > 0 degrees of freedom: P(ν/2, x/2) by its power series (DLMF 8.11.4), whose terms are all positive."""
    a, y = nu / 2, x / 2
    if y <= 0:
        return 0.0
    if y > a + 40 * (1 + math.sqrt(a)):  # 1 to the last digit, and the series would be long
        return 1.0
    term = total = 1.0
    for n in range(1, _MOST_TERMS):
        term *= y / (a + n)
        total += term
        if term < 1e-17 * total:
            break
    return min(1.0, math.exp(a * math.log(y) - y - math.lgamma(a + 1)) * total)


def quantile(probability: float, nu: float) -> float:
    """The value that X stays below with this probability, 0 < probability < 1, by bisection of its logarithm."""
    low, high = -700.0, 700.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if lower_tail(math.exp(middle), nu) < probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-13:
            break
    return math.exp((low + high) / 2)
