"""The scales of the front page's bars: where a value ends, and what stands at the ticks. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ciphercost.book.rows import Figure, Row

MOST_TICKS = 4
"""Labels that fit beside each other above a bar, on a phone too."""
LEAST_GAP = 0.2
"""Distance of two labels, as a share of the axis."""
FACTORS = (1.0, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4)
"""Where an axis of ratios may have a tick."""


class Axis(NamedTuple):
    """One metric's axis."""

    unit: str
    """What it shows, and how: `added CPU time, logarithmic`."""
    low: float
    """Left and right end: the logarithm of µs or of a ratio, or a share."""
    high: float
    kind: str
    """`time`, `share` or `ratio`."""
    ticks: Sequence[tuple[float, str]]
    """Position, as a share of the axis, and label."""

    def at(self, value: float) -> float:
        """Position of a value, as a share of the axis from 0 to 1: what lies beyond an end is at that end."""
        if self.kind == "time":
            value = math.log10(value) if value > 0 else -math.inf
        elif self.kind == "ratio":
            value = math.log(1 + value) if value > -1 else -math.inf
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def positions(self, figure: Figure) -> list[float]:
        """Ends of the bar, and of the interval over it, in percent; empty: no bar."""
        if figure.size is None:
            return []
        return [round(100 * self.at(value), 1) for value in figure.size]


def of(rows: Iterable[Row]) -> dict[str, Axis]:
    """An axis for each metric of the book."""
    sizes: dict[str, list[float]] = {"cpu": [], "throughput": [], "p99": []}
    for row in rows:
        for name, figure in row.figures.items():
            sizes[name] += [figure.size[0]] if figure.size else []
    makers = {"cpu": _times, "throughput": _shares, "p99": _ratios}
    return {name: makers[name](values) for name, values in sizes.items()}


def _times(values: Sequence[float]) -> Axis:
    """µs, by powers of ten."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    high = max(high, low + 1)
    step = math.ceil((high - low) / (MOST_TICKS - 1))
    ticks = [((exponent - low) / (high - low), _time(exponent)) for exponent in range(low, high + 1, step)]
    return Axis("added CPU time, logarithmic", low, high, "time", ticks)


def _time(exponent: int) -> str:
    """`100 µs` for 2: ten to the power of µs."""
    for least, unit in ((6, "s"), (3, "ms"), (0, "µs")):
        if exponent >= least:
            return f"{10 ** (exponent - least):,} {unit}"
    return f"{10 ** (exponent + 3):g} ns"


def _shares(_: Sequence[float]) -> Axis:
    ticks = [(0.0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]
    return Axis("operations per second lost", 0.0, 1.0, "share", ticks)


def _ratios(values: Sequence[float]) -> Axis:
    """Encrypted ÷ plain, from no change to the highest."""
    most = max((1 + value for value in values), default=2.0)
    top = next((factor for factor in FACTORS[1:] if factor >= most), FACTORS[-1])
    high = math.log(top)
    ticks: list[tuple[float, str]] = []
    for factor in FACTORS:
        place = math.log(factor) / high
        if factor == top or (
            factor < top and (not ticks or place - ticks[-1][0] >= LEAST_GAP) and place <= 1 - LEAST_GAP
        ):
            ticks.append(
                (
                    place,
                    "equal" if factor == 1 else f"{factor:g} times" if factor >= 2 else f"+{100 * (factor - 1):.0f} %",
                )
            )
    return Axis("latency, logarithmic", 0.0, high, "ratio", ticks)


def lines(axis: Axis) -> str:
    """A line at each tick, as layers of a CSS background."""
    line = "linear-gradient(var(--grid), var(--grid))"
    return ", ".join(f"{line} {100 * place:.1f}% 0 / 1px 100% no-repeat" for place, _ in axis.ticks)
