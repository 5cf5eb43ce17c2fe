"""Facts about a run, as plan.json and checkpoint.json hold them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ciphercost.model.cipher_work import Enciphered
from ciphercost.model.constrained_types import Amount, Count, Ordinal, Seed, Status
from ciphercost.model.fleet import FleetFacts
from ciphercost.model.pair import Pair
from ciphercost.model.result import Warning_
from ciphercost.model.slices import Arrivals, Finding, Witness
from ciphercost.model.spec import Arm, CellSpec, Draw, Layer, Spec

# ── facts about a run: plan.json ──────────────────────────────────────────────────────────────────────────────────────


class Opening(msgspec.Struct, frozen=True):
    """Time from the start of an arm's server to its first answer, including fetching and unwrapping its keys. Of an embedded database: time
    to open it, including the derivation of its key."""

    session: Ordinal
    arm: Arm
    seconds: Amount


class Registered(msgspec.Struct, frozen=True):
    """What the registries held about a cell's engine and mechanism when the cell was planned.

    Estimates and reports read this, so that a run stays readable after its engine or mechanism changed or was removed.
    """

    embedded: bool
    """The database runs inside the agent."""
    tls_round_trips: Count
    """Round trips in which the engine's protocol negotiates TLS before the handshake."""
    layer: Layer | Literal[""]
    """Empty: an imported cell with a mechanism that ciphercost doesn't know."""
    protects: str
    """What the mechanism protects, as reports print it."""
    witnesses: list[Witness]
    """Witnesses that must pass for each arm."""
    factors: list[str]
    """Names of the mechanism's own factors; a cell's other factors belong to its workload and client."""
    place: str = ""
    """What reports call the server instead of the engine's name: the host of a web site. Empty: the engine's name."""
    headers: list[str] = []
    """Names of headers that the user adds to requests. Their values are in no record."""
    fixed: list[str] = []
    """Factors without a choice: others are refused on this server, or they follow from others."""


UNREGISTERED = Registered(False, 0, "", "", [], [])
"""For an imported cell whose engine and mechanism ciphercost doesn't know."""


PAGE = 4096
"""Bytes of a block of a file system: a database, a file system or the kernel reads or writes at least so many."""


class CellFacts(msgspec.Struct, omit_defaults=True):
    """What a run detected and decided about one cell. Everything in `Cell` that is not an estimate comes from here."""

    spec: CellSpec
    registered: Registered | None = None
    """None: recorded in format 1."""
    control: Count | None = None
    """Number of the cell that is this one's control."""
    pair: Pair | None = None
    """Its arms, if both are encrypted. None: they are plain and encrypted."""
    version: str = ""
    source: str = ""
    layer: str = ""
    clients: Count = 0
    rows: Count = 0
    workload: str = ""
    factors: dict[str, str] = {}
    status: Status | None = None
    """None: not started, or interrupted."""
    reason: str = ""
    slice_seconds: Amount = 0.0
    rate: Amount = 0.0
    """Operations per second of the open loop, once it is known."""
    arrivals: Arrivals = "even"
    draw: Draw = "random"
    """How operations are drawn; `even`: the slices of a block's two arms repeat the same sequence."""
    think_s: Amount = 0.0
    """Mean think time of an operation of the open loop, seconds."""
    whole_sessions: list[Ordinal] = []
    """Complete sessions, including those that were repeated."""
    resumed: Count = 0
    """How often the cell was interrupted and resumed."""
    thrown_away: Count = 0
    """Slices of incomplete sessions that were discarded, in total."""
    void_sessions: list[Ordinal] = []
    """Sessions that were repeated: their slices stay in the record but are not estimated."""
    config_diff: list[str] = []
    keeps_connections: bool = False
    """The load keeps its connections open from one operation to the next. False also in records of older versions."""
    separate_processes: bool = False
    """Each arm has its own server processes."""
    encryption: dict[str, str] = {}
    cores: dict[str, str] = {}
    idle: Literal["", "poll", "halt"] = ""
    """What idle cores do, decided in the first session. Empty: not decided yet, or not recorded by older versions."""
    floor: dict[str, Amount] = {}
    enciphered: Enciphered | None = None
    """At rest, with a known cipher: how files are encrypted, and how many bytes of them were, if the server counts. None: otherwise."""
    values: dict[str, Amount] = {}
    """In columns, per operation: `sealed`, `opened`, `searched`. Empty: unknown."""
    statements: Amount = 0.0
    """Statements, requests or commands of an operation. 0: unknown."""
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
    link: dict[str, Count] = {}
    """Packets on a link that loses some, in both directions, of all sessions: sent, lost, and overflowed: lost unasked, because a
    queue was full."""
    page_counted: Count = 0
    """Most bytes that the kernel counts as written for a page of 4096 bytes, where the arms have their files. 0: unknown, or none."""
    fleet: FleetFacts | None = None
    """None: one agent on this machine made the load."""

    @property
    def counts_writes(self) -> bool:
        """Whether what the kernel counts as written by the server's processes goes to the disk."""
        return self.page_counted == PAGE


def unmeasured(cell: CellFacts) -> CellFacts:
    """The cell as it was planned, before anything was measured. Pure."""
    return CellFacts(cell.spec, cell.registered, cell.control, cell.pair, clients=cell.clients)


class UserFile(msgspec.Struct, frozen=True):
    """A file, or the directory of a dump, with statements or rows of the user's."""

    path: str
    """As the user wrote it, from the directory in which the run was started."""
    sha256: str
    """Of its content when the run began."""


class RunFacts(msgspec.Struct, omit_defaults=True):
    """`plan.json`: rewritten completely at each decision."""

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
    """When the run was resumed."""
    study: str = ""
    """`replicate`: name of the study; `study_options`: its options."""
    study_options: dict[str, Any] = {}
    files: list[UserFile] = []
    """The user's files that the run reads. Empty also in records of older versions."""
    load_seconds: Amount = 0.0
    idle_seconds: Amount = 0.0
    """The controller's own time between slices of a session."""
    hashes: dict[str, str] = {}
    """SHA-256 of the record's other files at the end of the run, by name. Empty: not ended, or recorded by older versions."""
    full_hashes: dict[str, str] = {}
    """In a record that was abridged to be published: the hashes of the files that were changed, as the run wrote them."""
