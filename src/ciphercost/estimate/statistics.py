"""Estimates, intervals and tests from the values of blocks or sessions. Pure; arrays in, numbers out.

scipy and statsmodels would take a second to start and 250 MB. So the few necessary formulas are written out here and
tested against both, and the controller stays small beside the server that it measures.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.estimate import student_t

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence of every printed interval."""
POWER = 0.80
"""Power at which the smallest detectable effect is stated."""
ALPHA = 0.05
"""Level of the verdict's tests, and of each one-sided test of equivalence."""
CARRYOVER_ALPHA = 0.01
"""Level of the carry-over test. It runs on every session, so 5 % would double the slice length of one healthy run in
three."""
LEAST_COSINES = 12
"""Least degrees of freedom of the cosine variance; see `cosine_count`."""
LEAST_ORDERED = 8
"""Least length of a series for the test of autocorrelation."""
DEPENDENT_ALPHA = 0.05
"""Level of that test."""
ROUNDING = 1e-14
"""Standard errors below this are those of floating point numbers."""
MOST_CORRELATION = 0.9
"""Most autocorrelation of blocks that is assumed: a short series can't distinguish more from a trend."""
DIRECT = 300
"""Up to this many values all Walsh averages are held at once; above it they are counted, not stored."""


# ── location ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def hodges_lehmann(values: Floats) -> float:
    """Median of all Walsh averages (vᵢ + vⱼ)/2, i ≤ j, of a 1-D array; same unit as the values.

    It resists wild values, and on Gaussian noise it loses only 4.5 % of the information (Hodges and Lehmann 1963). Raises ValueError on an empty array.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n == 0:
        raise ValueError("hodges_lehmann needs at least one value")
    if n <= DIRECT:
        return float(np.median(_walsh(ordered)))
    pairs = n * (n + 1) // 2
    low = _walsh_at_rank(ordered, (pairs - 1) // 2)
    return low if pairs % 2 else (low + _walsh_at_rank(ordered, pairs // 2)) / 2


def hodges_lehmann_interval(values: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Interval for the centre of symmetry: Walsh averages at the ranks of the Wilcoxon signed-rank distribution.

    Exact up to 50 values, normal approximation above (Hollander and Wolfe, §3.3). With so few values that no rank
    reaches the level (n < 6 at 95 %), the widest interval possible: (min, max). Raises ValueError on an empty array.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n == 0:
        raise ValueError("hodges_lehmann_interval needs at least one value")
    pairs = n * (n + 1) // 2
    low_rank = max(_signed_rank_lower(n, (1 - level) / 2) - 1, 0)
    return _walsh_at_rank(ordered, low_rank), _walsh_at_rank(ordered, pairs - 1 - low_rank)


def _walsh(ordered: Floats) -> Floats:
    i, j = _pairs(len(ordered))
    averages: Floats = (ordered[i] + ordered[j]) / 2
    return averages


@functools.lru_cache(16)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices i ≤ j of all pairs of n values; the same numbers of values come again and again."""
    return np.triu_indices(n)


@functools.lru_cache(256)
def _signed_rank_lower(n: int, tail: float) -> int:
    """The 1-based rank of the Walsh average that bounds the interval: the largest k with P(W < k) ≤ tail."""
    if n > 50:
        mean = n * (n + 1) / 4
        sd = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return math.floor(mean + NormalDist().inv_cdf(tail) * sd)
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):  # Number of subsets of {1 … rank} with each sum.
        ways[rank:] = ways[rank:] + ways[:-rank]
    below = np.cumsum(ways) / 2.0**n
    return int(np.searchsorted(below, tail, side="right"))


