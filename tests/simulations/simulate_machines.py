"""Simulates the values that the runs of several machines would have, for the tests and METHODOLOGY.md. Pure.

Each machine runs sessions as `simulate.sessions` does, with noise of its own scale: some machines are ten times noisier than others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import by_row
import simulate
from simulate import Floats, Noise, Random

SCALE = 0.6
"""Standard deviation of the logarithm of a machine's noise: 95 % of machines are within a factor of 3.2 of the typical one."""
BETWEEN = 0.02
"""Standard deviation of the true cost between machines, as a log ratio."""
CHUNK = 200_000
"""Sessions that are simulated at once."""

Effects = Callable[[Random, int, int], Floats]
"""(random, rows, machines) -> each machine's distance from the mean cost of all machines, shape (rows, machines)."""


def normal(random: Random, rows: int, machines: int) -> Floats:
    return random.normal(0.0, BETWEEN, (rows, machines))


def none(random: Random, rows: int, machines: int) -> Floats:
    return np.zeros((rows, machines))


def heavy(random: Random, rows: int, machines: int) -> Floats:
    """Student's t with 3 degrees of freedom: most machines alike, a few far off."""
    values: Floats = BETWEEN / math.sqrt(3) * random.standard_t(3, (rows, machines))
    return values


def skewed(random: Random, rows: int, machines: int) -> Floats:
    """Log-normal, σ = ½, skewness 1.75: a few machines cost far more."""
    drawn = random.lognormal(0.0, 0.5, (rows, machines))
    values: Floats = BETWEEN * (drawn - math.exp(0.125)) / math.sqrt((math.exp(0.25) - 1) * math.exp(0.25))
    return values


def two_models(random: Random, rows: int, machines: int) -> Floats:
    """Half of all machines have a CPU on which encryption costs 10 points more."""
    return 0.05 * random.choice([-1.0, 1.0], (rows, machines)) + random.normal(0.0, 0.005, (rows, machines))


def two_valued(random: Random, rows: int, machines: int, share: float) -> Floats:
    """This share of machines is of a second kind, whose cost is a log ratio of 1 higher, with 3 % of noise of each machine."""
    values: Floats = (random.random((rows, machines)) < share) - share + random.normal(0.0, 0.03, (rows, machines))
    return values


EFFECTS: dict[str, Effects] = {"normal": normal, "none": none, "heavy tails": heavy, "skewed": skewed}


def runs(
    random: Random,
    noise: Noise,
    rows: int,
    machines: int,
    *,
    sessions: int = 8,
    blocks: int = 6,
    effects: Effects = normal,
    effect: float = 0.0,
    server_sd: float = simulate.SERVER_SD,
) -> Floats:
    """Session values of each machine's run, shape (rows, machines, sessions). `effect`: true log ratio of the mean machine."""
    chunks = []
    step = max(1, CHUNK // (machines * sessions))
    for start in range(0, rows, step):
        count = min(step, rows - start)
        values = simulate.sessions(random, noise, count * machines, sessions, blocks, server_sd=server_sd)
        centres = by_row.hodges_lehmann(values.reshape(-1, blocks)).reshape(count, machines, sessions)
        scale = np.exp(random.normal(0.0, SCALE, (count, machines, 1)))
        chunks.append(effect + effects(random, count, machines)[..., None] + scale * centres)
    return np.concatenate(chunks)


def estimates(sessions: Floats) -> tuple[Floats, Floats]:
    """Each machine's estimate and its standard error, shapes (rows, machines), of session values."""
    count = sessions.shape[2]
    return sessions.mean(axis=2), sessions.std(axis=2, ddof=1) / math.sqrt(count)
