"""Fisher's exact test of a table of two rows. Pure.

R. A. Fisher, "On the interpretation of χ² from contingency tables, and the calculation of P" (1922). scipy has it, but takes a second to start.
"""

from __future__ import annotations

import math

ALIKE = 1 + 1e-7
"""Tables whose probabilities differ by less than this factor are equally likely: the difference is that of rounding."""


def p_value(one: int, of_one: int, other: int, of_other: int) -> float:
    """Two-sided p-value that `one` events in `of_one` units and `other` in `of_other` have the same chance.

    The sum of the probabilities of all tables with the same margins that are no likelier than this one (hypergeometric). Units are independent.
    Raises ValueError if there are more events than units.
    """
    if not (0 <= one <= of_one and 0 <= other <= of_other):
        raise ValueError(f"{one} of {of_one} and {other} of {of_other}: events are at least 0 and at most the units")
    events = one + other
    lowest, highest = max(0, events - of_other), min(events, of_one)
    logs = [_choose(of_one, at) + _choose(of_other, events - at) for at in range(lowest, highest + 1)]
    whole = _choose(of_one + of_other, events)
    chances = [math.exp(log - whole) for log in logs]
    limit = chances[one - lowest] * ALIKE
    return min(1.0, math.fsum(chance for chance in chances if chance <= limit))


def _choose(n: int, k: int) -> float:
    """Logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
