"""What limited a cell's arms, for the studies' tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.estimate import bottleneck


def in_short(used: Sequence[bottleneck.Use]) -> str:
    """`server 98`; if nothing was saturated `-: server 73, client 79, disk 0`."""
    full = bottleneck.limits(used)
    words = ", ".join(f"{use.short} {100 * min(1.0, use.share):.0f}" for use in full or used)
    return words if full else f"-: {words}"
