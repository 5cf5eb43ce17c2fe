"""slices: What is measured: a slice, its counters, a block, a proof, a finding. No logic."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ciphercost.model.spec import Arm, Order, Phase
from ciphercost.model.terms import Amount, Count, Ordinal, Positive, Share

Arrivals = Literal["even", "random"]
"""When the requests of an open loop are due: as far from each other as the rate says, or as a Poisson process of that rate."""
Severity = Literal["high", "medium", "low", "info"]
Witness = Literal["server", "wire", "disk", "client"]


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Block(msgspec.Struct, frozen=True):
    """A lead-in slice that is thrown away, then the quad in mirrored order."""

    number: int
    order: Order

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Five arms: the lead-in, then four counted slices: (A)ABBA or (B)BAAB, A = plain."""
        names: dict[str, Arm] = {"A": "plain", "B": "encrypted"}
        return tuple(names[letter] for letter in self.order[0] + self.order)


# ── proof ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Proof(msgspec.Struct, frozen=True):
    """What one witness said of one arm, and whether that is what the arm's name promises."""

    arm: Arm
    witness: Witness
    passed: bool
    detail: str
    session: Count = 0


class Finding(msgspec.Struct, frozen=True):
    """Something that encryption does not cover, and what would close it. Seen, not supposed."""

    code: str
    """`temporary-data-in-clear`, …"""
    severity: Severity
    text: str
    closes: str = ""
    """The setting or the step that closes it; empty: none is known."""


# ── slice: the record ─────────────────────────────────────────────────────────────────────────────────────────────────


class AgentSlice(msgspec.Struct, tag="slice", tag_field="type", frozen=True):
    """The agent's answer to `slice`; units as in PROTOCOL.md."""

    arm: str
    seconds: Amount
    operations: Count
    errors: Count
    rows: Count
    checksum: str
    cpu_user_ns: Count
    cpu_system_ns: Count
    bytes_sent: Count
    bytes_received: Count
    segments_sent: Count
    segments_received: Count
    connects: Count
    resumed: Count
    late: Count
    threads: Count
    histogram: str
    first_error: str = ""
    work: Amount = 0.0
    """Operations by their share in the counted part; 0: not said, `operations` stands for it."""
    sealed: Count = 0
    """Values that the agent itself sealed for counted operations, and opened of their rows."""
    opened: Count = 0
    error_kinds: str = ""
    """`CODE=COUNT` separated by spaces, the most frequent first: what the `errors` failed by."""
    jit_ms: Count = 0
    """Of the Java agent, in the counted part: compiling, and collecting garbage; 0 of the others."""
    gc_ms: Count = 0
    process_cpu_ns: Count = 0
    """CPU time of all its threads, compiler and collector included, by ticks of 10 ms; `cpu_*` are the load threads' alone."""
    driver_version: str = ""
    """The driver that made this slice, in its own words."""
    encrypted: bool = False
    """What its sessions said just before it, asked by `witness`; false and empty where they weren't asked."""
    protocol: str = ""
    cipher: str = ""

    @property
    def done(self) -> float:
        """Operations done in the counted part, parts of operations included."""
        return self.work or float(self.operations)


class Counters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the host and the server's process tree did in the counted part of one slice. Deltas, except where said."""

    window_ns: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """Length of the sampled window by the controller's clock."""
    server_cpu_ns: Count = 0
    server_user_ns: Count = 0
    server_system_ns: Count = 0
    server_read_bytes: Count = 0
    """Bytes that the server's processes caused to be fetched from storage (/proc/PID/io read_bytes)."""
    server_write_bytes: Count = 0
    server_memory_bytes: Count = 0
    """A level, not a delta: PSS of the process tree, last sample; 0 where it was not taken."""
    host_user: Share = 0.0
    """Shares of all CPU time, 0 to 1, as sar prints them (%user, %nice, …)."""
    host_nice: Share = 0.0
    host_system: Share = 0.0
    host_iowait: Share = 0.0
    host_steal: Share = 0.0
    host_idle: Share = 0.0
    foreign_cpu: Amount = 0.0
    """CPU of everything but the server, the agent and the controller, in cores."""
    foreign_user_cpu: Amount = 0.0
    """The part of it in user mode, from clock ticks: kernel threads, which do the server's I/O and a kernel's encryption, have none."""
    memory_available_bytes: Count = 0
    """A level."""
    network_bytes: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] = 0
    """Below 0 in records of older versions, where an interface went away meanwhile; it then counts as 0."""
    disk_queue: Amount = 0.0
    """Average number of requests in flight (weighted I/O time ÷ window)."""
    disk_busy: Share | None = None
    """Share of the window in which the machine's busiest disk had a request in flight. None: not known, as in records of older versions."""


class SliceRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `slices.jsonl`. A failed slice is a record too: `error` says why and `agent` is absent."""

    cell: Count
    session: Ordinal
    phase: Phase
    block: Count
    order: str
    position: Count
    """0: the lead-in, thrown away; 1 to 4: counted. In pilot and warm-up: running number."""
    arm: Arm
    started: Amount
    """Seconds since the run began."""
    length: Positive
    """Asked length, seconds."""
    rate: Amount = 0.0
    agent: AgentSlice | None = None
    counters: Counters | None = None
    marks: list[str] = []
    """Why this slice is suspect: `steal`, `foreign-cpu`, `client-bound`, of the Java agent `jit`, `gc`."""
    error: str = ""


class StorageSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `storage.jsonl`: what one job of fio did on one arm's directory, without any server."""

    cell: Count
    session: Ordinal
    block: Count
    order: str
    position: Count
    """0: the lead-in, thrown away; 1 to 4: counted."""
    arm: Arm
    job: str
    seconds: Amount = 0.0
    operations: Count = 0
    bytes: Count = 0
    error: str = ""
