"""Simulates counters that few events decide: a flush, a page fault, a checkpoint, for tests and METHODOLOGY.md. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ciphercost.estimate.tally import COLUMN, FIELDS, QUANTILES, Arms
from simulate import Floats, Random

Events = Callable[[Random, float, int, int], Floats]
"""(random, events per block, runs, blocks) -> what each block of one arm counted, shape (runs, blocks)."""

CLUSTER = 5
"""Mean number of events that come together."""
LARGE = 20
"""How many times the events of other blocks the dominating block has."""
OPERATIONS = 1000


def single(random: Random, mean: float, runs: int, blocks: int) -> Floats:
    """Events of the same size that come one by one (Poisson)."""
    return random.poisson(mean, (runs, blocks)).astype(np.float64)


def clustered(random: Random, mean: float, runs: int, blocks: int) -> Floats:
    """`mean` clusters per block, each of a geometric number of events, CLUSTER on average."""
    clusters = random.poisson(mean, (runs, blocks))
    more = random.negative_binomial(np.maximum(clusters, 1), 1 / CLUSTER) * (clusters > 0)
    return (clusters + more).astype(np.float64)


def uneven(random: Random, mean: float, runs: int, blocks: int) -> Floats:
    """Events whose sizes are log-normal (σ = 1): a tenth of them has a third of the total. A small one counts 100."""
    count = random.poisson(mean, (runs, blocks))
    sizes = [np.where(count > number, random.lognormal(0, 1, count.shape), 0.0) for number in range(int(count.max()))]
    whole: Floats = 100 * np.sum([np.zeros(count.shape), *sizes], axis=0)
    return whole


def dominated(random: Random, mean: float, runs: int, blocks: int) -> Floats:
    """Single events, and in each arm one block that has LARGE times as many as the others."""
    counts = single(random, mean, runs, blocks)
    counts[np.arange(runs), random.integers(0, blocks, runs)] += random.poisson(LARGE * mean, runs)
    return counts


KINDS: dict[str, Events] = {"single": single, "clustered": clustered, "uneven": uneven, "dominated": dominated}


def as_arms(plain: Floats, encrypted: Floats, sessions: int = 1) -> Arms:
    """One run's blocks, each counter of shape (blocks,), as page faults; every slice has as many operations."""
    slices = np.zeros((2, len(plain), 2, len(FIELDS)))
    slices[..., COLUMN["scheduled_work"]] = slices[..., COLUMN["work"]] = OPERATIONS
    slices[0, :, 0, COLUMN["faults"]], slices[1, :, 0, COLUMN["faults"]] = plain, encrypted
    none = np.empty((0, len(QUANTILES)))
    numbers = np.repeat(np.arange(1, sessions + 1), len(plain) // sessions)
    return Arms(numbers, slices[0], slices[1], none, none, none, none)


def runs(seed: int, kind: Events, total: float, sessions: int, blocks: int, ratio: float, count: int) -> list[Arms]:
    """Simulated runs with `total` events (or clusters) in the plain arm on average, `ratio` times as many in the other.

    Runs in which an arm has none are included. `blocks`: of a session.
    """
    random = np.random.default_rng(seed)
    whole = sessions * blocks
    arms = [kind(random, total * times / whole, count, whole) for times in (1.0, ratio)]
    return [as_arms(plain, encrypted, sessions) for plain, encrypted in zip(*arms, strict=True)]
