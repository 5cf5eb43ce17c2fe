"""The F distribution, by the same continued fraction as Student's t. The tests compare both functions with scipy's."""

from __future__ import annotations

import math

from ciphercost.estimate.student_t import _beta_fraction

_STEPS = 200


def upper_tail(f: float, nu1: float, nu2: float) -> float:
    """P(F > f) for finite degrees of freedom above 0: I_x(ν₂/2, ν₁/2), x = ν₂/(ν₂ + ν₁ f) (Abramowitz and Stegun 26.6.2)."""
    if f <= 0:
        return 1.0
    if math.isinf(f):
        return 0.0
    a, b = nu2 / 2, nu1 / 2
    x, rest = 1 / (1 + nu1 * f / nu2), 1 / (1 + nu2 / (nu1 * f))
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    scale = math.exp(a * math.log(x) + b * math.log(rest) - log_beta) if x > 0 else 0.0
    if x < (a + 1) / (a + b + 2):  # there the continued fraction of this tail converges quickly
        return scale / a * _beta_fraction(a, b, x)
    return 1 - scale / b * _beta_fraction(b, a, rest)


def quantile(probability: float, nu1: float, nu2: float) -> float:
    """The value that F exceeds with 1 − `probability`, by bisection of its logarithm."""
    low, high = -200.0, 200.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if upper_tail(math.exp(middle), nu1, nu2) > 1 - probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-13:
            break
    return math.exp((low + high) / 2)
