"""Simulates runs in which slices fail, of both arms or of one, for tests and METHODOLOGY.md. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

import simulate
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.model.result import CellEstimate
from ciphercost.model.slices import TIMEOUT, SliceRecord
from ciphercost.model.spec import ARMS, Mode
from simulate import Floats, Random

SLOW_SHARE, SLOW_MEAN, LIMIT = 0.1, 0.3, 0.5
"""Share of an arm's slices that are slower, their mean loss of log rate (exponential), and the loss from which a slice times out."""
TIMED_OUT = SLOW_SHARE * math.exp(-LIMIT / SLOW_MEAN)
"""Share of the arm's slices that time out: 1.9 %."""
SLOW_COST = math.log1p(-SLOW_SHARE * SLOW_MEAN / (1 + SLOW_MEAN))
"""Log ratio of what the slower slices cost in operations, those that time out included: −2.3 %."""


class Failing(NamedTuple):
    """Chance of each counted slice and lead-in to fail, by arm."""

    plain: float = 0.0
    encrypted: float = 0.0
    outages: float = 0.0
    """Chance of each block that three of its slices in a row fail, in whichever arm they are."""
    slow: bool = False
    """Some of the encrypted arm's slices are slow, and the slowest of them time out."""


def run(random: Random, sessions: int, blocks: int, failing: Failing) -> CellEstimate:
    """The estimate of one run without an effect, of `blocks` blocks a session; white noise of 1 %, and each server's own effect of 0.3 %."""
    mode: Mode = "full" if sessions > 1 else "quick"
    estimator = CellEstimator()
    simulated = simulate.experiment(random, simulate.white, sessions, blocks)
    for session in range(sessions):
        rates, signs = simulated.rates[session], simulated.signs[session]
        turns = signs[:, None] * np.array([-0.5, 0.5, 0.5, -0.5])
        rates = rates + turns * (random.normal(0, simulate.SERVER_SD * math.sqrt(2)) if mode == "full" else 0.0)
        lost: Floats = np.zeros((blocks, 5))
        if failing.slow:
            outside = np.array([True, False, False, True])
            encrypted = np.where((signs > 0)[:, None], ~outside, outside)
            lost[:, 1:] = (
                encrypted * (random.random((blocks, 4)) < SLOW_SHARE) * random.exponential(SLOW_MEAN, (blocks, 4))
            )
            rates = rates - lost[:, 1:]
        out = random.random(blocks) < failing.outages
        first = random.integers(0, 3, blocks)
        for record in simulate.records(rates, signs, session=session + 1):
            chance = (failing.plain, failing.encrypted)[ARMS.index(record.arm)]
            broken = out[record.block] and 0 <= record.position - first[record.block] < 3
            slow = failing.slow and lost[record.block, record.position] > LIMIT
            estimator.add(failed(record, slow=bool(slow)) if broken or slow or random.random() < chance else record)
    return estimator.finish(mode)


def failed(record: SliceRecord, *, slow: bool = False) -> SliceRecord:
    """The slice as it is recorded when it fails."""
    return msgspec.structs.replace(
        record, agent=None, counters=None, error="connection lost", marks=[TIMEOUT] if slow else []
    )


def runs(seed: int, count: int, sessions: int, blocks: int, failing: Failing) -> Iterator[CellEstimate]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield run(random, sessions, blocks, failing)
