"""Numbers of bytes in words."""

from __future__ import annotations


def size(count: float) -> str:
    """`1 KB`, `250 MB`, `1.2 TB` of bytes."""
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= least:
            return f"{count / least:.3g} {unit}"
    return f"{count:.0f} B"
