"""Formats of a run over machines: one file per format with `render(concluded) -> str`, found by file name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from ciphercost.model.errors import UsageError, nearest
from ciphercost.report.machines_types import Concluded


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Callable[[Concluded], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(
            f"--format {name}: not a format of a run over machines; {nearest(name, names())}. Each machine's own run has every format: "
            "ciphercost report RUN/machines/node-1"
        )
    render: Callable[[Concluded], str] = importlib.import_module(f"{__name__}.{name}").render
    return render