def _walsh_at_rank(ordered: Floats, rank: int) -> float:
    """The Walsh average of 0-based `rank` in increasing order, in O(n log n) time and O(n) memory.

    Bisection on the value: the number of pairs i ≤ j with a sum ≤ x is counted by binary search. Once few pairs are
    left between the bounds, these are listed and the exact one is taken.
    """
    n = len(ordered)
    if n <= DIRECT:
        return float(np.partition(_walsh(ordered), rank)[rank])
    index = np.arange(n)

    def ends(x: float) -> NDArray[np.intp]:
        """For each i the end of the run j ≥ i with vᵢ + vⱼ ≤ 2x."""
        return np.maximum(np.searchsorted(ordered, 2 * x - ordered, side="right"), index)

    low, high = float(ordered[0]), float(ordered[-1])
    start, stop = index.copy(), np.full(n, n)  # Invariant: pairs ≤ low are cut off, and all pairs are ≤ high.
    below = 0
    while int((stop - start).sum()) > 8 * n:
        middle = (low + high) / 2
        if not low < middle < high:
            return high  # Ties: every pair that is left has the same value to the last bit.
        at = np.clip(ends(middle), start, stop)
        count = below + int((at - start).sum())
        if count > rank:
            high, stop = middle, at
        else:
            low, start, below = middle, at, count
    left = stop - start
    i = np.repeat(index, left)
    j = np.arange(int(left.sum())) - np.repeat(np.cumsum(left) - left, left) + np.repeat(start, left)
    candidates = (ordered[i] + ordered[j]) / 2
    return float(np.partition(candidates, rank - below)[rank - below])


# ── intervals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Error(NamedTuple):
    """One standard error, and the t distribution that belongs to it."""

    standard: float
    nu: float
    method: str


class Interval(NamedTuple):
    """A centre and one or more standard errors. If there are several, the most cautious one counts, at every level and in
    every test.

    `mean`: the value that the standard errors belong to, if it is not the centre. A Hodges–Lehmann centre resists wild
    blocks, but it has no standard error of its own: it may scatter more than the mean (if blocks take two values) or
    less. The bounds are then those of the mean, widened where necessary to contain the centre, and every test agrees with
    them: p < 1 − level exactly where `bounds(level)` exclude the null.
    """

    centre: float
    errors: tuple[Error, ...]
    n: int
    mean: float | None = None

    @property
    def middle(self) -> float:
        """The value that the standard errors belong to."""
        return self.centre if self.mean is None else self.mean

    def half(self, level: float = LEVEL) -> float:
        """Half-width around `middle` at a two-sided `level`."""
        return max(student_t.quantile((1 + level) / 2, error.nu) * error.standard for error in self.errors)

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        half = self.half(level)
        return min(self.centre, self.middle - half), max(self.centre, self.middle + half)

    def method(self, level: float = LEVEL) -> str:
        """Name of the error that sets the width."""
        return max(self.errors, key=lambda error: student_t.quantile((1 + level) / 2, error.nu) * error.standard).method

    def p_value(self, null: float = 0.0) -> float:
        """Two-sided p-value of centre = null; 1 if the null lies between centre and mean."""
        if min(self.centre, self.middle) < null < max(self.centre, self.middle):
            return 1.0
        return max(2 * _tail(abs(self.middle - null), error) for error in self.errors)

    def tost(self, margin: float) -> float:
        """p-value of two one-sided tests that the centre lies within ± `margin` > 0 (Schuirmann 1987).

        Below 5 % exactly if the 90 % interval lies inside ± margin.
        """
        inside = margin - abs(self.middle)
        if abs(self.centre) >= margin:
            inside = min(inside, 0.0)
        return max(_tail(inside, error) for error in self.errors)

    def smallest_effect(self, level: float = LEVEL, power: float = POWER) -> float:
        """The smallest true difference that would have been detected with this `power`: (t_level + t_power) · standard
        error."""
        return max(
            (student_t.quantile((1 + level) / 2, e.nu) + student_t.quantile(power, e.nu)) * e.standard
            for e in self.errors
        )


def against(reference: Interval, other: Interval) -> Interval:
    """other − reference of two independent means, by Welch. Several standard errors give every combination; the worst counts."""
    errors = tuple(_welch(a, b) for a, b in itertools.product(reference.errors, other.errors))
    return Interval(
        other.centre - reference.centre, errors, min(reference.n, other.n), mean=other.middle - reference.middle
    )


def _welch(a: Error, b: Error) -> Error:
    first, second = a.standard**2, b.standard**2
    below = first**2 / a.nu + second**2 / b.nu
    nu = (first + second) ** 2 / below if below > 0 else min(a.nu, b.nu)
    return Error(math.sqrt(first + second), nu, f"Welch: {a.method}; {b.method}")


def _tail(distance: float, error: Error) -> float:
    if error.standard > ROUNDING:
        return student_t.upper_tail(distance / error.standard, error.nu)
    # Counts can be equal in every block (bytes of a fixed request), so nothing is left to chance.
    return 0.5 if abs(distance) <= 100 * ROUNDING else float(distance < 0)


