"""Storms: many new connections while others carry load. What was asked, the record, the result. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Ordinal, Positive
from ciphercost.model.estimate import Estimate
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm

STORM = "storm"
"""The workload that asks for a storm by itself."""
StormKind = Literal["rate", "failover", "rotation", "saturated"]
"""New connections at a rate; all clients at once on a fresh server; the connections of a pool at once; new connections at a rate, while the
established ones send as fast as they can instead of at a rate."""


class Storm(msgspec.Struct, frozen=True):
    """What `--storm` asks for."""

    kind: StormKind
    text: str
    """As the user wrote it: `160`, `saturated=160`, `failover=1000`, `rotation=30m/15`."""
    rate: float = 0.0
    """New connections per second, of kinds `rate` and `saturated`."""
    clients: int = 0
    """New connections that begin at once, of the other kinds; 0: as many as the cell has clients."""
    every_s: float = 0.0
    """Of a rotation: lifetime of a pool's connections, seconds."""


class StormSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `storm.jsonl`: one storm on one arm, in three parts of equal length. A failed one has `error` and no answers."""

    cell: Count
    session: Ordinal
    block: Count
    order: str
    position: Count
    """0: the lead-in, discarded; 1 to 4: counted."""
    arm: Arm
    kind: StormKind
    asked: str
    """As the user wrote it."""
    length: Positive
    """Of each part, seconds."""
    rate: Amount
    """Operations per second that the established connections owe; 0: they send as fast as they can."""
    wanted: Count = 0
    """New connections that were to be opened."""
    before: AgentSlice | None = None
    """The established connections before the storm; `during`: while the others connect (of a failover: once they are back); `after`: the part after that."""
    during: AgentSlice | None = None
    after: AgentSlice | None = None
    back: AgentSlice | None = None
    """The new connections: an operation is one connection with one operation of the workload. Latency counts from when it was due."""
    reconnect_s: Amount = 0.0
    """Of a failover: seconds until all established connections were back."""
    error: str = ""


class StormArm(msgspec.Struct, frozen=True, omit_defaults=True):
    """One arm in the storms."""

    levels: dict[str, float]
    """Typical levels: throughput_before, …_during, …_after in operations/s; latency_p50_before, …, latency_p99_after, back_p50, back_p99 and
    back_last in ms; reconnect in ms."""
    change: dict[str, Estimate]
    """During ÷ before, and after ÷ before: throughput_during, latency_p99_after, …."""
    wanted: int
    """New connections that were to be opened in all counted storms."""
    refused: int
    """Those that failed."""
    reasons: str = ""
    """Their reasons, as `CODE=COUNT`, most frequent first."""


class StormResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What storms do to the established connections of both arms, and how soon the new ones are back."""

    kind: StormKind
    asked: str
    rate: float
    """Operations per second that the established connections owe; 0: they send as fast as they can."""
    seconds: float
    """Length of each part."""
    wanted: int
    """New connections of one storm."""
    blocks: int
    ratios: dict[str, Estimate]
    """encrypted ÷ plain, by the keys of `levels`."""
    arms: dict[str, StormArm]
    change: dict[str, Estimate] = {}
    """The change of the encrypted arm ÷ that of the plain one, by the keys of `StormArm.change`."""
