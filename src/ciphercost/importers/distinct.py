"""Estimates how many different values there are, in little memory. Pure."""

from __future__ import annotations

KEPT = 1 << 14
"""Hashes that the estimate is made from; its standard error is 1/√KEPT, 0.8 %."""
_FIRST, _RANGE = -(2**63), 2**64


class Distinct:
    """The smallest hashes of the values (k minimum values: Bar-Yossef et al. 2002). `add` hashes below `limit`; others change nothing."""

    def __init__(self) -> None:
        self.limit = 1 << 63
        self._kept: set[int] = set()

    def add(self, hashed: int) -> None:
        """Add a value's hash of 64 bits with sign, as Python's `hash` of bytes."""
        self._kept.add(hashed)
        if len(self._kept) > 2 * KEPT:
            smallest = sorted(self._kept)[:KEPT]
            self._kept = set(smallest)
            self.limit = smallest[-1]

    def count(self) -> int:
        """Exact up to 2 * KEPT values."""
        if self.limit == 1 << 63:
            return len(self._kept)
        smallest = sorted(self._kept)[:KEPT]
        return round((KEPT - 1) / ((smallest[-1] - _FIRST) / _RANGE))
