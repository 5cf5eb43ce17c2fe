"""model: every record of the pipeline, in its order: spec, plan, endpoint, proof, slice, estimate, result. No logic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

FORMAT = 1
"""Version of the result and of `slices.jsonl`."""

Arm = Literal["plain", "encrypted"]
ARMS: tuple[Arm, Arm] = ("plain", "encrypted")
Order = Literal["ABBA", "BAAB"]
Phase = Literal["pilot", "warmup", "capacity", "latency"]
Regime = Literal["capacity", "one-core", "latency"]
Mode = Literal["full", "quick"]
CellMode = Literal["full", "quick", "imported"]
"""imported: figures of another tool: not paired, not proven."""
Verdict = Literal["differs", "equivalent", "unresolved"]
Status = Literal["ok", "failed", "unproven", "no-steady-state"]
Layer = Literal["transit", "rest", "column", "control"]
Cache = Literal["warm", "cold", "small"]
Arrivals = Literal["even", "random"]
"""When the requests of an open loop are due: as far from each other as the rate says, or as a Poisson process of that rate."""
Severity = Literal["high", "medium", "low", "info"]
Witness = Literal["server", "wire", "disk", "client"]
Language = Literal["sql", "http"]

# Ranges, which are checked whenever a record is read (`checked`), and an agent's answer too.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Of things, bytes or nanoseconds; a float holds each of them exactly."""
Ordinal = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
"""A number of something, from 1."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


# ── spec: what the user asked for ─────────────────────────────────────────────────────────────────────────────────────


class CellSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One row of the result: engine × mechanism × workload × load level."""

    engine: str
    mechanism: str
    version: str = ""
    """Major version of the server ("17"); empty: whichever is found first."""
    workload: str = "point-select"
    factors: dict[str, str] = {}
    """Mechanism options that differ from its defaults, e.g. {"version": "1.2", "certificate": "ecdsa-p256"}."""
    clients: Count = 0
    """Connections; 0: the workload's or the regime's default."""
    rows: Count = 0
    """Rows of the main table; 0: the workload's default."""
    regime: Regime = "capacity"
    per_request: bool = False
    rate: Amount = 0.0
    """Open loop: operations a second; 0: 60 % of the plain arm's capacity."""
    url: str = ""
    bindir: str = ""
    ca: str = ""
    sql: str = ""
    """A file of the user's own statements instead of a workload's."""
    csv: str = ""
    """A file of the user's own rows instead of a workload's."""
    group: str = ""
    """Cells that follow each other under one name are one experiment: they share their sessions, and their blocks alternate.
    The first is the reference."""
    variant: str = ""
    """What sets the cell apart in its group: `cipher=chacha20`."""
    cpu_crypto: Literal["on", "off"] = "on"
    """off: the CPU's AES instructions are hidden from server and agent. Like all that follows, in force in both arms."""
    bandwidth: str = ""
    """Of the link between agent and server, each way: "100mbit"; empty: as fast as loopback."""
    delay: str = ""
    """Added to each round trip between agent and server: "10ms"."""
    mtu: Count = 0
    """Of the link, bytes; 0: loopback's."""
    cache: Cache = "warm"
    """How much of the data the server's own cache holds: all, all but nothing at a session's start, a tenth."""
    client: str = ""
    """Who makes the load: empty, the Rust agent; `jdbc`, `jdbc:9.7.0`, `jdbc:mariadb-3.5`: the Java agent by that driver."""
    driver: str = ""
    """Jars of a JDBC driver of the user's, separated by `:`, the driver's own first."""
    settings: dict[str, str] = {}
    """Of the server that we start, by its own names; in force in both arms."""
    idle: Literal["", "poll", "halt"] = ""
    """What cores do that have nothing to do: poll, or halt until an interrupt wakes them; empty: poll where that is possible."""
    fio_bytes: Count = 0
    """At rest: size of the file that fio works on; fio then runs however short the cell is. 0: fio's own size, in cells of a minute or more."""


