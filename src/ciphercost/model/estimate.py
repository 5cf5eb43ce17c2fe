"""A ratio of both arms, and an amount, with their intervals, as result.json holds them. No logic."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """encrypted ÷ plain, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    ratio_of_totals: float | None = None
    n: int = 0
    """Sessions (full mode) or blocks (quick mode) behind the interval."""
    method: str = ""
    p_value: float | None = None
    """Two-sided, against ratio = 1; with Holm's correction if the run has several cells."""
    unit: str = ""
    totals_low: float | None = None
    """95 % interval of `ratio_of_totals`, if that estimate differs from `ratio`."""
    totals_high: float | None = None


class Part(msgspec.Struct, frozen=True):
    """An amount, such as one part of a cost, with its 95 % interval."""

    value: float
    low: float
    high: float
