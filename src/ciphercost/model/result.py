"""result: The result of a run, as result.json has it: estimates, cells, warnings. No logic."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ciphercost.model.slices import Finding, Proof
from ciphercost.model.spec import Arm, Spec
from ciphercost.model.study import StudyResult
from ciphercost.model.terms import CellMode, Status, Verdict

# ── estimate ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """encrypted ÷ plain, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    ratio_of_totals: float | None = None
    n: int = 0
    """Sessions (full mode) or blocks (quick mode) behind the interval."""
    method: str = ""
    p_value: float | None = None
    """Two-sided, against ratio = 1; after Holm's correction where several cells were run."""
    unit: str = ""
    totals_low: float | None = None
    """95 % interval of `ratio_of_totals`, where that is another estimate than `ratio`."""
    totals_high: float | None = None


class Warning_(msgspec.Struct, frozen=True):  # noqa: N801 - `Warning` is Python's own
    code: str
    text: str


class Added(msgspec.Struct, frozen=True):
    """CPU time that encryption adds to an operation: encrypted − plain, µs, with its 95 % interval."""

    mean: float
    low: float
    high: float
    standard_error: float
    n: int
    """Sessions (full mode) or blocks (quick mode) behind it."""


class Part(msgspec.Struct, frozen=True):
    """One part of a cost with its 95 % interval."""

    value: float
    low: float
    high: float


class Parts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the cost of one mechanism comes from, at one end: fitted across the cells that open connections, ask little, read much."""

    engine: str
    mechanism: str
    end: Literal["server", "client"]
    handshake_us: Part
    """CPU for each connection that is opened."""
    request_us: Part
    """CPU for each operation."""
    byte_ns: Part
    """CPU for each byte on the wire."""
    cells: list[int]
    """Numbers of the cells that it was fitted to."""
    worst: float
    """The largest distance of a cell from the fit, in standard errors of that cell."""
    break_even_bytes: Part | None = None
    """Of an answer: so many cost as much as one handshake. None where one of the two can't be told from nothing."""
    floor_ns: float | None = None
    """What the cipher alone costs for each byte at this end, measured in the run."""


class Point(msgspec.Struct, frozen=True):
    """One cell's place on a curve."""

    x: float
    throughput: Estimate
    server_cpu_us: float | None
    """That encryption adds to an operation."""
    cell: int
    """The cell's number."""


class Curve(msgspec.Struct, frozen=True):
    """Cost against one number, of cells that differ in nothing else."""

    engine: str
    version: str
    mechanism: str
    workload: str
    along: str
    """`size`: bytes of an answer; `clients`."""
    points: list[Point]


class CellEstimate(msgspec.Struct, frozen=True):
    """What `estimate` makes of one cell's slices."""

    verdict: Verdict
    sessions: int
    blocks: int
    overhead: dict[str, Estimate]
    """Keys: throughput, latency_p50, latency_p99, …, server_cpu_per_op, client_cpu_per_op, machine_cpu_per_op (server and
    all that is neither agent nor controller), wire_bytes_per_op, disk_bytes_per_op, disk_written_per_op, disk_read_per_op, memory."""
    arms: dict[str, dict[str, Any]]
    """Per arm: totals, per-operation figures, latency quantiles, host counters with mean, variance, cv."""
    warnings: list[Warning_]
    smallest_effect: float | None = None
    """The smallest relative effect that this run could have resolved (95 % level, 80 % power)."""
    sessions_needed: int | None = None
    totals_open: bool = False
    """Unresolved though the robust interval lies within the margin: that of the totals does not."""
    disturbed: bool = False
    """Other processes or the hypervisor took the CPU in every slice: no part of the measurement was quiet."""
    carryover: dict[str, float] = {}
    """λ and its p-value."""
    added: dict[str, Added] = {}
    """Keys: server_cpu, client_cpu."""


class ImportedFile(msgspec.Struct, frozen=True):
    name: str
    format: str
    sha256: str
    arms: list[Arm]
    how: str
    """By what its arm was told."""


class ImportedCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """encrypted ÷ plain of one figure; runs are its units. Without two runs of each arm it has no interval."""

    ratio: float
    plain: float
    """Geometric mean over runs, in the figure's own unit."""
    encrypted: float
    plain_runs: int
    encrypted_runs: int
    low: float | None = None
    high: float | None = None
    within_low: float | None = None
    """The least that the interval must hold, by the scatter within the runs alone; the scatter between runs comes on top."""
    within_high: float | None = None
    runs_needed: int | None = None
    """Of each arm, to resolve a difference of 5 % at this scatter."""


