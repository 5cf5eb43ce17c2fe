"""What encryption costs storage itself, with intervals, from fio's slices. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ciphercost.estimate import sessions_or_blocks
from ciphercost.estimate.statistics import Floats
from ciphercost.estimate.to_estimate import around, to_estimate
from ciphercost.model.result import Estimate
from ciphercost.model.slices import StorageSlice
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.model.storage_jobs import JOBS

LATENCIES = frozenset(job.name for job in JOBS if job.latency)


# ── estimating ────────────────────────────────────────────────────────────────────────────────────────────────────────


def estimate(slices: Iterable[StorageSlice], mode: Mode) -> dict[str, Estimate]:
    """Encrypted ÷ plain of each job with its interval, by the same method as the load: complete blocks, then sessions if there are two.

    The ratio is one of bytes per second, or of the time of a write with its fsync (`fsync_latency`). A job without two complete blocks
    has none.
    """
    estimates: dict[str, Estimate] = {}
    for job, sessions in _values(slices).items():
        unit = "latency" if job in LATENCIES else "bytes/s"
        ratio = sessions_or_blocks.interval([values[:, 1] for values in sessions], mode)
        if ratio is not None:
            estimates[job] = to_estimate(ratio, mode, unit)
    return estimates


def levels(slices: Sequence[StorageSlice], mode: Mode) -> dict[Arm, dict[str, float]]:
    """Each arm's bytes per second, and µs of a write with its fsync; encrypted ÷ plain is the ratio of `estimate`."""
    by_arm: dict[Arm, dict[str, float]] = {arm: {} for arm in ARMS}
    for job, sessions in _values(slices).items():
        level, ratio = (sessions_or_blocks.typical([rows[:, column] for rows in sessions], mode) for column in (0, 1))
        done = [
            storage_slice for (_, _, name), four in _blocks(slices).items() if name == job for storage_slice in four
        ]
        scale = (
            1e6
            if job in LATENCIES
            else sum(storage_slice.bytes for storage_slice in done)
            / sum(storage_slice.operations for storage_slice in done)
        )
        for arm, value in around(level, ratio).items():
            by_arm[arm][job] = value * scale
    return by_arm


def _values(slices: Iterable[StorageSlice]) -> dict[str, list[Floats]]:
    """By job, for each session an array of (log level of both arms together, log ratio) per block. Levels are operations/s, or s for a latency."""
    values: defaultdict[str, defaultdict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for (session, _, job), four in _blocks(slices).items():
        turn = -1 if job in LATENCIES else 1
        rates = [turn * math.log(storage_slice.operations / storage_slice.seconds) for storage_slice in four]
        sign = 1 if four[0].arm == "plain" else -1
        ratio = sign * (rates[1] + rates[2] - rates[0] - rates[3]) / 2
        values[job][session].append((sum(rates) / 4, ratio))
    return {job.name: [np.array(rows) for rows in values[job.name].values()] for job in JOBS if values[job.name]}


def _blocks(slices: Iterable[StorageSlice]) -> dict[tuple[int, int, str], list[StorageSlice]]:
    """Complete blocks: (session, block, job) -> four good slices in mirrored order. A failed lead-in makes a block incomplete."""
    grouped: defaultdict[tuple[int, int, str], dict[int, StorageSlice]] = defaultdict(dict)
    spoilt: set[tuple[int, int, str]] = set()
    for storage_slice in slices:
        here = storage_slice.session, storage_slice.block, storage_slice.job
        if storage_slice.error or storage_slice.operations <= 0 or storage_slice.seconds <= 0:
            spoilt.add(here)
        elif storage_slice.position:
            grouped[here][storage_slice.position] = storage_slice
    complete = {}
    for here, positions in grouped.items():
        if here in spoilt or sorted(positions) != [1, 2, 3, 4]:
            continue
        four = [positions[number] for number in (1, 2, 3, 4)]
        first, second = four[0].arm, four[1].arm
        if first != second and [storage_slice.arm for storage_slice in four] == [first, second, second, first]:
            complete[here] = four
    return complete
