"""quick: the spec of `ciphercost quick`. Pure."""

from __future__ import annotations

from ciphercost.model import CellSpec, Spec
from ciphercost.spec import check, duration

CELLS = (
    CellSpec("postgresql", "tls", workload="point-select", regime="one-core"),
    CellSpec("postgresql", "tls", workload="bulk-read", regime="one-core"),
    CellSpec("postgresql", "tls", workload="connect", regime="one-core"),
    CellSpec("sqlite", "sqlcipher", workload="point-select", regime="one-core"),
    CellSpec("sqlite", "sqlcipher", workload="insert", regime="one-core"),
)
"""What can be had on any machine in a minute: a request, bytes, a handshake, pages read, pages written."""


def spec(seed: int = 0, time: str | None = None) -> Spec:
    """One session a cell, on one core, for a minute altogether (or `time`). Raises UsageError for a time that is none."""
    whole = duration(time) if time else 60.0
    return check(Spec(cells=list(CELLS), seed=seed, mode="quick", sessions=1, time=whole / len(CELLS), latency=False))
