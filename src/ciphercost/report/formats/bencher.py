"""Bencher Metric Format (BMF), JSON for `bencher run --adapter json`: benchmark → measure → value, lower_value, upper_value.

A benchmark is a cell. A measure is a ratio, encrypted ÷ plain, e.g. `throughput-ratio`. It has a name of its own because Bencher's
built-in measures `throughput` and `latency` are absolute. Where slices failed, `failed-slices-plain` and `failed-slices-encrypted` are their shares.
"""

from __future__ import annotations

import msgspec

from ciphercost.model.result import Result
from ciphercost.report import tracked


def render(result: Result) -> str:
    """Indented JSON. A cell that was not proven, or has no number, is left out."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for figure in tracked.figures(result):
        estimate = figure.row.estimate
        benchmarks.setdefault(figure.id, {})[measure(figure.row.key)] = {
            "value": estimate.ratio,
            "lower_value": estimate.low,
            "upper_value": estimate.high,
        }
        for arm, share in tracked.failed(figure.cell).items():
            benchmarks[figure.id][f"failed-slices-{arm}"] = {"value": share}
    return msgspec.json.format(msgspec.json.encode(benchmarks), indent=2).decode()


def measure(metric: str) -> str:
    """The slug of a measure: `server-cpu-per-op-ratio`."""
    return f"{metric.replace('_', '-')}-ratio"
