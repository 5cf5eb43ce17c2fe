"""Replication over a link that one arm encrypts: the record, the result. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Ordinal
from ciphercost.model.estimate import Estimate
from ciphercost.model.spec import Arm

REPLICATION = "replication"
"""The workload that measures it."""
LINK = "replication link: "
"""How the recorded difference of the arms begins if it is the link between their two servers."""
ReplicationKind = Literal["lag", "catch-up", "copy"]
"""From a write on the primary until the replica shows it; a backlog that the replica applies; a full copy of the primary's data."""
KINDS: tuple[ReplicationKind, ...] = ("lag", "catch-up", "copy")


class ReplicationEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `replication.jsonl`: one figure of one arm. A failed one has `error` and no seconds."""

    cell: Count
    session: Ordinal
    block: Count
    order: str
    position: Count
    """1 to 4 in its block."""
    arm: Arm
    kind: ReplicationKind
    seconds: Amount = 0.0
    """Lag: the median of `samples` writes. The others: how long it took."""
    samples: Count = 1
    rate: Amount = 0.0
    """Lag: operations per second that the load owed meanwhile."""
    rows: Count = 0
    """Catch-up: changes that clients made while the replica stood still."""
    bytes: Count = 0
    """Copy: what it made, if that is files."""
    by: str = ""
    """Copy: what made it."""
    error: str = ""


class ReplicationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption of the link between two servers costs them, beside the commits of their clients."""

    ratios: dict[str, Estimate]
    """encrypted ÷ plain: `lag` and `copy` of times, `catch_up` of rates."""
    arms: dict[str, dict[str, float]]
    """By arm: lag in ms, catch_up in changes/s, copy in s."""
    blocks: int
    rate: float = 0.0
    """Operations per second during which the lag was measured."""
    rows: int = 0
    """Of a backlog."""
    bytes: int = 0
    """Of a copy; 0: unknown."""
    copied_by: str = ""
    """What makes the copy."""
