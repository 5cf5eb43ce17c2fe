"""Simulates disturbances that hit the encrypted arm more, for tests and METHODOLOGY.md. Pure.

Each kind returns whole runs in which the truth is what a user pays: all operations ÷ all seconds, encrypted ÷ plain, in the long run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import by_row
import simulate
from ciphercost.estimate import student_t
from simulate import Floats, Noise, Random

EFFECT = math.log(0.9)
OUTSIDE = np.array([True, False, False, True])
"""Positions of the plain arm in ABBA."""
DRAWS = 1_000_000
"""Draws from which the true mean of a disturbance is computed."""
quiet: Noise = partial(simulate.white, sd=0.005)


class Made(NamedTuple):
    """Simulated runs: `rates` (runs, sessions, blocks, 4) by position, `signs` (runs, sessions, blocks), and the true log ratio of totals."""

    rates: Floats
    signs: Floats
    truth: float

    @property
    def encrypted(self) -> NDArray[np.bool_]:
        """Which slices are the encrypted arm's."""
        return np.where((self.signs > 0)[..., None], ~OUTSIDE, OUTSIDE)


Disturbance = Callable[[Random, NDArray[np.bool_]], tuple[Floats, float]]
"""(random, which slices are encrypted: (runs, sessions, blocks, 4)) -> (what is added to the log rates, to the true log ratio of totals)."""


def runs(
    random: Random, noise: Noise, count: int, sessions: int, blocks: int, disturbance: Disturbance | None = None
) -> Made:
    """`count` runs. With more than one session, each server also has an effect of its own (simulate.SERVER_SD)."""
    series = simulate.experiment(random, noise, count * sessions, blocks, effect=EFFECT)
    shape = (count, sessions, blocks)
    simulated = Made(series.rates.reshape(*shape, 4), series.signs.reshape(shape), EFFECT)
    if sessions > 1:
        server_effects = random.normal(0.0, simulate.SERVER_SD, (2, count, sessions, 1, 1))
        simulated = simulated._replace(
            rates=simulated.rates + np.where(simulated.encrypted, server_effects[1], server_effects[0])
        )
    if disturbance is None:
        return simulated
    added, cost = disturbance(random, simulated.encrypted)
    return simulated._replace(rates=simulated.rates + added, truth=EFFECT + cost)


# ── disturbances ──────────────────────────────────────────────────────────────────────────────────────────────────────


def garbage(random: Random, encrypted: NDArray[np.bool_], per_slice: float, pause: float) -> tuple[Floats, float]:
    """Garbage is collected `per_slice` times, and 20 % more often in the encrypted arm; each takes an exponential share of the slice."""

    def lost(count: NDArray[np.int64], of: Random) -> Floats:
        taken = of.gamma(np.maximum(count, 1), pause) * (count > 0)
        return np.minimum(taken, 0.95)

    known = np.random.default_rng(0)
    plain, more = (1 - lost(known.poisson(mean, DRAWS), known).mean() for mean in (per_slice, 1.2 * per_slice))
    counts = random.poisson(np.where(encrypted, 1.2 * per_slice, per_slice))
    added: Floats = np.log1p(-lost(counts, random))
    return added, math.log(more / plain)


def steal(random: Random, encrypted: NDArray[np.bool_], share: float, size: float) -> tuple[Floats, float]:
    """Steal in this share of all slices takes an exponential part of them, `size` on average, and 1.3 times as much of an encrypted one."""
    drawn = np.random.default_rng(0).exponential(size, DRAWS)
    plain, more = (1 - share * np.minimum(times * drawn, 0.9).mean() for times in (1.0, 1.3))
    hit = random.random(encrypted.shape) < share
    taken = random.exponential(size, encrypted.shape) * np.where(encrypted, 1.3, 1.0)
    added: Floats = np.log1p(-np.minimum(taken, 0.9) * hit)
    return added, math.log(more / plain)


def stalls(random: Random, encrypted: NDArray[np.bool_], share: float) -> tuple[Floats, float]:
    """This share of the encrypted slices does a tenth of its work."""
    hit = encrypted & (random.random(encrypted.shape) < share)
    return np.where(hit, simulate.STALL, 0.0), math.log1p(-0.9 * share)


def placement(random: Random, encrypted: NDArray[np.bool_], share: float, size: float) -> tuple[Floats, float]:
    """In this share of all sessions the encrypted server starts in a bad place, which costs it `size` for the whole session."""
    bad = random.random((*encrypted.shape[:2], 1, 1)) < share
    return np.where(encrypted & bad, math.log1p(-size), 0.0), math.log1p(-share * size)


