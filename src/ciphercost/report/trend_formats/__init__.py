"""Formats of a trend: one file per format with `render(trend) -> str`, found by file name. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.model.registry import Registry
from ciphercost.report.trend_types import Trend

REGISTRY = Registry(__name__, "--format {}: not a format of trend; {}")


def names() -> list[str]:
    return REGISTRY.names()


def get(name: str) -> Callable[[Trend], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    render: Callable[[Trend], str] = REGISTRY.get(name).render
    return render
