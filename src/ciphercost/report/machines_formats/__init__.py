"""Formats of a run over machines: one file per format with `render(concluded) -> str`, found by file name."""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.model.registry import Registry
from ciphercost.report.machines_types import Concluded

REGISTRY = Registry(
    __name__,
    "--format {}: not a format of a run over machines; {}. Each machine's own run has every format: "
    "ciphercost report RUN/machines/node-1",
)


def names() -> list[str]:
    return REGISTRY.names()


def get(name: str) -> Callable[[Concluded], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    render: Callable[[Concluded], str] = REGISTRY.get(name).render
    return render