def t_error(values: Floats, of: str = "blocks") -> Error:
    """Standard error of the mean of n ≥ 2 uncorrelated values, with n − 1 degrees of freedom."""
    n = len(values)
    if n < 2:
        raise ValueError(f"an interval needs at least two {of}")
    return Error(float(np.std(values, ddof=1)) / math.sqrt(n), n - 1, f"t over {n} {of}")


def cosine_count(n: int) -> int:
    """Number ν of cosines for a series of n values: max(12, 0.4 · n^⅔), at most n − 1.

    0.4 · n^⅔ is the rule of Lazarus, Lewis, Stock and Watson (2018) for strongly correlated macro-economic series of
    200 values and more. At n = 25 it gives 4, and t with so few degrees of freedom misses a 1 % effect in 5 runs of
    100. The coin of the design has already made block values uncorrelated with the machine's drift, so twelve
    cosines are affordable (METHODOLOGY.md has the figures).
    """
    return min(n - 1, max(LEAST_COSINES, math.ceil(0.4 * math.pow(n, 2 / 3))))


def cosine_error(values: Floats, cosines: int | None = None) -> Error:
    """Standard error of the mean of a correlated series: equal-weighted cosine long-run variance Ω, t with ν degrees
    of freedom.

    Ω = (1/ν) Σⱼ Λⱼ², Λⱼ = √(2/n) Σₜ vₜ cos(πj(t − ½)/n), j = 1 … ν; standard error √(Ω/n). Lazarus, Lewis, Stock and
    Watson, "HAR Inference: Recommendations for Practice", JBES 2018, equations 10 and 11. Needs n ≥ 2.
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two blocks")
    nu = cosine_count(n) if cosines is None else cosines
    standard = float(_cosine_standard(np.asarray(values, dtype=np.float64)[None], nu)[0])
    return Error(standard, nu, f"equal-weighted cosines over {n} blocks, ν = {nu}")


def _cosine_standard(rows: Floats, nu: int) -> Floats:
    """√(Ω/n) of each row of a 2-D array."""
    n = rows.shape[1]
    # The Fourier transform of the series and its mirror image holds all cosine sums: |F_j| = 2 |Σ vₜ cos(πj(t − ½)/n)|.
    transform = np.fft.rfft(np.concatenate([rows, rows[:, ::-1]], axis=1))[:, 1 : nu + 1]
    omega = np.mean(np.abs(transform) ** 2, axis=1) / (2 * n)
    standard: Floats = np.sqrt(omega / n)
    return standard


def autoregressive_error(values: Floats) -> Error | None:
    """Standard error of the mean of an AR(1) series: s/√n · √((1 + ρ)/(1 − ρ)); None if there is no visible correlation.

    The coin makes blocks uncorrelated whatever the machine does, but not whatever one arm does. Correlation is visible if
    ρ̂ + 1/n, the lag-1 autocorrelation less its bias in white noise, is over one standard error, 1/√n. Then ρ̂ is
    corrected for the bias of short series, E ρ̂ ≈ ρ − (1 + 3ρ)/n (Marriott and Pope, Biometrika 1954; Kendall, ibid.);
    otherwise the standard error is too small exactly where it matters. The variance of the mean is that of Andrews
    (Econometrica 1991) for an AR(1) plug-in. t keeps n − 1 degrees of freedom: fewer would cover better, but would cost
    too much power in white noise (`benchmarks/coverage.py`).
    """
    n = len(values)
    inflation = float(_autoregressive_inflation(np.asarray(values, dtype=np.float64)[None])[0])
    if inflation <= 1:
        return None
    rho = (inflation**2 - 1) / (inflation**2 + 1)
    standard = inflation * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Error(standard, n - 1, f"autoregression over {n} blocks, ρ = {rho:.2f}")


def _autoregressive_inflation(rows: Floats) -> Floats:
    """√((1 + ρ)/(1 − ρ)) of each row of a 2-D array; 1 without visible correlation."""
    n = rows.shape[1]
    away = rows - rows.mean(axis=1, keepdims=True)
    squares = (away**2).sum(axis=1)
    varies = squares > n * ROUNDING**2
    seen = (away[:, 1:] * away[:, :-1]).sum(axis=1) / np.where(varies, squares, 1.0)
    shows = varies & ((seen + 1 / n) * math.sqrt(n) > 1)
    rho = np.clip(seen + (1 + 3 * np.clip(seen, 0, 1)) / n, 0, MOST_CORRELATION)
    inflation: Floats = np.where(shows, np.sqrt((1 + rho) / (1 - rho)), 1.0)
    return inflation


def session_interval(values: Floats, centre: float | None = None, most_nu: int | None = None) -> Interval:
    """Full mode: t with S − 1 degrees of freedom over S ≥ 2 session values (Ibragimov and Müller 2010).

    `most_nu`: the most degrees of freedom it may have. A run that stops on precision keeps those of the least number of
    sessions (Stein 1945): it stops when the scatter happens to look small, so later sessions are not free evidence.
    """
    middle = float(np.mean(values)) if centre is None else centre
    error = t_error(values, "sessions")
    if most_nu is not None and most_nu < error.nu:
        error = error._replace(nu=most_nu, method=f"{error.method}, ν = {most_nu}: stopped on precision")
    return Interval(middle, (error,), len(values))


def block_interval(values: Floats, centre: float | None = None) -> Interval:
    """Quick mode: the widest of t, cosines and, if blocks are correlated, autoregression, over n ≥ 2 blocks.

    The estimate is the blocks' Hodges–Lehmann centre, and the errors are those of their mean. If `centre` is given, the
    errors belong to it.
    """
    errors: tuple[Error, ...] = (t_error(values), cosine_error(values))
    if (correlated := autoregressive_error(values)) is not None:
        errors += (correlated,)
    if centre is not None:
        return Interval(centre, errors, len(values))
    return Interval(hodges_lehmann(values), errors, len(values), float(np.mean(values)))


# ── tests ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Carryover(NamedTuple):
    """λ: how much an encrypted slice changes the slice after it, as a log rate, compared with a plain slice."""

    value: float
    p_value: float

    @property
    def significant(self) -> bool:
        return self.p_value < CARRYOVER_ALPHA


def carryover(rates: Floats, signs: Floats) -> Carryover:
    """λ = mean of s · (y₄ − y₁ + y₃ − y₂)/2 with a t test over blocks.

    `rates`: log rates by position, shape (blocks, 4); `signs`: +1 for ABBA, −1 for BAAB, shape (blocks,). In an ABBA
    block the last two slices follow an encrypted one, in BAAB the first two. The coin makes drift cancel in the mean.
    Under three blocks: p = 1.
    """
    if len(rates) < 3:
        return Carryover(0.0, 1.0)
    values = signs * (rates[:, 3] - rates[:, 0] + rates[:, 2] - rates[:, 1]) / 2
    interval = Interval(float(np.mean(values)), (t_error(values),), len(values))
    return Carryover(interval.centre, interval.p_value())


def depend(groups: Sequence[Floats]) -> bool:
    """Whether neighbouring values of these series are correlated: one-sided test of the pooled autocorrelations at lag 1.

    Of n independent values r has mean −1/n and variance about 1/n. Groups with fewer than LEAST_ORDERED values are ignored.
    """
    total, count = 0.0, 0
    for values in groups:
        n = len(values)
        centred = values - values.mean() if n else values
        whole = float(centred @ centred)
        if n < LEAST_ORDERED or whole <= n * ROUNDING**2:
            continue
        total += n * (float(centred[1:] @ centred[:-1]) / whole + 1 / n)
        count += n
    return count > 0 and total / math.sqrt(count) > student_t.quantile(1 - DEPENDENT_ALPHA, math.inf)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): adjusted p-values in the order given. No input: an empty list."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def sessions_needed(effect: float, sd: float, margin: float, most: int = 10_000) -> int | None:
    """Sessions for 80 % power to resolve a true log ratio `effect` with `sd` between sessions; None: more than `most`.

    Resolved means: shown to differ from 0, or, if it is smaller than `margin`, shown to be equivalent, whichever takes
    fewer sessions.
    """

    def resolved(sessions: int) -> bool:
        standard, nu = sd / math.sqrt(sessions), sessions - 1
        if (student_t.quantile((1 + LEVEL) / 2, nu) + student_t.quantile(POWER, nu)) * standard <= abs(effect):
            return True
        # Both one-sided tests must pass, so each may miss only half as often.
        both = student_t.quantile((1 + POWER) / 2, nu)
        return (student_t.quantile(1 - ALPHA, nu) + both) * standard <= margin - abs(effect)

    # Each session more makes both intervals narrower, so the first that resolves is found by bisection.
    sessions = bisect.bisect_left(range(most + 1), True, lo=2, key=resolved)
    return sessions if sessions <= most else None
