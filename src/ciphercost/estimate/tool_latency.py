"""What the tools of a command's load reported themselves: latencies, and how long they took to start. Pure.

A tool's percentile is one number for each slice. Its log ratio is formed within a block, as that of throughput is, and gets an interval by
the same rule. It is a latency of the closed loop: a client waits for its answer before it sends again, so slow answers delay requests that
nobody times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ciphercost.estimate import sessions_or_blocks, statistics
from ciphercost.estimate.statistics import Floats, Interval
from ciphercost.estimate.to_estimate import around
from ciphercost.model.command_load import ToolFigures
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode

SHARES = {"mean": 0.0, "p50": 0.5, "p99": 0.99}
DURATION = "duration"
METRICS = {DURATION: DURATION} | {f"tool_latency_{name}": name for name in SHARES}
"""By metric: the tool's figure."""
UNIT = "latency, the tool's own, in the closed loop"
TRAFFIC = ("quiet", "meanwhile")
ENOUGH = 10
"""Operations of a slice that must lie beyond a percentile in the median slice; a tool's percentile of fewer is little more than its maximum."""


class ToolLatencies:
    """The reports of complete blocks."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[tuple[int, Sequence[SliceRecord]]]] = {}

    def add(self, records: Sequence[SliceRecord], sign: int) -> None:
        """Add a complete block, `sign` +1 for ABBA, if a command made its load."""
        if all(record.reported for record in records):
            self._blocks.setdefault(records[0].session, []).append((sign, records))

    def drop(self, session: int) -> None:
        self._blocks.pop(session, None)

    def intervals(self, mode: Mode, most_nu: int | None) -> dict[str, Interval]:
        """The log ratio of each figure that every slice has, encrypted − plain."""
        found = {}
        for metric, name in METRICS.items():
            if (table := self._logs(name)) is None:
                continue
            ratios = [rows[:, 1] - rows[:, 0] for rows in table.values()]
            if (interval := sessions_or_blocks.interval(ratios, mode, most_nu)) is not None:
                found[metric] = interval
        return found

    def levels(self, intervals: dict[str, Interval], mode: Mode) -> dict[Arm, dict[str, float]]:
        """Both arms' levels in ms that match these log ratios, by the tool's figure."""
        levels: dict[Arm, dict[str, float]] = {arm: {} for arm in ARMS}
        for metric, name in METRICS.items():
            table = self._logs(name)
            if metric not in intervals or table is None:
                continue
            middle = sessions_or_blocks.typical([rows.mean(axis=1) for rows in table.values()], mode)
            for arm, value in around(middle, intervals[metric].centre).items():
                levels[arm][name] = value
        return levels

    def startup(self, mode: Mode) -> dict[Arm, dict[str, Any]]:
        """Means of each arm: seconds of a process, and of them those that the tool's clock leaves out. Empty without a command.

        Of an operator's task also what it is, the bytes that it made, and what it did to traffic.
        """
        described: dict[Arm, dict[str, Any]] = {}
        for arm in ARMS:
            sessions = [
                [
                    record.reported
                    for _, records in blocks
                    for record in records
                    if record.arm == arm and record.reported
                ]
                for blocks in self._blocks.values()
            ]
            reported = [one for slices in sessions for one in slices]
            if not reported:
                continue
            described[arm] = {
                "process_s": math.fsum(one.process_s for one in reported) / len(reported),
                "startup_s": math.fsum(one.startup_s for one in reported) / len(reported),
                "whole_process": any(one.whole for one in reported),
            }
            if operation := reported[0].operation:
                described[arm] |= {
                    "operation": operation,
                    "tool": reported[0].tool,
                    "output_bytes": sum(one.output_bytes for one in reported) / len(reported),
                    **_traffic(sessions, mode),
                }
        return described

    def _logs(self, name: str) -> dict[int, Floats] | None:
        """By session: the log of a figure in each block, shape (blocks, 2): plain, encrypted. None if a slice lacks it, or has too few operations."""
        operations: list[float] = []
        table: dict[int, Floats] = {}
        for session, blocks in self._blocks.items():
            rows = []
            for _, records in blocks:
                logs: dict[str, list[float]] = {arm: [] for arm in ARMS}
                for record in records:
                    value = _figure(record, name)
                    if not value or record.agent is None:
                        return None
                    logs[record.arm].append(math.log(value))
                    operations.append(record.agent.done)
                rows.append([sum(logs[arm]) / len(logs[arm]) for arm in ARMS])
            table[session] = np.array(rows)
        if not table or np.median(operations) * (1 - SHARES.get(name, 0.0)) < (1 if name == DURATION else ENOUGH):
            return None
        return table


def _figure(record: SliceRecord, name: str) -> float | None:
    """A figure of a slice: seconds of an operator's task, or what a tool reported, in ms. None: it has none."""
    if record.reported is None:
        return None
    if name == DURATION:
        return record.reported.process_s if record.reported.operation else None
    return record.reported.latency_ms.get(name)


def _traffic(sessions: Sequence[Sequence[ToolFigures]], mode: Mode) -> dict[str, dict[str, float]]:
    """Operations per second of the traffic on a server, before a task (`quiet`) and during it (`meanwhile`), as geometric means over its
    slices, and their `ratio` with its 95 % interval, `low` to `high`: over sessions, or in quick mode over slices. Empty: there was none.
    """
    logs = [
        np.log([[one.traffic.get(name, 0.0) or np.nan for name in TRAFFIC] for one in slices]) for slices in sessions
    ]
    every = np.concatenate(logs)
    if len(every) < 2 or np.isnan(every).any():
        return {}
    ratios = [rows[:, 1] - rows[:, 0] for rows in logs]
    if mode == "full" and len(ratios) >= 2:
        interval: Interval | None = statistics.session_interval(np.array([one.mean() for one in ratios]))
    else:
        interval = statistics.block_interval(np.concatenate(ratios))
    if interval is None:
        return {}
    figures = dict(zip(TRAFFIC, every.mean(axis=0), strict=True))
    figures |= dict(zip(("ratio", "low", "high"), (interval.centre, *interval.bounds()), strict=True))
    return {"traffic": {name: math.exp(value) for name, value in figures.items()}}
