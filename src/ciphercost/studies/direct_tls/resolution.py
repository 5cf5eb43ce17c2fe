"""How many starts or connections show that a round trip is missing, from their scatter. Pure."""

from __future__ import annotations

import math

Z = 1.96
"""97.5 % quantile of the normal distribution."""


def half_width(sd: float, n: int) -> float:
    """Half of the 95 % interval of a difference of two means of `n` independent values each, in the unit of `sd`."""
    return Z * sd * math.sqrt(2 / n)


def needed(sd: float, difference: float) -> int:
    """Values of each kind after which the interval of their means' difference is no wider than ± that difference; at least 2."""
    return max(2, math.ceil(2 * (Z * sd / difference) ** 2))
