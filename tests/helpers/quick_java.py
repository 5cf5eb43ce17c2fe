"""Java virtual machines that compile quickly, not well: tests end long before the better code would have paid for its compiler.

Only the first of Java's two compilers works. Everything else of the command line is the product's.
"""

from __future__ import annotations

from ciphercost.load.jdbc import java

FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
OWN = java.STEADY
"""The product's options."""


def use() -> None:
    """From now on, in this process and its forks."""
    java.STEADY = (*OWN, FIRST_COMPILER)
