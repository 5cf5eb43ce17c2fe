"""Format a study's ratios for all of its tables and findings, in the notation of every report. Pure."""

from __future__ import annotations

from ciphercost.estimate import notation
from ciphercost.model.result import Estimate
from ciphercost.model.study import StudyFigure

RATES = frozenset(
    {
        "TPS",
        "operations/s",
        "connections/s",
        "rows/s",
        "reads/s",
        "transactions/s",
        "results of 1 MB/s",
        "sets/s",
        "queries/s",
        "network bytes a second",
        "no sendfile",
        "TLS itself",
        "during ÷ before",
    }
)
"""Figures that count things: encryption gives fewer, not less."""
TOO_WIDE = "too wide"
WIDEST = 4.0
"""Upper ÷ lower bound from which an interval that includes no change (half to twice) prints as too wide."""
NONE = "-"


def change(ratio: float | None, figure: str = "") -> str:
    """`33.0 % more`, `2.02 times` or `no change`: a ratio without an interval."""
    if ratio is None:
        return NONE
    if ratio >= notation.DOUBLING:
        return notation.factor(ratio)
    return notation.percent(ratio, 1, *more_and_less(figure))


def claimed(cost: StudyFigure) -> str:
    """A published cost: `33.0 % more`; as a limit `at most 5.0 % more`, `at most 3.1 % apart`, `not less`."""
    text = change(cost.published, cost.figure)
    if cost.published is None or not cost.bound:
        return text
    more, less = more_and_less(cost.figure)
    if cost.bound == "either":
        return f"at most {text.removesuffix(f' {more}').removesuffix(f' {less}')} apart"
    if cost.published == 1:
        return f"not {less}" if cost.bound == "least" else f"not {more}"
    return f"at {cost.bound} {text}"


def bounds(low: float, high: float, figure: str = "") -> str:
    """`2.8 % less to 10.4 % more`, `23.5–26.4 % fewer`: an interval without an estimate beside it."""
    if too_wide(low, high):
        return TOO_WIDE
    if low == high:
        return change(low, figure)
    more, less = more_and_less(figure)
    text = notation.interval(Estimate((low * high) ** 0.5, low, high), more, less)
    return f"{text} {more if low > 1 else less}" if text.endswith("%") else text


def with_interval(cost: StudyFigure) -> str:
    """`18 % more (6–31 %)`; the interval alone if it includes no change, or `too wide`."""
    if cost.ours is None or cost.low is None or cost.high is None:
        return change(cost.ours, cost.figure)
    if too_wide(cost.low, cost.high):
        return TOO_WIDE
    estimate = Estimate(cost.ours, cost.low, cost.high)
    interval = notation.interval(estimate, *more_and_less(cost.figure))
    if cost.low <= 1 <= cost.high and interval != notation.EXACT:
        return interval
    return f"{notation.worded(estimate, *more_and_less(cost.figure))} ({interval.removesuffix(notation.TIMES)})"


def plus_minus(ratio: float | None, spread: float | None, figure: str = "") -> str:
    """`4.6 ± 4.4 % more`: a ratio and its standard deviation."""
    text = change(ratio, figure)
    if ratio is None or spread is None:
        return text
    if " % " not in text:
        return (
            f"{text.removesuffix(notation.TIMES)} ± {spread:.2g}{notation.TIMES}"
            if text.endswith(notation.TIMES)
            else f"{text} ± {spread * 100:.1f} %"
        )
    return text.replace(" % ", f" ± {spread * 100:.1f} % ", 1)


def too_wide(low: float, high: float) -> bool:
    """Whether an interval includes no change and so much on both sides that its bounds say nothing."""
    return low <= 0 or (low <= 1 <= high and high / low > WIDEST)


def more_and_less(figure: str) -> tuple[str, str]:
    """The words for encrypted above plain, and below it."""
    return ("more", "fewer") if figure in RATES else ("more", "less")
