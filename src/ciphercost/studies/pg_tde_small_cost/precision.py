"""Figures of how narrow an interval is, and how they are printed. Pure."""

from __future__ import annotations

from ciphercost.model.study import StudyFigure

HALF, MINUTES = "half-width", "minutes needed"
RUNS_HALF, RUNS_MINUTES = "half-width of averages", "minutes of averages needed"
OF_THE_DESIGN = (HALF, MINUTES, RUNS_HALF, RUNS_MINUTES)
"""Figures of how narrow an interval is, not of what encryption costs."""
DESIGN = "design"
"""Their arm."""
LARGE = 99.5
HOURS = 600.0
"""Minutes from which a time is printed in hours."""


def shown(figure: StudyFigure | None) -> str:
    """`±0.62 %`, `12 min (5.2–50 min)`."""
    if figure is None or figure.ours is None:
        return "-"
    if figure.unit == "%":
        value = f"±{digits(figure.ours)} %"
        return (
            value
            if figure.low is None or figure.high is None
            else f"{value} ({digits(figure.low)}–{digits(figure.high)} %)"
        )
    return span(figure.ours, figure.low or 0.0, figure.high or 0.0)


def span(value: float, low: float, high: float) -> str:
    """`12 min (5.2–50 min)`, below a minute in seconds, from ten hours on in hours."""
    unit, scale = ("h", 60.0) if value >= HOURS else ("min", 1.0) if value >= 1 else ("s", 1 / 60)
    value, low, high = (minutes / scale for minutes in (value, low, high))
    return f"{digits(value)} {unit} ({digits(low)}–{digits(high)} {unit})"


def digits(value: float) -> str:
    """Two digits, or a whole number from 100 on."""
    return f"{value:.2g}" if value < LARGE else f"{value:,.0f}"
