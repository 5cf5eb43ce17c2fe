"""Tests whether all slices together show the same cost as the typical block. Pure.

The headline is robust: a few wild blocks hardly move it. If encryption causes the wild blocks, their cost is real and the headline hides
it. This module computes what the verdict and the warnings need to know about them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.tally import Arms, Floats, Ints
from ciphercost.model.spec import ARMS

ALPHA = 0.01
"""Level of the test that totals and typical block differ. The test runs on every cell, so 5 % would warn too often."""
FAR = 3.0
"""A block further from its session's centre than this many robust standard deviations is far from typical."""
NORMAL = 1.4826
"""Standard deviation ÷ median absolute deviation of Gaussian noise."""
STALLED = 0.5
"""A slice stalled where its rate is below this share of the median of its arm in the blocks around it (NEIGHBOURS)."""
RARE_SPLIT = 0.05
"""A split of stalls between both arms is reported only if a fair coin would make it less often than this."""
NEIGHBOURS = 5
"""Blocks (odd number) over which that median is taken: a machine that is slow for a while has not stalled."""
EXACT = 12
"""Up to this many values all sign patterns are counted; above it FLIPS patterns are drawn."""
FLIPS = 4999
MANY = 200
"""Above this many values the sum of random signs is as good as Gaussian."""


def key(metric: str) -> str:
    """The key of a metric's ratio of totals in a mapping of intervals by metric."""
    return f"{metric}, totals"


def metric_of(name: str) -> str:
    """The metric of a key of such a mapping; of its ratio with failures too (`failures.key`)."""
    return name.partition(", ")[0]


def one_sided(values: Floats) -> float:
    """Two-sided p-value that the signs of `values` are fair coin flips: a randomisation test of their sum.

    Zeros are ignored. In A/A runs the order of a block's arms comes from a coin, so the sign of whatever happens in it is one too: the
    test holds for every kind of noise that does not depend on the arm. Monte Carlo draws have a fixed seed: one record, one answer.
    """
    values = values[values != 0]
    n = len(values)
    if n == 0:
        return 1.0
    seen = abs(float(values.sum())) * (1 - 1e-9)
    if n > MANY:
        z = seen / math.sqrt(float(values @ values))
        return float(math.erfc(z / math.sqrt(2)))
    if n <= EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ values) >= seen))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (FLIPS, n))
    beyond = int((np.abs(signs @ values) >= seen).sum())
    return (1 + beyond) / (1 + FLIPS)


def far_off(values: Floats, parts: Floats, sessions: Ints) -> Floats:
    """Each block's part of the totals beyond FAR robust standard deviations, which the robust centre ignores; 0 for a typical block.

    `values`: log ratios of blocks; `parts`: what each adds to the log ratio of totals (their mean is that ratio); all of shape (blocks,).
    """
    centre = np.empty(len(values))
    for session in np.unique(sessions):
        in_session = sessions == session
        # Not the median: if noise is in phase with the blocks they take two values, and the median would be one of them.
        centre[in_session] = statistics.hodges_lehmann(values[in_session])
    spread = FAR * NORMAL * float(np.median(np.abs(values - centre)))
    away = parts - centre
    beyond: Floats = away - np.clip(away, -spread, spread)
    # Parts are linearised, so rounding leaves tiny values, which don't count as far from typical.
    return np.where(np.abs(beyond) > 1e-12, beyond, 0.0)


class Stalled(NamedTuple):
    """Slices of each arm that ran at less than STALLED of the usual rate of their arm around them."""

    plain: int
    encrypted: int
    p_value: float
    """Of a fair coin: an exact sign test over the blocks in which one arm stalled more than the other."""

    @property
    def uneven(self) -> bool:
        """Whether to report the stalls: only one arm has them, or a fair coin would rarely split them like this."""
        return self.plain != self.encrypted and (min(self.plain, self.encrypted) == 0 or self.p_value < RARE_SPLIT)


def stalled(blocks: Arms) -> Stalled:
    """Count stalls. Those within a block are one event, because a stall of two slices in a row can hit one arm twice in `ABBA`."""
    hit = np.zeros((len(ARMS), len(blocks.sessions)), dtype=np.int64)
    for number, arm in enumerate(ARMS):
        rates = blocks.rates(arm)
        for session in np.unique(blocks.sessions):
            in_session = blocks.sessions == session
            hit[number, in_session] = (rates[in_session] < STALLED * usual(rates[in_session])[:, None]).sum(axis=1)
    more, less = int((hit[1] > hit[0]).sum()), int((hit[1] < hit[0]).sum())
    return Stalled(int(hit[0].sum()), int(hit[1].sum()), coin(more, less))


def usual(rates: Floats) -> Floats:
    """Median rate of the NEIGHBOURS blocks around each block, shape (blocks,); `rates`: (blocks, 2 slices) of one session, in order."""
    n = len(rates)
    width = min(NEIGHBOURS, n)
    start = np.clip(np.arange(n) - width // 2, 0, n - width)
    windows = np.lib.stride_tricks.sliding_window_view(rates, width, axis=0).reshape(n - width + 1, -1)
    medians: Floats = np.median(windows, axis=1)[start]
    return medians


def coin(one: int, other: int) -> float:
    """Two-sided p-value of a split of events between two equally likely arms (exact binomial)."""
    n, most = one + other, max(one, other)
    tail = sum(math.comb(n, k) for k in range(most, n + 1)) / (1 << n)
    return min(1.0, 2 * tail)