def skewed(random: Random, encrypted: NDArray[np.bool_], sd: float) -> tuple[Floats, float]:
    """Each start of the encrypted server has a log-normal effect (σ = 1, skewness 6.2) of this standard deviation and mean 0: a few are much slower."""
    scale = sd / math.sqrt((math.e - 1) * math.e)
    drawn = np.random.default_rng(0).lognormal(0.0, 1.0, DRAWS)
    effects = -scale * (random.lognormal(0.0, 1.0, (*encrypted.shape[:2], 1, 1)) - math.sqrt(math.e))
    return encrypted * effects, float(np.log(np.exp(-scale * (drawn - math.sqrt(math.e))).mean()))


ONE_ARM: dict[str, tuple[Noise, Disturbance]] = {
    "garbage, 2 per slice of 3 %": (quiet, partial(garbage, per_slice=2.0, pause=0.03)),
    "garbage, 0.5 of 6 %": (quiet, partial(garbage, per_slice=0.5, pause=0.06)),
    "garbage, 0.2 of 10 %": (quiet, partial(garbage, per_slice=0.2, pause=0.1)),
    "garbage, 0.1 of 20 %": (quiet, partial(garbage, per_slice=0.1, pause=0.2)),
    "steal, 30 % of slices, 10 %": (quiet, partial(steal, share=0.3, size=0.1)),
    "steal, 20 %, 20 %": (quiet, partial(steal, share=0.2, size=0.2)),
    "steal, 10 %, 20 %": (quiet, partial(steal, share=0.1, size=0.2)),
    "stalls, 5 % of slices": (simulate.white, partial(stalls, share=0.05)),
    "stalls, 2 %": (simulate.white, partial(stalls, share=0.02)),
    "bad start, 10 % of sessions, 5 %": (simulate.white, partial(placement, share=0.1, size=0.05)),
    "skewed starts, sd 1 %": (simulate.white, partial(skewed, sd=0.01)),
}
SHARED: dict[str, Noise] = {
    **simulate.SCENARIOS,
    **simulate.IN_PHASE,
    **simulate.FURTHER,
    **simulate.HELD_OUT,
    "two speeds": simulate.speeds,
    "trend with a large step": simulate.trend_with_large_step,
}


# ── intervals of full mode, of many runs at once ──────────────────────────────────────────────────────────────────────


class Bounds(NamedTuple):
    """Centres and 95 % bounds of each run, shapes (runs,)."""

    centre: Floats
    low: Floats
    high: Floats

    def covers(self, truth: float) -> float:
        return float(np.mean((self.low <= truth) & (truth <= self.high)))

    def width(self) -> float:
        return float(np.mean(self.high - self.low))


def typical(simulated: Made) -> Floats:
    """Hodges–Lehmann values, shape (runs, sessions)."""
    y = simulated.rates
    values = simulated.signs * (y[..., 1] + y[..., 2] - y[..., 0] - y[..., 3]) / 2
    return by_row.hodges_lehmann(values.reshape(-1, values.shape[-1])).reshape(values.shape[:2])


def parts(simulated: Made) -> tuple[Floats, Floats]:
    """`Sessions.parts` of each run, all slices of equal length: log ratios (runs,) and parts (runs, sessions)."""
    work = np.exp(simulated.rates)
    encrypted = (work * simulated.encrypted).sum(axis=(2, 3))
    plain = (work * ~simulated.encrypted).sum(axis=(2, 3))
    log_ratio: Floats = np.log(encrypted.sum(axis=1) / plain.sum(axis=1))
    shares = encrypted / encrypted.mean(axis=1, keepdims=True) - plain / plain.mean(axis=1, keepdims=True)
    return log_ratio, shares + log_ratio[:, None]


def around(middle: Floats, values: Floats, nu: int | None = None) -> Bounds:
    """t over sessions, `values` (runs, sessions), around `middle` (runs,)."""
    n = values.shape[1]
    half = student_t.quantile(0.975, nu or n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return Bounds(middle, middle - half, middle + half)


def candidates(simulated: Made) -> dict[str, Bounds]:
    """The interval of the headline as it was (typical), of totals alone, of either as a test of their difference decides, and as it is."""
    centres, (log_ratio, shares) = typical(simulated), parts(simulated)
    robust, whole = around(centres.mean(axis=1), centres), around(log_ratio, shares)
    apart = shares - centres
    resolved = around(apart.mean(axis=1), apart)
    switch = (resolved.low > 0) | (resolved.high < 0)
    chosen = Bounds(*(np.where(switch, b, a) for a, b in zip(robust, whole, strict=True)))
    union = Bounds(robust.centre, np.minimum(robust.low, whole.low), np.maximum(robust.high, whole.high))
    return {"typical": robust, "totals": whole, "tested": chosen, "both": union, "now": headline(simulated)}


def headline(simulated: Made) -> Bounds:
    """`headline.over_sessions` of each run."""
    centre, (log_ratio, shares) = typical(simulated).mean(axis=1), parts(simulated)
    whole = around(log_ratio, shares)
    return Bounds(centre, np.minimum(whole.low, centre), np.maximum(whole.high, centre))