class Spec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A whole run: the cells and how long and how precisely each is measured."""

    cells: list[CellSpec]
    seed: Seed = 0
    """0: drawn at the start, and logged."""
    mode: Mode = "full"
    sessions: Count = 8
    time: Amount = 90.0
    """Seconds of load for each cell."""
    precision: Amount = 0.0
    """Half-width of the log ratio at which a cell stops; 0: only time stops it."""
    margin: Amount = 0.01
    """Equivalence margin m: ±log(1 + m)."""
    latency: bool = True
    """Measure latency in an open loop after capacity."""
    slice_seconds: Amount = 0.0
    """0: chosen by the pilot."""


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


# ── a published study, run as it was published: study.json ────────────────────────────────────────────────────────────


class HostSample(msgspec.Struct, frozen=True):
    """One row as `sar` prints it, per cent of all CPU time, and memory at its end."""

    at_s: Amount
    """Since the first query of the operation."""
    seconds: Amount
    """Time the row stands for; the last row of an operation is shorter than the others."""
    user: Amount
    nice: Amount
    system: Amount
    iowait: Amount
    steal: Amount
    idle: Amount
    memory_available_bytes: Count
    memory_used_bytes: Count
    """Total less available."""
    server_memory_bytes: Count
    """PSS of the server's processes."""
    memory_free_bytes: Count = 0
    """Total less what anything at all is kept in, caches too: how one study counted."""


class StudyRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation on one arm, as published: raw."""

    operation: str
    arm: str
    started: Amount
    """Seconds since the procedure began."""
    load: dict[str, Amount]
    """What was asked of the server, e.g. queries an iteration."""
    series: dict[str, list[Amount]]
    """What was measured, by name, in order, e.g. seconds of each iteration."""
    host: list[HostSample] = []
    mechanism: str = ""
    """What encrypts this pair of arms, where the procedure is run on several."""
    engine: str = ""
    """Its server, where the procedure is run on several."""
    workload: str = ""
    """Which statements, where there are several versions of them."""
    server: str = ""
    """The user's name for its server, where the procedure is run on several."""
    design: str = ""
    """Empty: as published; `pilot`: to learn how long it takes; `interleaved`: by turns, as `load` says in which session, block and position;
    `wire`: not timed, to see what crosses the wire."""


class StudyRecord(msgspec.Struct, omit_defaults=True):
    """`study.json`: the published procedure on this machine, rewritten whenever an operation ends."""

    format: int
    study: str
    engine: str
    mechanism: str
    version: str = ""
    arms: list[str] = []
    """In the order that they were run, of each operation or of all operations together."""
    mechanisms: list[str] = []
    """Where the procedure is run on several pairs of arms: what encrypts each. A pair's number, from 1, is its proofs' session."""
    engines: list[str] = []
    """Where the pairs are of several servers: each pair's."""
    servers: list[str] = []
    """The user's names for the servers of the pairs, where they have names."""
    versions: dict[str, str] = {}
    """Of several servers, by engine, or by the name of the pair."""
    settings: dict[str, Amount] = {}
    """Rows, iterations, queries of the published run, seconds between two host samples."""
    grid: list[dict[str, Amount]] = []
    """Where the procedure is run at several sizes and loads: each of them, in order."""
    tools: dict[str, str] = {}
    """Programs that the procedure ran, and their versions."""
    encryption: dict[str, str] = {}
    conditions: dict[str, str] = {}
    """What both arms ran under, where the study has a choice. `cpu_crypto`: `on`, `off`, or `none` where OpenSSL had no AES instructions anyway."""
    proofs: list[Proof] = []
    runs: list[StudyRun] = []
    reason: str = ""
    """Why it did not run to its end."""
    complete: bool = False
    idle: str = ""
    """What idle cores did meanwhile: `poll` or `halt`; empty: recorded before this was known."""


class StudyFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the three columns. Absent: not published, or not measured."""

    operation: str
    figure: str
    unit: str
    arm: str
    """`plain`, `encrypted`, or `cost`: encrypted ÷ plain."""
    published: float | None = None
    here: float | None = None
    """The same procedure on this machine."""
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of `ours`."""
    n: int = 0
    """Sessions (or what `of` says) behind the interval."""
    of: str = ""
    published_sd: float | None = None
    """As the study has it."""
    here_sd: float | None = None
    """Of `here`, over runs or, where the study does so, over operations."""
    engine: str = ""
    """Where a study is of several servers."""
    mechanism: str = ""
    workload: str = ""
    """Which statements, where there are several versions of them."""
    load: float | None = None
    """Records, megabytes or clients, where there are several of them."""
    source: str = ""
    """Where the publication prints `published`: `Table II`, one of the study's `sources`."""


