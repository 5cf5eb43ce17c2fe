"""The result of a run, as result.json holds it: estimates, cells, warnings. No logic."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ciphercost.model.cipher_work import Enciphered
from ciphercost.model.connection_memory import ConnectionMemory
from ciphercost.model.constrained_types import CellMode, Status, Verdict
from ciphercost.model.errors import without_codes
from ciphercost.model.estimate import Estimate as Estimate
from ciphercost.model.estimate import Part as Part
from ciphercost.model.fleet import FleetFacts
from ciphercost.model.key_rotation import KeyRotation
from ciphercost.model.objective_capacity import ObjectiveCapacity as ObjectiveCapacity
from ciphercost.model.pair import Pair
from ciphercost.model.profile import Profile
from ciphercost.model.replication import LINK, ReplicationResult
from ciphercost.model.slices import Finding, Proof
from ciphercost.model.spec import Arm, Spec
from ciphercost.model.storms import StormResult
from ciphercost.model.study import StudyResult


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
    """Sessions (full mode) or blocks (quick mode) behind the interval."""


class Wait(msgspec.Struct, frozen=True):
    """Operations of an arm that take the same time, in which it spends most of its time."""

    ms: float
    """Their median latency."""
    time: float
    """Their share of the time of all operations."""
    operations: float
    """Their share of all operations."""


class Disturbance(msgspec.Struct, frozen=True):
    """Slices in which other processes or the hypervisor took more than 5 % of the CPU, by arm."""

    plain: int
    plain_slices: int
    encrypted: int
    encrypted_slices: int
    p_value: float
    """That chance hits one arm so much more than the other: sign test over blocks."""


class Failures(msgspec.Struct, frozen=True, omit_defaults=True):
    """Slices and operations that failed, by arm. No other figure contains them."""

    plain: int
    """Failed slices, lead-ins included."""
    plain_slices: int
    """All of its slices, failed ones included."""
    encrypted: int
    encrypted_slices: int
    p_value: float
    """That chance alone makes slices of one arm fail in so many more blocks: Fisher's exact test over blocks."""
    blocks: int = 0
    plain_blocks: int = 0
    """Blocks in which a plain slice failed."""
    encrypted_blocks: int = 0
    sessions: int = 0
    """Sessions in which a slice failed."""
    plain_timeouts: int = 0
    """Failed slices of which the server was too slow. Records of older versions do not say so."""
    encrypted_timeouts: int = 0
    plain_operations: int = 0
    """Failed operations of the other slices."""
    encrypted_operations: int = 0
    operations_p_value: float = 1.0
    """That chance alone makes operations of one arm fail more often in so many more blocks: exact sign test over blocks."""
    succeeded: Estimate | None = None
    """Encrypted ÷ plain share of slices that did not fail. None: no slice failed, or there is only one block."""
    throughput: Estimate | None = None
    """Encrypted ÷ plain throughput with each failed slice as one in which nothing was done: the most that failures can change it."""
    undecided: bool = False
    """The verdict is `unresolved` because of them."""


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one virtual CPU costs, as `--price` gave it."""

    amount: float
    per: Literal["hour", "month"]
    """A month is 730 hours."""
    prefix: str = ""
    """Currency in front of an amount: `$` or `EUR`. At most one of prefix and suffix is set; neither: no currency."""
    suffix: str = ""


class Money(msgspec.Struct, frozen=True):
    """What encryption's CPU time costs at a price."""

    price: Price
    metric: str = ""
    """The metric this is computed from: a key of `Cell.overhead`."""
    per_million_operations: Part | None = None
    """Added by encryption, with the 95 % interval of the metric. None: not measured."""
    per_busy_vcpu_month: Part | None = None
    """Added per month for each vCPU that the plain load keeps fully busy."""
    reason: str = ""
    """Why there is no amount."""


class PartsError(msgspec.Struct, frozen=True):
    """How uncertain the causes of a fit are together. In transit: handshake, request and byte, in µs, µs, and µs per thousand bytes."""

    own: list[list[list[float]]]
    """Covariances that the cells' own errors give, by different ways; the larger counts."""
    nu: float
    """Their degrees of freedom."""
    model: list[list[float]]
    """The further covariance because the model is off; zero if the cells lie no farther from the fit than their errors explain."""
    freedom: int
    """Its degrees of freedom: cells − 3, usually one or two."""


