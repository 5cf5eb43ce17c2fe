"""facts: What is known of a run while it goes on, as plan.json has it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ciphercost.model.result import Warning_
from ciphercost.model.slices import Arrivals, Finding, Witness
from ciphercost.model.spec import Arm, CellSpec, Layer, Spec
from ciphercost.model.terms import Amount, Count, Ordinal, Seed, Status

# ── what is known of a run while it goes on: plan.json ────────────────────────────────────────────────────────────────


class Opening(msgspec.Struct, frozen=True):
    """How long one arm's server took from its start to its first answer, its keys fetched and unwrapped."""

    session: Ordinal
    arm: Arm
    seconds: Amount


class Registered(msgspec.Struct, frozen=True):
    """What the registries said of a cell's engine and mechanism when the cell was planned.

    Estimates and reports read it here, so that a run stays readable when its engine or mechanism has changed or is gone.
    """

    engine_title: str
    embedded: bool
    """The database runs inside the agent."""
    tls_round_trips: Count
    """Round trips that the engine's protocol spends on agreeing on TLS, before the handshake."""
    mechanism_title: str
    layer: Layer | Literal[""]
    """Empty: an imported cell of a mechanism that ciphercost doesn't know."""
    protects: str
    """What the mechanism protects, as reports print it."""
    witnesses: list[Witness]
    """Those that must be heard for each arm."""
    factors: list[str]
    """Names of the mechanism's own factors; a cell's other factors belong to its workload and client."""


UNREGISTERED = Registered("", False, 0, "", "", "", [], [])
"""Of an imported cell whose engine and mechanism ciphercost doesn't know."""


class CellFacts(msgspec.Struct, omit_defaults=True):
    """What a run found out and decided about one cell. Everything in `Cell` that is no estimate comes from here."""

    spec: CellSpec
    registered: Registered | None = None
    """None: recorded in format 1."""
    control: Count | None = None
    """Number of the cell that is this one's control."""
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


def unmeasured(cell: CellFacts) -> CellFacts:
    """The cell as it was planned, before anything was measured. Pure."""
    return CellFacts(cell.spec, cell.registered, cell.control)


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
