"""What a run records about load from many agents: their nodes, clocks, losses, and how far apart they started. No logic."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Ordinal, Share

Placement = Literal["spread", "near-server"]
"""Where the agents run. spread: one on each node; near-server: all on the server's node."""


class FleetNode(msgspec.Struct):
    """A node that made load, and what its host did meanwhile."""

    name: str
    """Address and the beginning of Ray's id."""
    machine: dict[str, Any] = {}
    """cpu, cores, aes, vaes, kernel, ciphercost, agent, tls_library, ray, python."""
    with_controller: bool = False
    """It is the controller's own machine; there the controller samples the host, and the shares below are absent."""
    slices: Count = 0
    """Slices to which its agent contributed."""
    cpu: Share | None = None
    """Mean share of all its CPU time that was in use; the following ones likewise."""
    steal: Share | None = None
    foreign_cpu: Amount | None = None
    """Mean CPU use of everything except agent and actor, in cores."""


class FleetClock(msgspec.Struct, frozen=True):
    """A node's clock in one session."""

    session: Ordinal
    node: str
    offset_s: float
    """CLOCK_MONOTONIC of the node − that of the controller, seconds. On the controller's machine both are the same clock."""
    error_s: Amount
    """The truth is at most this far away."""


class LostAgent(msgspec.Struct, frozen=True):
    """An agent that the load went on without."""

    session: Ordinal
    node: str
    reason: str


class StartSkew(msgspec.Struct, frozen=True):
    """How far apart the agents of a slice began to count: last − first, over all slices that count. Milliseconds."""

    slices: Count
    p50_ms: Amount
    p99_ms: Amount
    max_ms: Amount


class FleetFacts(msgspec.Struct):
    """Load of one cell from many agents."""

    agents: Count = 0
    """Agents in the cell's last session, before any of them was lost."""
    least: Count = 0
    """With fewer, the cell would have ended (`--min-agents`)."""
    placement: Placement = "spread"
    nodes: list[FleetNode] = []
    clocks: list[FleetClock] = []
    lost: list[LostAgent] = []
    failed_slices: Count = 0
    """Slices that failed because an agent was lost, late or failed. Their blocks are incomplete and do not count."""
    late_slices: Count = 0
    """Those of them in which no agent was lost: an order came too late, or the agents began too far apart."""
    start_skew: StartSkew | None = None
    """Computed from the slices; absent in plan.json."""