class Parts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parts of a mechanism's cost at one end, fitted across cells that connect, send small requests and read much."""

    engine: str
    mechanism: str
    end: Literal["server", "client"]
    handshake_us: Part
    """CPU time per new connection."""
    request_us: Part
    """CPU time per operation."""
    byte_ns: Part
    """CPU time per byte on the wire."""
    cells: list[int]
    """Numbers of the fitted cells."""
    worst: float
    """Largest distance of a cell from the fit, in standard errors of that cell."""
    break_even_bytes: Part | None = None
    """Bytes of an answer that cost as much as one handshake. None if either cost can't be distinguished from 0."""
    floor_ns: float | None = None
    """Cost of the cipher alone per byte at this end, as the run measured it."""
    error: PartsError | None = None
    """Of all three together, for a prediction. None: a result of an older version."""
    scatter: float | None = None
    """Standard deviation of the cells around the fit beyond their errors, as a share of their cost. None: a result of an older version."""


Unit = Literal[
    "page read",
    "page written",
    "page",
    "kilobyte of log",
    "kilobyte",
    "opening",
    "value sealed",
    "value opened",
    "value searched",
    "value",
]
"""What a mechanism at rest or in columns is paid for. `page` and `kilobyte`: read or written; `value`: sealed, opened or searched for."""


class UnitCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mechanism at rest or in columns adds to each unit of its work, from one cell or fitted across several."""

    engine: str
    mechanism: str
    end: Literal["server", "client", "process"]
    """`process`: the application that a database is part of."""
    unit: Unit
    us: Part
    """µs for each unit."""
    cells: list[int]
    """Numbers of the fitted cells."""
    units: list[float] = []
    """Units in an operation of each of these cells."""
    measure: Literal["cpu", "time"] = "cpu"
    """CPU time, or time that passes."""
    bytes: int = 0
    """Bytes of a page."""
    rows: int = 0
    """Rows of the table that is searched."""
    floor_us: float | None = None
    """Cost of the cipher alone for each unit, as the run measured it in the agent's library. None: unknown, or it differs from unit to unit."""
    worst: float = 0.0
    """Largest distance of a cell from the fit, in standard errors of that cell."""
    error: PartsError | None = None
    """Of all units of this fit together, in the order of `Result.costs`, in µs. Only the first of them has it. None: a result of an older version."""
    scatter: float | None = None
    """As in `Parts`."""


class Point(msgspec.Struct, frozen=True):
    """One cell on a curve."""

    x: float
    throughput: Estimate
    server_cpu_us: float | None
    """Server CPU time that encryption adds to an operation, µs."""
    cell: int
    """The cell's number."""


class Curve(msgspec.Struct, frozen=True):
    """Cost against one number, for cells that differ only in it."""

    engine: str
    version: str
    mechanism: str
    workload: str
    along: str
    """`size` (bytes of an answer) or `clients`."""
    points: list[Point]


class CellEstimate(msgspec.Struct, frozen=True):
    """What `estimate` computes from a cell's slices."""

    verdict: Verdict
    sessions: int
    blocks: int
    overhead: dict[str, Estimate]
    """Keys: throughput, latency_p50, latency_p99, …, server_cpu_per_op, client_cpu_per_op, hop_cpu_per_op, machine_cpu_per_op (the
    server and everything else but agent and controller), wire_bytes_per_op, segments_per_op, switches_per_op, faults_per_op (context switches and
    page faults of the server), disk_bytes_per_op, disk_written_per_op, disk_read_per_op, memory."""
    arms: dict[str, dict[str, Any]]
    """By arm: totals, figures per operation, latency quantiles, and host counters with mean, variance and cv."""
    warnings: list[Warning_]
    smallest_effect: float | None = None
    """Smallest relative effect that this run could resolve (95 % level, 80 % power)."""
    sessions_needed: int | None = None
    totals_open: bool = False
    """Unresolved though the robust interval lies within the margin: that of the totals does not."""
    disturbed: bool = False
    """Other processes or the hypervisor took the CPU in every slice: no part of the measurement was quiet."""
    disturbance: Disturbance | None = None
    """None: no slice was disturbed."""
    failures: Failures | None = None
    """None: nothing failed."""
    carryover: dict[str, float] = {}
    """Carry-over λ and its p-value."""
    too_few: dict[str, str] = {}
    """By metric that has no ratio because few events decide: how many there were. Such a metric is not in `overhead`."""
    added: dict[str, Added] = {}
    """Keys: server_cpu, client_cpu, hop_cpu, machine_cpu (at rest)."""
    waits: dict[str, Wait] = {}
    """By arm: a fixed time that most of its time goes into, if there is one."""
    objective: ObjectiveCapacity | None = None


