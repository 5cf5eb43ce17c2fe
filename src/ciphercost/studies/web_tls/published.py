"""The twelve tables that the study printed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ciphercost.model.spec import ARMS
from ciphercost.studies import Study

PROCESSOR, MEMORY, NETWORK, DISK = (
    "processor_time_percent",
    "memory_available_bytes",
    "network_bytes_per_s",
    "disk_queue_length",
)
COUNTERS = (PROCESSOR, MEMORY, NETWORK, DISK)
MEAN, VARIANCE, CV = "mean", "variance", "cv"
COLUMN = {"plain": "http", "encrypted": "https"}
SIZES = (3, 10, 13, 24, 30, 73, 167, 250)
"""Megabytes."""
MEGABYTE = 1_000_000
"""Bytes; the study does not say whether it meant these or 2²⁰."""
LINK_BITS = 100e6
WINDOW = 94.0
"""Seconds over which each row was averaged. Not published: inferred from its bytes a second (`window`)."""
INTERVAL = 1.0
"""Seconds between two samples. Not published: inferred from the shortest fetches (`findings.window`), which fill at least one sample."""


class Table(msgspec.Struct, frozen=True):
    """One of the twelve tables."""

    number: str
    rows: dict[int, dict[str, float]]
    """By file (megabytes), then by arm."""


Tables = Mapping[tuple[str, str], Table]
"""By counter and statistic."""


def tables(study: Study) -> dict[tuple[str, str], Table]:
    by_key: dict[tuple[str, str], Table] = {}
    for row in study.rows("counters.csv"):
        key = row["counter"], row["statistic"]
        table = by_key.setdefault(key, Table(row["table"], {}))
        table.rows[int(row["file_size_mb"])] = {arm: float(row[COLUMN[arm]]) for arm in ARMS}
    return by_key


def source(table: Table) -> str:
    """`Table IV`."""
    return f"Table {table.number}"


def sources(study: Study) -> dict[str, str]:
    """What each of the twelve tables holds."""
    words = {MEAN: "mean", VARIANCE: "variance", CV: "coefficient of variation"}
    named = {
        PROCESSOR: "processor time",
        MEMORY: "available memory",
        NETWORK: "network bytes a second",
        DISK: "disk queue",
    }
    return {
        source(table): f"{named[counter]}, {words[statistic]}, over HTTP and HTTPS, by file"
        for (counter, statistic), table in tables(study).items()
    }


def bytes_in_words(size: int) -> str:
    """`100KB`, `3MB`."""
    for power, unit in ((1e6, "MB"), (1e3, "KB")):
        if size >= power:
            return f"{size / power:.3g}{unit}"
    return f"{size}B"


# ── what follows from them ────────────────────────────────────────────────────────────────────────────────────────────


def share_of(cv: float) -> float:
    """Share of a window in which bytes moved at a steady pace, from the coefficient of variation of bytes a second. Pure.

    At rate R for a share p and at 0 otherwise: mean pR, variance p(1 − p)R², so CV² = (1 − p)/p.
    """
    return 1 / (1 + cv * cv)
