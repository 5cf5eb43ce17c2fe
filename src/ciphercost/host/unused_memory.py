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
    """Give it back. Takes 5 µs if there is nothing to give.

    Otherwise glibc keeps what large temporary arrays took, and a process that computes with ever larger ones grows as if it leaked.
    """
    if TRIM is not None:
        TRIM(0)