class ImportedFile(msgspec.Struct, frozen=True):
    name: str
    format: str
    sha256: str
    arms: list[Arm]
    how: str
    """How the arm was detected."""


class ImportedCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """encrypted ÷ plain for one figure, with runs as sample units. It has an interval only with two runs of each arm."""

    ratio: float
    plain: float
    """Geometric mean over runs, in the unit of the figure."""
    encrypted: float
    plain_runs: int
    encrypted_runs: int
    low: float | None = None
    high: float | None = None
    within_low: float | None = None
    """Lower bound from the scatter within runs alone; the real interval is at least as wide."""
    within_high: float | None = None
    runs_needed: int | None = None
    """Runs of each arm needed to resolve a difference of 5 % at this scatter."""


class Imported(msgspec.Struct, frozen=True):
    """Source of a cell of `ciphercost import`, and its costs."""

    tool: str
    files: list[ImportedFile]
    costs: dict[str, ImportedCost]
    order: Literal["unknown", "plain first", "encrypted first", "by turns"]
    """Order of the arms' runs, if the files show it."""
    server: str = ""
    """The server, if the tool's output, a command line or the files' names state it; `mysql or mariadb` leaves two."""


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
    """Why there is no number, if the status is not ok."""
    encryption: dict[str, str] = {}
    """As negotiated: protocol, cipher, group, key, resumed, verified; verified_by, if not a certificate authority."""
    cores: dict[str, str] = {}
    conditions: dict[str, str] = {}
    """Conditions of both arms that differ from the defaults: cpu_crypto, bandwidth, delay, mtu, loss."""
    link: dict[str, int] = {}
    """Packets on a link that loses some: sent, lost, overflowed (lost because a queue was full)."""
    floor: dict[str, float] = {}
    """Cost of a cipher alone in the agent's library, ns per byte: aes256-gcm_seal, aes256-cbc+hmac-sha512/4016_open, …"""
    enciphered: Enciphered | None = None
    """At rest: how files are encrypted, and how many bytes of them the encrypted arm's operations read and wrote. None: unknown."""
    values: dict[str, float] = {}
    """In columns, per operation: `sealed`, `opened`, `searched`: values that it encrypts, decrypts and searches for. Empty: unknown."""
    statements: float = 0.0
    """Statements, requests or commands of an operation, as its workload sends them. 0: unknown; `traffic` then may have round trips."""
    predicted: dict[str, float] = {}
    """Predicted cost from encryption's round trips and bytes on the link alone; see `estimate.link_model`."""
    smallest_effect: float | None = None
    sessions_needed: int | None = None
    totals_open: bool = False
    """Unresolved though the robust interval lies within the margin: that of the totals does not."""
    disturbed: bool = False
    """Other processes or the hypervisor took the CPU in every slice: no part of the measurement was quiet."""
    disturbance: Disturbance | None = None
    """How many slices of each arm other processes or the hypervisor disturbed. None: none, or a result of an older version."""
    failures: Failures | None = None
    """How many slices and operations of each arm failed, and what that can change. None: none, or a result of an older version."""
    carryover: dict[str, float] = {}
    too_few: dict[str, str] = {}
    """By metric that has no ratio because few events decide: how many there were. Such a metric is not in `overhead`; `arms` has the levels."""
    waits: dict[str, Wait] = {}
    """By arm: a fixed time that most of its operations' time goes into, if there is one. Whether nothing worked meanwhile is in the warnings."""
    added: dict[str, Added] = {}
    group: str = ""
    variant: str = ""
    findings: list[Finding] = []
    """What the encryption leaves readable, most severe first."""
    stored: dict[str, dict[str, int]] = {}
    """Column encryption, by arm: table_bytes and index_bytes as the server reports them. Empty if it reports neither."""
    key_life: dict[str, float] = {}
    """rotation_s: time in which the server gave its data a new key. `overhead.start_time` has the cost of opening."""
    profile: Profile | None = None
    """Where the CPU time goes, by function. None: no `--profile`, or nothing could be sampled."""
    storage: dict[str, Estimate] = {}
    """Results of fio on both arms' directories, without a server: sequential_read, …, fsync_latency."""
    storm: StormResult | None = None
    connection_memory: ConnectionMemory | None = None
    replication: ReplicationResult | None = None
    key_rotation: KeyRotation | None = None
    """None: no `--storm`, no `--connections`, no workload `replication` or `rotate-key`."""
    beside: dict[str, Estimate] = {}
    """By the control's name: throughput, encrypted ÷ the control's second arm in the same sessions: the cost without the control's part."""
    control: int | None = None
    """Number of the control cell of `beside`."""
    handshakes: dict[str, int] = {}
    """full, resumed: TLS handshakes under load from the server's log. Empty if it has no such log."""
    client: str = ""
    """What made the load, if not the Rust agent: `MySQL Connector/J 9.7.0`."""
    chatter: dict[str, dict[str, float]] = {}
    """By arm: statements per operation, by kind, as the server counted them; for Firebird transactions and rows."""
    traffic: dict[str, dict[str, float]] = {}
    """By arm: bytes_sent, bytes_received (by the client) and round_trips per operation, counted by a relay."""
    client_against_reference: dict[str, Estimate] = {}
    """Cost of this cell's client ÷ that of the reference: throughput_plain, server_cpu_plain, … Empty unless both cells have `traffic`."""
    against_reference: Estimate | None = None
    """For a cell that shares its sessions: its throughput ratio ÷ that of the first cell."""
    place: str = ""
    """What reports call the server instead of the engine's name: the host of the user's web site. Empty: the engine's name."""
    embedded: bool = False
    """The database runs inside the agent, so its CPU time is part of the client's."""
    protects: str = ""
    """What the mechanism protects. Empty: unknown."""
    mechanism_factors: list[str] = []
    """Those of `factors` that belong to the mechanism; the others belong to the workload or client."""
    fixed_factors: list[str] = []
    """Those of `factors` without a choice: this server refuses any other value, or they follow from others. Empty also in older records."""
    imported: Imported | None = None
    """Source of the figures, for a cell of `ciphercost import`. Its status is unproven, although it may have numbers."""
    money: Money | None = None
    """The cost in money. None: no `--price` was given."""
    fleet: FleetFacts | None = None
    """Nodes that made the load, their clocks, and what was lost. None: one agent on one machine made it."""
    objective: ObjectiveCapacity | None = None
    """Capacity at the objective of `--objective`. None: there was none. Its ratio is also `overhead.rate_at_objective`."""
    pair: Pair | None = None
    """The two arms, if both are encrypted; then `plain` stands for the reference everywhere in the cell. None: plain and encrypted."""

    @property
    def of_link(self) -> bool:
        """Whether encryption is that of the link between two servers, and not of their clients' connections."""
        return any(difference.startswith(LINK) for difference in self.config_diff)

    def __post_init__(self) -> None:
        """Leave out the codes in brackets with which an older ciphercost recorded reasons."""
        if "]" in self.reason:
            msgspec.structs.force_setattr(self, "reason", without_codes(self.reason)[0])


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
    """Controller time between slices ÷ load time of the run."""
    parts: list[Parts] = []
    """Where the cost comes from, if the run has enough cells to fit it."""
    costs: list[UnitCost] = []
    """At rest and in columns: what each page, opening or value costs, if the run tells."""
    curves: list[Curve] = []
    """Cost against the size of an answer or the number of clients, for cells that differ only in that."""
    study: StudyResult | None = None
    """Only for `ciphercost replicate`."""
