"""reports: Result -> text. One file a format, each with `render(result) -> str`, found by file name. Pure."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from ciphercost.errors import UsageError, nearest
from ciphercost.model import Result


def names() -> list[str]:
    """Names of all formats, by file."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Callable[[Result], str]:
    """The renderer of that format. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(f"unknown report format '{name}': {nearest(name, names())}")
    render: Callable[[Result], str] = importlib.import_module(f"{__name__}.{name}").render
    return render
