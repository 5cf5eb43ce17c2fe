"""Student's t distribution without scipy, which would add 150 MB to the install and a second to every start.

The tests compare both functions with scipy's.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_MOST_TERMS = 100_000
_MOST_STEPS = 1000
_TINY = 1e-300


def upper_tail(t: float, nu: float) -> float:
    """P(T > t) for Student's t with `nu` > 0 degrees of freedom; `nu` may be infinite (the normal distribution).

    ½ I_x(ν/2, ½) with x = ν/(ν + t²) for t ≥ 0 (Abramowitz and Stegun 26.7.1). Relative error below 1e-9.
    """
    if t < 0:
        return 1.0 - upper_tail(-t, nu)
    if math.isinf(nu):
        return math.erfc(t / math.sqrt(2)) / 2
    share = t * t / nu
    if share == 0 or math.isinf(share):
        return 0.5 if share == 0 else 0.0
    scale = math.exp(-nu / 2 * math.log1p(share) - math.log1p(1 / share) / 2 - _log_beta_half(nu / 2))
    if share > 1 / (nu / 2 + 1):  # there the continued fraction of this tail converges quickly
        return scale / (nu / 2) * _beta_fraction(nu / 2, 0.5, 1 / (1 + share)) / 2
    return (1 - scale / 0.5 * _beta_fraction(0.5, nu / 2, share / (1 + share))) / 2


@lru_cache(maxsize=1 << 16)
def quantile(probability: float, nu: float) -> float:
    """Quantile of Student's t with `nu` > 0 degrees of freedom (may be infinite), for 0 < probability < 1.

    Newton's method on `upper_tail` from the normal quantile. The tail is convex and the start lies below the root, so the steps
    only go up.
    """
    # The cache takes numpy's numbers for equal ones of Python's; it must not answer with theirs.
    probability, nu = float(probability), float(nu)
    if probability < 0.5:
        return -quantile(1 - probability, nu)
    t = _NORMAL.inv_cdf(probability)
    if math.isinf(nu) or probability == 0.5:
        return t
    log_scale = -_log_beta_half(nu / 2) - math.log(nu) / 2
    for _ in range(_MOST_STEPS):
        density = math.exp(log_scale - (nu + 1) / 2 * math.log1p(t * t / nu))
        step = (upper_tail(t, nu) - (1 - probability)) / density
        t += step
        if step <= 1e-14 * t:
            break
    return t


def _log_beta_half(a: float) -> float:
    """log B(a, ½). For large `a` by the asymptotic series of Γ(a + ½)/Γ(a) (DLMF 5.11.13), since two large logarithms would cancel."""
    ratio = math.lgamma(a + 0.5) - math.lgamma(a) if a < 1000 else math.log(a) / 2 - 1 / (8 * a) + 1 / (192 * a**3)
    return math.log(math.pi) / 2 - ratio


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function I_x(a, b) (DLMF 8.17.22), by Lentz's modified algorithm."""
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    fraction = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or _TINY)
            c = (1 + term / c) or _TINY
            fraction *= c * d
        if abs(c * d - 1) < 3e-16:
            break
    return fraction
