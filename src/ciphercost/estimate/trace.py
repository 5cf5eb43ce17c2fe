"""The data of the slice and latency plots: every slice's rate over time, and both arms' latencies. Reads only the record.

A result contains no slices, so plots get these in addition.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ciphercost.estimate.histogram import Total, quantiles
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import decode
from ciphercost.model.run_directory import read_facts, read_slices
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, COUNTED, Arm, Phase

MOST_HISTOGRAMS = 256
"""Most histograms per arm that are read of a closed loop's slices, evenly spread. The shape needs no more, and each takes
time."""
BEYOND = 10
"""A quantile is drawn only if at least this many requests are slower."""
POINTS = 48


class Tick(NamedTuple):
    """One slice of the plot."""

    at_s: float
    """Seconds since the cell's first slice."""
    session: int
    phase: Phase
    arm: Arm
    rate: float
    """Operations per second."""
    marks: tuple[str, ...]
    """Why it is suspect; `failed` if it has no rate."""


class Quantiles(NamedTuple):
    """One arm's latencies."""

    shares: list[float]
    milliseconds: list[float]
    requests: int
    """All timed requests, including those of slices that were not read."""


class Trace(NamedTuple):
    """The slices of one cell."""

    ticks: list[Tick]
    """Without lead-ins and repeated sessions."""
    latency: dict[Arm, Quantiles]
    open_loop: bool
    """Whether `latency` was timed from the moment each request was due; otherwise it is what busy clients saw."""
    counted: int
    lead_ins: int
    failed: int
    marked: dict[str, int]
    void_sessions: int
    stride: int = 1
    """Latencies were read from every n-th slice, in both arms."""


class _Cell:
    """Collects a cell's slices one by one."""

    def __init__(self, void_sessions: list[int]) -> None:
        self.void = set(void_sessions)
        self.ticks: list[Tick] = []
        self.began: float | None = None
        self.counts: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        self.open: dict[Arm, Total] = {arm: Total() for arm in ARMS}
        self.closed: dict[Arm, list[tuple[str, str]]] = {arm: [] for arm in ARMS}
        """(place in the record, histogram)."""
        self.stride = 1
        self.seen: Counter[Arm] = Counter()
        self.requests: Counter[Arm] = Counter()
        self.block: tuple[int, int] | None = None
        self.pending: list[SliceRecord] = []

    def add(self, record: SliceRecord) -> None:
        if record.session in self.void or record.phase == "profile":
            return
        self.began = record.started if self.began is None else self.began
        agent = record.agent
        done = agent.done if agent is not None and not record.error else 0.0
        good = agent is not None and done > 0 and agent.seconds > 0
        counted = record.phase in COUNTED
        if counted and record.position == 0:
            self.counts["lead-in"] += 1
        elif counted:
            self.counts["counted" if good else "failed"] += 1
            self.marks.update(record.marks)
        if record.phase == "latency":
            self._latency(record, good=good)
        if counted and record.position == 0:
            return
        rate = done / agent.seconds if agent is not None and good else 0.0
        marks = tuple(record.marks) if good else ("failed",)
        self.ticks.append(Tick(record.started - self.began, record.session, record.phase, record.arm, rate, marks))
        if record.phase == "capacity" and agent is not None and good and agent.histogram:
            self.requests[record.arm] += agent.operations
            self._thin(record.arm, (_place(record), agent.histogram))

    def _latency(self, record: SliceRecord, *, good: bool) -> None:
        """Collect latencies of complete blocks only, as the estimate does."""
        here = (record.session, record.block)
        if here != self.block:
            self.block, self.pending = here, []
        if record.position and good:
            self.pending.append(record)
        if len(self.pending) == 4:
            for block_record in self.pending:
                if block_record.agent is not None and block_record.agent.histogram:
                    self.open[block_record.arm].add(decode(block_record.agent.histogram))

    def _thin(self, arm: Arm, histogram: tuple[str, str]) -> None:
        """Keep every slice until an arm has too many, then every second of both arms, and so on."""
        if self.seen[arm] % self.stride == 0:
            self.closed[arm].append(histogram)
        self.seen[arm] += 1
        if len(self.closed[arm]) > MOST_HISTOGRAMS:
            self.closed = {arm: self.closed[arm][::2] for arm in ARMS}
            self.stride *= 2

    def finish(self) -> Trace:
        """The trace. Raises ValueError with the place if a histogram is damaged."""
        open_loop = all(self.open[arm].layout is not None for arm in ARMS)
        if not open_loop:
            # Half an open loop is not used.
            self.open = {arm: Total() for arm in ARMS}
            for arm in ARMS:
                for place, text in self.closed[arm]:
                    try:
                        self.open[arm].add(decode(text))
                    except ValueError as error:
                        raise ValueError(f"{place}: {error}") from None
        latency = {arm: arm_quantiles for arm in ARMS if (arm_quantiles := _quantiles(self.open[arm])) is not None}
        if not open_loop and self.stride > 1:
            latency = {
                arm: arm_quantiles._replace(requests=self.requests[arm]) for arm, arm_quantiles in latency.items()
            }
        return Trace(
            ticks=self.ticks,
            latency=latency if len(latency) == len(ARMS) else {},
            open_loop=open_loop,
            counted=self.counts["counted"],
            lead_ins=self.counts["lead-in"],
            failed=self.counts["failed"],
            marked=dict(self.marks),
            void_sessions=len(self.void),
            stride=1 if open_loop else self.stride,
        )


def _quantiles(total: Total) -> Quantiles | None:
    """Quantiles from the fastest request (share 0) to where too few are slower; None if there are too few requests."""
    histogram = total.histogram()
    requests = histogram.total
    if requests < 4 * BEYOND:
        return None
    shares = 1 - 1 / np.geomspace(1, requests / BEYOND, POINTS)
    values = quantiles(histogram, shares.tolist()) / 1e6
    return Quantiles(shares.tolist(), values.tolist(), requests)


def read(directory: Path) -> list[Trace]:
    """One trace per cell of a run's directory. Raises UsageError if the record is damaged."""
    cells = [_Cell(cell.void_sessions) for cell in read_facts(directory).cells]
    for record in read_slices(directory):
        try:
            cells[record.cell].add(record)
        except (IndexError, ValueError) as error:
            raise _damaged(directory, f"{_place(record)}: {error}") from None
    try:
        return [cell.finish() for cell in cells]
    except ValueError as error:
        raise _damaged(directory, str(error)) from None


def _place(record: SliceRecord) -> str:
    return f"cell {record.cell}, session {record.session}, block {record.block}"


def _damaged(directory: Path, reason: str) -> UsageError:
    return UsageError(f"{directory}/slices.jsonl, {reason}")
