"""unused_memory: gives pages that this process has freed back to the kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def _trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim; None with another C library."""
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found


TRIM = _trim()


def give_back() -> None:
    """Give back what is free. Takes 5 µs if nothing is.

    Otherwise glibc keeps it for later, and a process grows for hours although it holds no more.
    """
    if TRIM is not None:
        TRIM(0)
