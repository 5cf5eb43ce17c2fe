"""Memory per connection: the record and the result. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Count, Ordinal
from ciphercost.model.spec import Arm

IDLE, USUAL_CONNECTIONS = "idle-connections", 500
"""The workload that asks for memory per connection by itself, and its number of connections."""
Moment = Literal["handshake", "traffic", "response"]
"""After the handshake and login; after one operation on each connection; after one large response on each."""
MOMENTS: tuple[Moment, ...] = ("handshake", "traffic", "response")
HOLDERS = ("server", "hop", "kernel", "client")


class MemoryLevel(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `memory.jsonl`: what one arm's processes hold once so many connections have reached a moment."""

    cell: Count
    session: Ordinal
    arm: Arm
    moment: Moment
    connections: Count
    """Connections that have reached this moment; the arm's others are at the moment before it."""
    server: Count
    """PSS of the server's process tree, bytes; `hop`: of the processes between client and server; `client`: of the agent."""
    client: Count
    hop: Count = 0
    kernel: Count = 0
    """Socket buffers in the kernel, of both ends of all connections of the arm, bytes."""


class Slope(msgspec.Struct, frozen=True):
    """Bytes per connection with their 95 % interval."""

    bytes: float
    low: float
    high: float


class ConnectionMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a connection holds in memory, in both arms, and what encryption adds."""

    connections: int
    """Most connections of an arm."""
    steps: int
    """Steps in which they were opened, in each session."""
    sessions: int
    arms: dict[str, dict[str, dict[str, Slope]]]
    """By arm, moment and holder (`server`, `hop`, `kernel`, `client`)."""
    added: dict[str, dict[str, Slope]]
    """encrypted − plain, by moment and holder."""
    method: str = ""
