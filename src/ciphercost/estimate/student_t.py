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
_LOG_MOST = math.log(1.7e308)
"""Logarithm of about the largest number."""
_NEARLY_NORMAL = 1e5
"""Degrees of freedom from which on the series in 1/ν counts: t²/ν then has too few digits for the continued fraction."""


def upper_tail(t: float, nu: float) -> float:
    """P(T > t) for Student's t with `nu` > 0 degrees of freedom; `nu` may be infinite (the normal distribution).

    ½ I_x(ν/2, ½) with x = ν/(ν + t²) for t ≥ 0 (Abramowitz and Stegun 26.7.1). Relative error below 1e-9.
    """
    if t < 0:
        return 1.0 - upper_tail(-t, nu)
    if nu >= _NEARLY_NORMAL:
        return math.erfc(_as_normal(t, nu) / math.sqrt(2)) / 2
    share = t * t / nu
    if share == 0 or math.isinf(share):
        return 0.5 if share == 0 else 0.0 if math.isinf(t) else _far_tail(math.log(t), nu)
    scale = math.exp(-nu / 2 * math.log1p(share) - math.log1p(1 / share) / 2 - _log_beta_half(nu / 2))
    if share > 1 / (nu / 2 + 1):  # there the continued fraction of this tail converges quickly
        return scale / (nu / 2) * _beta_fraction(nu / 2, 0.5, 1 / (1 + share)) / 2
    return (1 - scale / 0.5 * _beta_fraction(0.5, nu / 2, share / (1 + share))) / 2


def _far_tail(log_t: float, nu: float) -> float:
    """The tail where t² is above the largest number: its first term, ν^(ν/2) / (ν B(ν/2, ½)) · t^−ν."""
    return math.exp(nu / 2 * math.log(nu) - math.log(nu) - _log_beta_half(nu / 2) - nu * log_t)


def _as_normal(t: float, nu: float) -> float:
    """The normal variable with the same tail: G. W. Hill, Algorithm 395, Communications of the ACM 13 (1970)."""
    if math.isinf(nu):
        return t
    share = t * t / nu
    z = t if share < 1e-200 else math.sqrt((nu - 0.5) * math.log1p(share))
    b = 48 * (nu - 0.5) ** 2 if nu < 1e100 else math.inf
    further = z * (((0.4 * z**2 + 3.3) * z**2 + 24) * z**2 + 85.5) / (0.8 * z**4 + 100 + b) / b
    return z + z * (z**2 + 3) / b - further


@lru_cache(maxsize=1 << 16)
def quantile(probability: float, nu: float) -> float:
    """Quantile of Student's t with `nu` > 0 degrees of freedom (may be infinite), for 0 < probability < 1.

    Infinite if it is above the largest number, which happens with less than one degree of freedom.
    Newton's method on the logarithm of the tail as a function of log t, which is concave: from the second step on it only goes down.
    """
    # The cache takes numpy's numbers for equal ones of Python's; it must not answer with theirs.
    probability, nu = float(probability), float(nu)
    if probability > 0.5:
        return _upper(1 - probability, nu)
    return -_upper(probability, nu) if probability < 0.5 else 0.0


def _upper(tail: float, nu: float) -> float:
    """The value above which `tail` < ½ of the distribution lies."""
    t = -_NORMAL.inv_cdf(tail)
    if math.isinf(nu):
        return t
    log_t = math.log(t)
    log_scale = -_log_beta_half(nu / 2) - math.log(nu) / 2
    last = math.inf
    for _ in range(_MOST_STEPS):
        # Beyond the square root of the largest number, t² is not a number.
        far = 2 * log_t > _LOG_MOST + min(0.0, math.log(nu))
        seen = _far_tail(log_t, nu) if far else upper_tail(math.exp(log_t), nu)
        if seen == 0:  # A step too far: the tail is below the smallest number.
            log_t -= 0.5
            continue
        log1p_share = 2 * log_t - math.log(nu) if far else math.log1p(math.exp(2 * log_t) / nu)
        hazard = math.exp(log_scale - (nu + 1) / 2 * log1p_share + log_t - math.log(seen))  # t · density ÷ tail
        step = math.log(seen / tail) / hazard
        log_t += step
        # Close to the median the tail hardly changes with log t, so steps end at the size of its rounding.
        if abs(step) <= 1e-14 or (abs(step) < 1e-6 and abs(step) >= last) or log_t > 100 * _LOG_MOST:
            break
        last = abs(step)
    return math.exp(log_t) if log_t <= _LOG_MOST else math.inf


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
