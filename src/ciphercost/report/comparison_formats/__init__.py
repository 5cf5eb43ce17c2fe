"""Formats of a comparison: one file per format with `render(comparison) -> str`, found by file name. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.model.registry import Registry
from ciphercost.report.comparison_types import Comparison

REGISTRY = Registry(__name__, "--format {}: not a format of compare; {}")


def names() -> list[str]:
    return REGISTRY.names()


def get(name: str) -> Callable[[Comparison], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    render: Callable[[Comparison], str] = REGISTRY.get(name).render
    return render
