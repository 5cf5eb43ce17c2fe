"""The text of a ratio and its interval, the same in every report. Pure.

One rule for terminal, page, plots, tables and comparisons:

* A figure of a doubling or more is a factor: `2.02 times (1.96–2.08 times)`. Any other is a percentage: `28.6 % fewer (27.7–29.5 %)`.
  The estimate decides, and both bounds follow it, unless the upper bound is tenfold.
* A percentage has no sign. A word gives its direction; bounds that lie on both sides of no change each have their own:
  `64 % fewer to 8 % more`.
* What rounds to nothing is `no change`. An interval whose bounds round to the same text is `exact`: exact to the digits shown.
"""

from __future__ import annotations

import math

from ciphercost.model.result import Estimate

DOUBLING = 1.995
"""Encrypted ÷ plain from which a figure is written as a factor, because it would round to `100 % more`."""
TENFOLD = 9.995
"""Upper bound from which it is a factor too: `10 % fewer (99.9 % fewer to 2,900 % more)` says less than `0.9 times (0.001–30 times)`."""
NO_CHANGE = "no change"
EXACT = "exact"
TIMES = " times"
"""What a factor ends with."""
LEAST_FACTOR = 0.001
"""Below this a factor is written as a bound."""
MOST_DIGITS = 4
"""Most decimals of a percentage."""


def by_factor(estimate: Estimate) -> bool:
    """Whether a figure is written as `2.02 times` rather than as a percentage."""
    return estimate.ratio >= DOUBLING or estimate.high >= TENFOLD


def worded(estimate: Estimate, more: str = "more", less: str = "less") -> str:
    """The estimate alone: `12.3 % fewer`, `31 % more`, `8.40 times` or `no change`."""
    if by_factor(estimate):
        return factor(estimate.ratio)
    return percent(estimate.ratio, decimals(estimate), more, less)


def interval(estimate: Estimate, more: str = "more", less: str = "less") -> str:
    """The interval alone: `11.8–12.9 %`, `1.96–2.08 times`, `64 % fewer to 8 % more`, `no change to 2 % more` or `exact`."""
    if math.isclose(estimate.low, estimate.high, rel_tol=1e-9):
        return EXACT
    if by_factor(estimate):
        return factors(estimate.low, estimate.high)
    digits = decimals(estimate)
    ratios = (estimate.low, estimate.ratio, estimate.high)
    low, value, high = (percent(ratio, digits, more, less) for ratio in ratios)
    if low == high == value:
        return EXACT
    directions = {ratio > 1 for ratio in ratios}
    if len(directions) == 1 and NO_CHANGE not in (low, value, high):
        first, last = (_bare(text) for text in ((low, high) if estimate.low > 1 else (high, low)))
        return first if first == last else f"{first.removesuffix(' %')}–{last}"
    return low if low == high else f"{low} to {high}"


def percent(ratio: float, digits: int, more: str = "more", less: str = "less") -> str:
    """A ratio as `49.3 % more`, or `no change` if it rounds to that."""
    text = f"{abs(ratio - 1) * 100:.{digits}f}"
    return f"{text} % {more if ratio > 1 else less}" if float(text) else NO_CHANGE


def _bare(text: str) -> str:
    """`12.3 %` of `12.3 % fewer`."""
    return text[: text.index("%") + 1]


def factor(ratio: float) -> str:
    """`2.02 times`: three significant digits, with thousands separators."""
    if ratio < LEAST_FACTOR:
        return f"under {LEAST_FACTOR:g}{TIMES}"
    return (f"{ratio:,.0f}" if ratio >= 999.5 else f"{ratio:#.3g}".rstrip(".")) + TIMES


def factors(low: float, high: float) -> str:
    """`1.96–2.08 times`: an interval of factors, or `exact`."""
    first, last = factor(low), factor(high)
    return EXACT if first == last else f"{first.removesuffix(TIMES)}–{last}"


def decimals(estimate: Estimate) -> int:
    """Decimals of a percentage: as many as the interval's width supports, and enough that 99.96 % is not 100 %."""
    left = max(estimate.low, 10.0 ** -(MOST_DIGITS + 2))
    nearly_all = math.ceil(-math.log10(100 * left)) if left < 0.01 else 0
    return min(MOST_DIGITS, max(decimals_of_width((estimate.high - estimate.low) * 100), nearly_all))


def decimals_of_width(width: float) -> int:
    """Decimals for an interval's width in percentage points."""
    return 0 if width > 20 else 1 if width > 0.5 else 2


def decimals_of_half(half: float, most: int = 3) -> int:
    """Decimals of two significant digits of an interval's half-width; 2 if it has no width."""
    return max(0, min(most, 1 - math.floor(math.log10(half)))) if half > 0 else 2


def every(count: int, many: str) -> str:
    """`both cells`, `all 7 cells`; `many`: the plural of what was counted."""
    return f"both {many}" if count == 2 else f"all {count} {many}"


def number(value: float) -> str:
    """Three significant digits, with thousands separators."""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def of_what(change: str, what: str) -> str:
    """`12.3 % fewer operations/s`, `4.45 times the server CPU/op`, `no change in latency p50`."""
    between = " in " if change == NO_CHANGE else " the " if change.endswith(TIMES) else " "
    return f"{change}{between}{what}"
