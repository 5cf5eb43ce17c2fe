"""Records of a measurement: slice, counters, block, proof, finding. No logic."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ciphercost.model.command_load import ToolFigures
from ciphercost.model.constrained_types import Amount, Count, Ordinal, Positive, Share
from ciphercost.model.errors import without_codes
from ciphercost.model.spec import Arm, Order, Phase

Arrivals = Literal["even", "random", "logged"]
"""When the requests of an open loop are due: evenly spaced, as a Poisson process of the same rate, or as they came in a log."""
Severity = Literal["high", "medium", "low", "info"]
Witness = Literal["server", "wire", "disk", "client", "process"]
TIMEOUT = "timeout"
"""Mark of a failed slice: the server did not answer in time."""
AGENTS = "agents"
"""Mark of a failed slice: agents were lost or did not count together, which says nothing about the server."""

UNSEEN = "unseen"
"""Code of a proof that failed because nothing shows what a command sends, and not because it contradicts its arm."""


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Block(msgspec.Struct, frozen=True):
    """A lead-in, which is discarded, then four slices in mirrored order."""

    number: int
    order: Order

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Arms of the lead-in and the four counted slices: (A)ABBA or (B)BAAB, A = plain."""
        names: dict[str, Arm] = {"A": "plain", "B": "encrypted"}
        return tuple(names[letter] for letter in self.order[0] + self.order)


# ── proof ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Proof(msgspec.Struct, frozen=True):
    """What one witness observed on one arm, and whether it matches the arm's name."""

    arm: Arm
    witness: Witness
    passed: bool
    detail: str
    session: Count = 0
    code: str = ""
    """Of the error that made the witness fail: the agent's or the server's own; empty: there was none."""

    def __post_init__(self) -> None:
        """Take the code out of a detail that an older ciphercost recorded: it ended with the code in brackets."""
        if not self.passed and self.detail.endswith("]"):
            text, code = without_codes(self.detail)
            msgspec.structs.force_setattr(self, "detail", text)
            msgspec.structs.force_setattr(self, "code", self.code or code)


class Finding(msgspec.Struct, frozen=True):
    """Something readable despite the encryption, as observed, and how to close it."""

    code: str
    """`temporary-data-in-clear`, …"""
    severity: Severity
    text: str
    closes: str = ""
    """The setting or step that closes it; empty: none known."""


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
    early: Count = 0
    """Connections whose early data (0-RTT) the server accepted."""
    retries: Count = 0
    """Times that an operation began again because it was in conflict with others."""
    work: Amount = 0.0
    """Operations, each weighted by its share in the counted part; 0: not reported, use `operations`."""
    sealed: Count = 0
    """Values that the agent encrypted for counted operations; `opened`: values that it decrypted from their rows."""
    opened: Count = 0
    error_kinds: str = ""
    """Reasons of `errors` as `CODE=COUNT`, separated by spaces, most frequent first."""
    jit_ms: Count = 0
    """Java agent: time spent compiling in the counted part (`gc_ms`: collecting garbage); 0 for other agents."""
    gc_ms: Count = 0
    process_cpu_ns: Count = 0
    """CPU time of all threads, including compiler and collector, in ticks of 10 ms; `cpu_*` count only the load threads."""
    driver_version: str = ""
    """The driver that made this slice, as it names itself."""
    encrypted: bool = False
    """What the sessions reported to a `witness` request just before the slice; false and empty without such a request."""
    protocol: str = ""
    cipher: str = ""

    @property
    def done(self) -> float:
        """Operations in the counted part, including partial ones."""
        return self.work or float(self.operations)


class Counters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the host and the server's process tree did in the counted part of one slice. Deltas, unless noted."""

    window_ns: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """Length of the sampled window on the controller's clock."""
    server_cpu_ns: Count = 0
    server_user_ns: Count = 0
    server_system_ns: Count = 0
    server_read_bytes: Count = 0
    """Bytes that the server's processes read from storage (/proc/PID/io read_bytes)."""
    server_write_bytes: Count = 0
    server_memory_bytes: Count = 0
    """A level, not a delta: PSS of the process tree in the last sample; 0 if not sampled."""
    server_switches: Count | None = None
    """How often a thread of the server got a CPU. None: unknown, as in records of older versions, or threads came or went."""
    server_faults: Count | None = None
    """Page faults of the server's processes, minor and major. None: as above."""
    hop_cpu_ns: Count = 0
    """CPU time of the processes between client and server."""
    host_user: Share = 0.0
    """Shares of all CPU time, 0 to 1, as sar prints them (%user, %nice, …)."""
    host_nice: Share = 0.0
    host_system: Share = 0.0
    host_iowait: Share = 0.0
    host_steal: Share = 0.0
    host_idle: Share = 0.0
    foreign_cpu: Amount = 0.0
    """CPU use of everything except server, agent and controller, in cores."""
    foreign_user_cpu: Amount = 0.0
    """The user-mode part of `foreign_cpu`, from clock ticks. Kernel threads, which do I/O and kernel encryption, have none."""
    memory_available_bytes: Count = 0
    """A level."""
    network_bytes: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] = 0
    """Negative in records of older versions if an interface was removed meanwhile; such a value counts as 0."""
    disk_queue: Amount = 0.0
    """Average number of requests in flight (weighted I/O time ÷ window)."""
    disk_busy: Share | None = None
    """Share of the window in which the busiest disk had a request in flight. None: unknown, as in records of older versions."""
    throttled_ns: Count | None = None
    """How long the CPU quotas of the controller's, the server's and the agent's control groups held them back, summed over CPUs and
    groups. None: none has a quota, or unknown, as in records of older versions."""


class SliceRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `slices.jsonl`. A failed slice has a line too, with `error` and without `agent`."""

    cell: Count
    session: Ordinal
    phase: Phase
    block: Count
    order: str
    position: Count
    """0: the lead-in, discarded; 1 to 4: counted. In pilot and warm-up: a running number."""
    arm: Arm
    started: Amount
    """Seconds since the run began."""
    length: Positive
    """Requested length, seconds."""
    rate: Amount = 0.0
    agent: AgentSlice | None = None
    counters: Counters | None = None
    reported: ToolFigures | None = None
    """What the user's command reported. None: an agent made the load."""
    start_skew: Amount | None = None
    """Load from many agents: seconds from the first to the last that began to count. None: one agent."""
    marks: list[str] = []
    """Why this slice is suspect: `steal`, `foreign-cpu`, `throttled`, `client-bound`; Java agent: `jit`, `gc`. If it failed: TIMEOUT or AGENTS, or none."""
    error: str = ""


class StorageSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `storage.jsonl`: one fio job on one arm's directory, without a server."""

    cell: Count
    session: Ordinal
    block: Count
    order: str
    position: Count
    """0: the lead-in, discarded; 1 to 4: counted."""
    arm: Arm
    job: str
    seconds: Amount = 0.0
    operations: Count = 0
    bytes: Count = 0
    error: str = ""
