"""elapsed: what a slice cost of the time that a cell has."""

from __future__ import annotations

import time

OVERRUN = 1.5
"""A slice that took more than this many times the requested time waited for slow operations; then the time taken
counts.
"""


def elapsed(asked: float, began: float) -> float:
    """Seconds of load that a slice cost: those requested of the agent, or those it took if operations are slow."""
    took = time.monotonic() - began
    return took if took > OVERRUN * asked else asked
