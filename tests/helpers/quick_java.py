"""Virtual machines with the first of Java's two compilers only. What the second compiles, for seconds of CPU after each start, pays in load and
in ciphers, to which only it gives the CPU's instructions.

The options that the product gives stay. Whole runs that `warm.run` forks have the product's own machine, since they measure what a cipher
costs; so have the tests that ask for `whole_java`.
"""

from __future__ import annotations

from ciphercost.load.jdbc import java

QUICK = ("-XX:TieredStopAtLevel=1",)
WHOLE = java.STEADY
"""The product's own options."""


def use() -> None:
    """From now on, in this process."""
    java.STEADY = (*WHOLE, *QUICK)
