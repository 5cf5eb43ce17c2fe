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
        return [round(100 * self.at(each), 1) for each in figure.size]


def of(rows: Iterable[Row]) -> dict[str, Axis]:
    """An axis for each metric of the book."""
    sizes: dict[str, list[float]] = {"cpu": [], "throughput": [], "p99": []}
    for row in rows:
        for name, figure in row.figures.items():
            sizes[name] += [figure.size[0]] if figure.size else []
    made = {"cpu": _times, "throughput": _shares, "p99": _ratios}
    return {name: made[name](values) for name, values in sizes.items()}


def _times(values: Sequence[float]) -> Axis:
    """µs, by powers of ten."""
    positive = [each for each in values if each > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    high = max(high, low + 1)
    step = math.ceil((high - low) / (MOST_TICKS - 1))
    ticks = [((each - low) / (high - low), _time(each)) for each in range(low, high + 1, step)]
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
    most = max((1 + each for each in values), default=2.0)
    top = next((each for each in FACTORS[1:] if each >= most), FACTORS[-1])
    high = math.log(top)
    ticks: list[tuple[float, str]] = []
    for each in FACTORS:
        place = math.log(each) / high
        if each == top or (each < top and (not ticks or place - ticks[-1][0] >= LEAST_GAP) and place <= 1 - LEAST_GAP):
            ticks.append(
                (place, "equal" if each == 1 else f"{each:g} times" if each >= 2 else f"+{100 * (each - 1):.0f} %")
            )
    return Axis("latency, logarithmic", 0.0, high, "ratio", ticks)


def lines(axis: Axis) -> str:
    """A line at each tick, as layers of a CSS background."""
    line = "linear-gradient(var(--grid), var(--grid))"
    return ", ".join(f"{line} {100 * place:.1f}% 0 / 1px 100% no-repeat" for place, _ in axis.ticks)
