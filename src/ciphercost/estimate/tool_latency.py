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

from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import Floats, Interval
from ciphercost.estimate.to_estimate import around
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode

SHARES = {"mean": 0.0, "p50": 0.5, "p99": 0.99}
METRICS = {f"tool_latency_{name}": name for name in SHARES}
"""By metric: the tool's figure."""
UNIT = "latency, the tool's own, in the closed loop"
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
            ratios = {session: rows[:, 1] - rows[:, 0] for session, rows in table.items()}
            if mode == "full" and len(ratios) >= 2:
                centres = np.array([statistics.hodges_lehmann(values) for values in ratios.values()])
                found[metric] = statistics.session_interval(centres, most_nu=most_nu)
            elif len(every := np.concatenate(list(ratios.values()))) >= 2:
                interval = statistics.block_interval(every)
                if interval is not None:
                    found[metric] = interval
        return found

    def levels(self, intervals: dict[str, Interval], mode: Mode) -> dict[Arm, dict[str, float]]:
        """Both arms' levels in ms that match these log ratios, by the tool's figure."""
        levels: dict[Arm, dict[str, float]] = {arm: {} for arm in ARMS}
        for metric, name in METRICS.items():
            table = self._logs(name)
            if metric not in intervals or table is None:
                continue
            groups = list(table.values()) if mode == "full" else [np.concatenate(list(table.values()))]
            middle = float(np.mean([statistics.hodges_lehmann(rows.mean(axis=1)) for rows in groups]))
            for arm, value in around(middle, intervals[metric].centre).items():
                levels[arm][name] = value
        return levels

    def startup(self) -> dict[Arm, dict[str, Any]]:
        """Means of each arm: seconds of a process, and of them those that the tool's clock leaves out. Empty without a command."""
        described: dict[Arm, dict[str, Any]] = {}
        for arm in ARMS:
            reported = [
                record.reported
                for blocks in self._blocks.values()
                for _, records in blocks
                for record in records
                if record.arm == arm and record.reported
            ]
            if reported:
                described[arm] = {
                    "process_s": math.fsum(one.process_s for one in reported) / len(reported),
                    "startup_s": math.fsum(one.startup_s for one in reported) / len(reported),
                    "whole_process": any(one.whole for one in reported),
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
                    value = record.reported.latency_ms.get(name) if record.reported else None
                    if not value or record.agent is None:
                        return None
                    logs[record.arm].append(math.log(value))
                    operations.append(record.agent.done)
                rows.append([sum(logs[arm]) / len(logs[arm]) for arm in ARMS])
            table[session] = np.array(rows)
        if not table or np.median(operations) * (1 - SHARES[name]) < ENOUGH:
            return None
        return table
