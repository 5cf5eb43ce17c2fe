"""Figures of other tools, as `import` read them. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count
from ciphercost.model.result import ImportedFile, Warning_
from ciphercost.model.spec import Arm

# ── other tools' results: imported.json ───────────────────────────────────────────────────────────────────────────────


class Reading(msgspec.Struct, omit_defaults=True):
    """One run of another tool, as the tool reported it."""

    tool: str
    line: Count
    """Line of the file on which it begins."""
    kind: Literal["load", "cpu"] = "load"
    version: str = ""
    engine: str = ""
    server: str = ""
    """The server, if the tool's output, its command line or the file's name states it; `mysql or mariadb` leaves two."""
    workload: str = ""
    clients: Count = 0
    factors: dict[str, str] = {}
    operations: Count = 0
    errors: Count = 0
    """Operations that failed, as the tool reports them."""
    seconds: Amount = 0.0
    figures: dict[str, Amount] = {}
    """throughput (operations/s), latency_mean, latency_p50, latency_p99 (ms), client_cpu_per_op (µs), host_busy, host_user, … (%),
    host_cpu_per_op (µs), memory_free_bytes."""
    series: dict[str, list[Amount]] = {}
    """Figures within the run, in order."""
    started: Amount | None = None
    """Seconds since 1970, if the tool reports it. `clock` local: in an unknown time zone."""
    ended: Amount | None = None
    clock: Literal["", "utc", "local"] = ""
    cpus: Count = 0
    scheme: str = ""
    """http or https, if the tool reports it."""
    encryption: dict[str, str] = {}
    """What the tool reports about the encryption. No proof: nothing else was checked."""
    names: list[str] = []
    """Words in the file that may show its arm: a command, a column's value."""
    rows: list[list[float]] = []
    """CPU samples: end, seconds, share in use (%)."""
    notes: list[Warning_] = []
    digits: Count = 0
    """Significant digits of the most precise printed figure; 0: unknown, so all digits count."""
    counts: dict[int, int] = {}
    """While reading: number of operations by latency (µs)."""
    by_second: dict[int, int] = {}
    """While reading: number of operations that ended in each second."""
    file: str = ""
    arm: Arm | None = None
    cell: Count = 0


class ImportedRecord(msgspec.Struct, omit_defaults=True):
    """`imported.json`: the raw figures that were read."""

    format: int
    files: list[ImportedFile]
    readings: list[Reading]
