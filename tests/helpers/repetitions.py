"""How often a test repeats itself over generated data: all of it in `make test-all`, a quarter in `make test`."""

from __future__ import annotations

QUICK = False
"""Whether tests that are marked `exhaustive` are left out; conftest.py sets it before any test is imported."""


def examples(count: int) -> int:
    """Hypothesis examples for a test that takes long at `count` of them; every run draws the same ones."""
    return max(5, count // 4) if QUICK else count
