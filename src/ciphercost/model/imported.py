"""imported: Other tools' figures, as `import` read them. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.result import ImportedFile, Warning_
from ciphercost.model.spec import Arm
from ciphercost.model.terms import Amount, Count

# ── other tools' results: imported.json ───────────────────────────────────────────────────────────────────────────────


class Reading(msgspec.Struct, omit_defaults=True):
    """One run of another tool, as it told of it."""

    tool: str
    line: Count
    """Of its file, on which it begins."""
    kind: Literal["load", "cpu"] = "load"
    version: str = ""
    engine: str = ""
    workload: str = ""
    clients: Count = 0
    factors: dict[str, str] = {}
    operations: Count = 0
    errors: Count = 0
    """Operations that failed, as the tool tells."""
    seconds: Amount = 0.0
    figures: dict[str, Amount] = {}
    """throughput (operations/s), latency_mean, latency_p50, latency_p99 (ms), client_cpu_per_op (µs), host_busy, host_user, … (%),
    host_cpu_per_op (µs), memory_free_bytes."""
    series: dict[str, list[Amount]] = {}
    """Figures within the run, in their order."""
    started: Amount | None = None
    """Seconds since 1970, where the tool tells; `clock` local: by a clock whose zone it doesn't."""
    ended: Amount | None = None
    clock: Literal["", "utc", "local"] = ""
    cpus: Count = 0
    scheme: str = ""
    """http or https, where the tool tells."""
    encryption: dict[str, str] = {}
    """What the tool itself says of it. No proof: nothing else was asked."""
    names: list[str] = []
    """Words in the file that may tell which arm it is of: a command, a column's value."""
    rows: list[list[float]] = []
    """Of a CPU's samples: end, seconds, share in use (%)."""
    notes: list[Warning_] = []
    digits: Count = 0
    """Significant digits of the most precise figure that was printed; 0: those that the figures have."""
    counts: dict[int, int] = {}
    """While it is read: latencies (µs) and how many there were of each."""
    by_second: dict[int, int] = {}
    """While it is read: operations that ended in each second."""
    file: str = ""
    arm: Arm | None = None
    cell: Count = 0


class ImportedRecord(msgspec.Struct, omit_defaults=True):
    """`imported.json`: what was read, raw."""

    format: int
    files: list[ImportedFile]
    readings: list[Reading]
