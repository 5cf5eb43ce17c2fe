"""One arm's level of each metric, by the same estimator as its ratio. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ciphercost.model.result import Cell
from ciphercost.model.spec import Arm


def _typical(*names: str) -> Callable[[dict[str, Any]], float | None]:
    """A function that reads the level that matches the robust ratio; for imported runs, the plain level."""

    def read(arm: dict[str, Any]) -> float | None:
        for value in (arm.get("typical", {}), arm):
            for name in names:
                value = value.get(name, {}) if isinstance(value, dict) else {}
            if isinstance(value, int | float):
                return float(value)
        return None

    return read


def _disk_bytes(arm: dict[str, Any]) -> float | None:
    """Read and written; None: not counted."""
    return arm["read_bytes_per_op"] + arm["write_bytes_per_op"] if "write_bytes_per_op" in arm else None


LEVELS: dict[str, tuple[Callable[[dict[str, Any]], float | None], str]] = {
    "throughput": (_typical("throughput"), "/s"),
    "rate_at_objective": (_typical("rate_at_objective"), "/s"),
    "server_cpu_per_op": (lambda arm: arm.get("server_cpu_us_per_op"), "µs"),
    "client_cpu_per_op": (lambda arm: arm.get("client_cpu_us_per_op"), "µs"),
    "hop_cpu_per_op": (lambda arm: arm.get("hop_cpu_us_per_op"), "µs"),
    "latency_p50": (_typical("latency_ms", "p50"), "ms"),
    "latency_p99": (_typical("latency_ms", "p99"), "ms"),
    "latency_mean": (_typical("latency_ms", "mean"), "ms"),
    "duration": (_typical("duration"), "s"),
    "tool_latency_p50": (_typical("tool_latency_ms", "p50"), "ms"),
    "tool_latency_p99": (_typical("tool_latency_ms", "p99"), "ms"),
    "tool_latency_mean": (_typical("tool_latency_ms", "mean"), "ms"),
    "host_busy": (lambda arm: arm.get("host_busy"), "%"),
    "host_cpu_per_op": (lambda arm: arm.get("host_cpu_us_per_op"), "µs"),
    "wire_bytes_per_op": (lambda arm: arm.get("wire_bytes_per_op"), "B"),
    "segments_per_op": (lambda arm: arm.get("segments_per_op"), ""),
    "switches_per_op": (lambda arm: arm.get("switches_per_op"), ""),
    "faults_per_op": (lambda arm: arm.get("faults_per_op"), ""),
    "disk_bytes_per_op": (_disk_bytes, "B"),
    "machine_cpu_per_op": (lambda arm: arm.get("machine_cpu_us_per_op"), "µs"),
    "disk_written_per_op": (lambda arm: arm.get("write_bytes_per_op"), "B"),
    "disk_read_per_op": (lambda arm: arm.get("read_bytes_per_op"), "B"),
    "memory": (lambda arm: arm.get("memory_bytes", 0.0) / 1e6 or None, "MB"),
    "start_time": (lambda arm: arm.get("start_s"), "s"),
}
"""By metric: a function that reads an arm's level, and its unit."""


def level(cell: Cell, arm: Arm, key: str) -> float | None:
    """One arm's level of a metric, by the same estimator as the ratio: encrypted ÷ plain is `cell.overhead[key].ratio`."""
    return LEVELS[key][0](cell.arms.get(arm, {}))
