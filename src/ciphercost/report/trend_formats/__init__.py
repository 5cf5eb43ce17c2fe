"""Formats of a trend: one file per format, found by file name, and shared texts. Pure."""

from __future__ import annotations

import pkgutil


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))
