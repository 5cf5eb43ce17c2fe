"""How many examples a test of generated data runs: all in `make test-all`, a quarter in `make test`."""

from __future__ import annotations

QUICK = False
"""Whether `exhaustive` tests are omitted; conftest.py sets this before it imports any test."""


def examples(count: int) -> int:
    """Hypothesis settings for a test that is slow at `count` examples; every run draws the same ones."""
    return max(5, count // 4) if QUICK else count
