"""The poolers and the sizes that the study compares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

POOLERS: Mapping[str, str] = MappingProxyType({"pgbouncer": "PgBouncer", "odyssey": "Odyssey"})
"""By their names as hops. The first is the reference."""
REFERENCE, QUESTIONED = POOLERS
WORKLOAD = "odyssey-large-value/value"
QUARTER = 4
"""The smaller value is this part of the large one: time that grows with the square is then 16 times as long, not 4."""


def sizes(size: int) -> tuple[int, int]:
    """Bytes of the two values, the smaller first."""
    return size // QUARTER, size


def label(size: int) -> str:
    """`40 MB`, `250 KB`: the name of a size in the record and in every table."""
    return f"{size / 1e6:g} MB" if size >= 1_000_000 else f"{size / 1e3:g} KB"


def name_of(pooler: str, size: int) -> str:
    """`40 MB, Odyssey`."""
    return f"{label(size)}, {POOLERS[pooler]}"