class Imported(msgspec.Struct, frozen=True):
    """Where a cell of `ciphercost import` comes from, and what its figures can tell."""

    tool: str
    files: list[ImportedFile]
    costs: dict[str, ImportedCost]
    order: Literal["unknown", "plain first", "encrypted first", "by turns"]
    """How the arms' runs followed each other, where the files tell."""


# ── result: the contract ──────────────────────────────────────────────────────────────────────────────────────────────


class Cell(msgspec.Struct, frozen=True):
    engine: str
    version: str
    layer: str
    mechanism: str
    workload: str
    clients: int
    status: Status
    mode: CellMode
    verdict: Verdict | None = None
    regime: str = ""
    factors: dict[str, str] = {}
    rows: int = 0
    sessions: int = 0
    blocks: int = 0
    slice_seconds: float = 0.0
    config_diff: list[str] = []
    proofs: list[Proof] = []
    overhead: dict[str, Estimate] = {}
    arms: dict[str, dict[str, Any]] = {}
    warnings: list[Warning_] = []
    reason: str = ""
    """Why there is no number, where the status is not ok."""
    encryption: dict[str, str] = {}
    """As achieved: protocol, cipher, group, key, resumed, verified."""
    cores: dict[str, str] = {}
    conditions: dict[str, str] = {}
    """What both arms ran under, where it is not this machine as it is: cpu_crypto, bandwidth, delay, mtu."""
    floor: dict[str, float] = {}
    """What a cipher alone costs here by the agent's library, ns a byte: aes256-gcm_seal, aes256-gcm_open, …"""
    predicted: dict[str, float] = {}
    """What the link alone makes of encryption's round trips and bytes; see `predict`."""
    smallest_effect: float | None = None
    sessions_needed: int | None = None
    totals_open: bool = False
    """Unresolved though the robust interval lies within the margin: that of the totals does not."""
    disturbed: bool = False
    """Other processes or the hypervisor took the CPU in every slice: no part of the measurement was quiet."""
    carryover: dict[str, float] = {}
    added: dict[str, Added] = {}
    group: str = ""
    variant: str = ""
    findings: list[Finding] = []
    """What the encryption leaves open, the worst first."""
    stored: dict[str, dict[str, int]] = {}
    """In columns, by arm: table_bytes and index_bytes, as the server counts them. Empty where it counts neither."""
    key_life: dict[str, float] = {}
    """rotation_s: how long the server took to give its data a new key. What opening costs is `overhead.start_time`."""
    storage: dict[str, Estimate] = {}
    """What fio says of both arms' directories, without any server: sequential_read, …, fsync_latency."""
    beside: dict[str, Estimate] = {}
    """By the control's name: throughput, encrypted ÷ the control's second arm, which shared its sessions: what is left of the cost
    once the control's part is taken out."""
    control: int | None = None
    """Number of the cell that is the control of `beside`."""
    handshakes: dict[str, int] = {}
    """full, resumed: TLS handshakes under load, as the server's own log has them. Empty where it keeps none."""
    client: str = ""
    """Who made the load, where it is not the Rust agent: `MySQL Connector/J 9.7.0`."""
    chatter: dict[str, dict[str, float]] = {}
    """By arm: statements an operation as the server counted them, by kind; of Firebird transactions and rows."""
    traffic: dict[str, dict[str, float]] = {}
    """By arm: bytes_sent, bytes_received (by the client) and round_trips an operation, seen by a relay."""
    client_against_reference: dict[str, Estimate] = {}
    """Where cells of one experiment say what an operation is: throughput_plain, server_cpu_plain, client_cpu_plain, … this cell ÷ the reference."""
    against_reference: Estimate | None = None
    """Of a cell that shares its sessions with others: its throughput ratio ÷ that of the first of them."""
    embedded: bool = False
    """The database runs inside the agent: its CPU time is the client's."""
    protects: str = ""
    """What the mechanism protects. Empty: not known."""
    mechanism_factors: list[str] = []
    """Which of `factors` belong to the mechanism; the others belong to the workload and the client."""
    imported: Imported | None = None
    """Of a cell of `ciphercost import`: where its figures come from. Its status is unproven, though it may have numbers."""


class Result(msgspec.Struct, frozen=True):
    format: int
    id: str
    started: str
    tool: dict[str, str]
    machine: dict[str, Any]
    seed: int
    cells: list[Cell]
    ended: str = ""
    command: str = ""
    spec: Spec | None = None
    overhead_of_controller: float | None = None
    """The controller's own time between slices ÷ the run's load time."""
    parts: list[Parts] = []
    """Where the cost comes from, where the run has cells enough to tell."""
    curves: list[Curve] = []
    """Cost against the size of an answer, or against clients, where cells differ in that alone."""
    study: StudyResult | None = None
    """Of `ciphercost replicate`."""
