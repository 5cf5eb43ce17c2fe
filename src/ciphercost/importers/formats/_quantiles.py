"""Counts latencies, for their mean and quantiles. Pure."""

from __future__ import annotations

from ciphercost.importers.formats.pgbench_log import quantile, rounded

LEAST_COUNT = 100
"""Values that a 99th percentile needs."""


class Counts:
    """Latencies in ms, as counts. Memory does not grow with their number: quantiles are of values rounded to three digits."""

    def __init__(self) -> None:
        self.number = 0
        self.sum = 0.0
        self._counts: dict[int, int] = {}

    def add(self, milliseconds: float) -> None:
        self.number += 1
        self.sum += milliseconds
        value = rounded(round(milliseconds * 1e3))
        self._counts[value] = self._counts.get(value, 0) + 1

    def figures(self) -> dict[str, float]:
        """Return the mean and, if there are enough values, median and 99th percentile, in ms."""
        if not self.number:
            return {}
        figures = {"latency_mean": self.sum / self.number}
        if self.number >= LEAST_COUNT:
            figures |= {
                f"latency_{name}": quantile(self._counts, share) / 1e3 for name, share in (("p50", 0.5), ("p99", 0.99))
            }
        return figures
