"""Bytes that a cell's servers write to the disk: stated only where the kernel counts them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.model.facts import PAGE, CellFacts
from ciphercost.model.result import Warning_

CODE = "writes-not-counted"
FIGURES = frozenset({"disk_bytes_per_op", "disk_written_per_op"})
INEXACT = (
    "bytes written to disk are not stated: of {:,} bytes that a process writes, this kernel counts up to {:,}, because it counts whole folios "
    "of its page cache"
)
UNKNOWN = "bytes written to disk are not stated: how the kernel counts them where the data are is not known"


def stated(known: CellFacts, arms: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The arms as they are, or with `writes` (whether the server wrote anything) instead of how much."""
    if known.counts_writes:
        return {arm: dict(levels) for arm, levels in arms.items()}
    return {
        arm: {name: level for name, level in levels.items() if name != "write_bytes_per_op"}
        | ({"writes": levels["write_bytes_per_op"] > 0} if "write_bytes_per_op" in levels else {})
        for arm, levels in arms.items()
    }


def warnings(known: CellFacts, arms: Mapping[str, Mapping[str, Any]]) -> Iterator[Warning_]:
    """At rest, why a figure that belongs there is missing."""
    if (
        known.layer == "rest"
        and not known.counts_writes
        and any(arm.get("write_bytes_per_op") for arm in arms.values())
    ):
        yield Warning_(CODE, INEXACT.format(PAGE, known.page_counted) if known.page_counted else UNKNOWN)