class StudyResult(msgspec.Struct, frozen=True):
    """A published study beside its repetition here. Made from study.json and the cells, whenever it is asked for."""

    study: str
    title: str
    published_server: str
    server: str
    complete: bool
    """Whether the published procedure was run here to its end, on arms that were proven."""
    procedure: str
    """The published procedure as it was run here, in words; or why it wasn't."""
    figures: list[StudyFigure]
    findings: list[str]
    """What the published procedure could not have told, from the figures of both."""


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


class ImportedFile(msgspec.Struct, frozen=True):
    name: str
    format: str
    sha256: str
    arms: list[Arm]
    how: str
    """By what its arm was told."""


class ImportedRecord(msgspec.Struct, omit_defaults=True):
    """`imported.json`: what was read, raw."""

    format: int
    files: list[ImportedFile]
    readings: list[Reading]


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


# ── what is known of a run while it goes on: plan.json ────────────────────────────────────────────────────────────────


class Opening(msgspec.Struct, frozen=True):
    """How long one arm's server took from its start to its first answer, its keys fetched and unwrapped."""

    session: Ordinal
    arm: Arm
    seconds: Amount


class CellFacts(msgspec.Struct, omit_defaults=True):
    """What a run found out and decided about one cell. Everything in `Cell` that is no estimate comes from here."""

    spec: CellSpec
    version: str = ""
    source: str = ""
    layer: str = ""
    clients: Count = 0
    rows: Count = 0
    workload: str = ""
    factors: dict[str, str] = {}
    status: Status | None = None
    """None: not begun, or cut off."""
    reason: str = ""
    slice_seconds: Amount = 0.0
    rate: Amount = 0.0
    """Of the open loop, operations a second, once it is known."""
    arrivals: Arrivals = "even"
    think_s: Amount = 0.0
    """Seconds that an operation of the open loop thinks, on average."""
    whole_sessions: list[Ordinal] = []
    """Sessions that went to their end, those that are run again among them."""
    resumed: Count = 0
    """How often it was cut off and gone on with."""
    thrown_away: Count = 0
    """Slices of sessions that were cut off, over all that."""
    void_sessions: list[Ordinal] = []
    """Sessions that were run again: their slices stay in the record and out of the estimate."""
    config_diff: list[str] = []
    separate_processes: bool = False
    """Each arm has server processes of its own."""
    encryption: dict[str, str] = {}
    cores: dict[str, str] = {}
    idle: Literal["", "poll", "halt"] = ""
    """What idle cores do, decided in the first session; empty: not decided yet, or recorded before this was known."""
    floor: dict[str, Amount] = {}
    warnings: list[Warning_] = []
    findings: list[Finding] = []
    openings: list[Opening] = []
    key_life: dict[str, Amount] = {}
    stored: dict[str, dict[str, Count]] = {}
    handshakes: dict[str, Count] = {}
    capacity: dict[str, Amount] = {}
    client: str = ""
    chatter: dict[str, dict[str, Amount]] = {}
    traffic: dict[str, dict[str, Amount]] = {}


class RunFacts(msgspec.Struct, omit_defaults=True):
    """`plan.json`: rewritten as a whole whenever something is decided."""

    format: int
    id: str
    started: str
    tool: dict[str, str]
    machine: dict[str, Any]
    seed: Seed
    spec: Spec
    cells: list[CellFacts]
    command: str = ""
    ended: str = ""
    resumed: list[str] = []
    """When the run was gone on with, after it had been cut off."""
    study: str = ""
    """Of `replicate`: which study, and what it was given."""
    study_options: dict[str, Any] = {}
    load_seconds: Amount = 0.0
    idle_seconds: Amount = 0.0
    """Between slices of one session: the controller's own time."""
