"""Simulates other processes that take the CPU in some slices, of both arms or of one, for tests and METHODOLOGY.md. Pure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import by_row
import simulate
from ciphercost.estimate import student_t
from ciphercost.estimate.disturbance import ALPHA, GAP
from ciphercost.estimate.totals import coin
from simulate import Floats, Random

EFFECT = math.log(0.9)
OUTSIDE = np.array([True, False, False, True])
"""Positions of the plain arm in ABBA."""


def covered(
    seed: int,
    sessions: int,
    blocks: int,
    share: float,
    *,
    both: bool,
    size: float = 0.2,
    base: float = 0.0,
    memory: int = 0,
    runs: int = 1000,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(whether each run's interval covers, whether its counts say that one arm was disturbed more), shape (runs,).

    `share`: of slices that are disturbed, of both arms or of the encrypted one only; each loses an exponential share of its log rate, `size` on
    average. `base`: share of both arms' slices that are disturbed besides. `memory`: mean length of a disturbance in slices; 0: one slice each.
    """
    random = np.random.default_rng(seed)
    hit, more, less = np.zeros((2, runs)), np.zeros(runs, int), np.zeros(runs, int)
    values = []
    for _ in range(sessions):
        simulated = simulate.experiment(random, simulate.white, runs, blocks, effect=EFFECT)
        encrypted = np.where((simulated.signs > 0)[..., None], ~OUTSIDE, OUTSIDE)
        disturbed = _states(random, runs, blocks, share, memory)
        if not both:
            disturbed &= encrypted
        disturbed |= _states(random, runs, blocks, base, memory)
        rates = simulated.rates - disturbed * random.exponential(size, disturbed.shape)
        values.append(simulated.signs * (rates[..., 1] + rates[..., 2] - rates[..., 0] - rates[..., 3]) / 2)
        of_encrypted, other = (disturbed & encrypted).sum(2), (disturbed & ~encrypted).sum(2)
        hit += [other.sum(1), of_encrypted.sum(1)]
        more += (of_encrypted > other).sum(1)
        less += (of_encrypted < other).sum(1)
    low, high = _bounds(values)
    p_values = np.array([coin(int(a), int(b)) for a, b in zip(more, less, strict=True)])
    uneven = (np.abs(hit[1] - hit[0]) / (2 * sessions * blocks) >= GAP) & (p_values < ALPHA)
    return (low <= EFFECT) & (high >= EFFECT), uneven


def _states(random: Random, runs: int, blocks: int, share: float, memory: int) -> NDArray[np.bool_]:
    """Which slices are disturbed, shape (runs, blocks, 4)."""
    drawn = random.random((runs, 4 * blocks))
    states = drawn < share
    if memory and 0 < share < 1:
        begins = min(1.0, share / (1 - share) / memory)
        for step in range(1, 4 * blocks):
            states[:, step] = np.where(states[:, step - 1], drawn[:, step] > 1 / memory, drawn[:, step] < begins)
    return states.reshape(runs, blocks, 4)


def _bounds(sessions: list[Floats]) -> tuple[Floats, Floats]:
    """The 95 % interval of each run: over blocks with one session, over sessions with more."""
    if len(sessions) == 1:
        return by_row.block_bounds(sessions[0])
    centres = np.stack([by_row.hodges_lehmann(session) for session in sessions], axis=1)
    half = student_t.quantile(0.975, len(sessions) - 1) * centres.std(axis=1, ddof=1) / math.sqrt(len(sessions))
    return centres.mean(axis=1) - half, centres.mean(axis=1) + half
