"""messages: what the controller and a member of the fleet send each other. No logic, and no secret in a field that is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from ciphercost.model.slices import AgentSlice, Arrivals, Counters


class Sealed:
    """Bytes that may hold a password: one argument of a call, which no log, traceback or `repr` shows."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def reveal(self) -> bytes:
        return self._content

    def __repr__(self) -> str:
        return "redacted"

    def __reduce__(self) -> tuple[type[Sealed], tuple[bytes]]:
        return Sealed, (self._content,)


class Start(msgspec.Struct, frozen=True):
    """What a member's agent is started with."""

    cpus: tuple[int, ...] | None
    """CPUs it may use; None: all of the node."""
    environment: dict[str, str]
    """Variables added to its environment."""
    timeout: str
    """The controller's CIPHERCOST_TIMEOUT; empty: the usual deadlines."""


class NodeDescription(msgspec.Struct, frozen=True):
    """What a node is. `boot` and `network` are the same on two nodes of one machine, and of one network namespace."""

    host: str
    boot: str
    network: str
    machine: dict[str, Any]


class Failure(msgspec.Struct, frozen=True):
    """A request that failed: the agent's own error, with its code."""

    text: str
    code: str
    gone: bool = False
    """The agent has ended, so this member can't go on."""


class SliceOrder(msgspec.Struct, frozen=True):
    """A slice that begins at an agreed moment."""

    arm: str
    at: float
    """When it begins, by the member's own clock."""
    seconds: float
    discard: float
    seed: int
    rate: float
    operations: int
    arrivals: Arrivals
    phase: float
    """Seconds after `at` at which this member's requests begin, so that members with an even rate do not send at once."""
    sampled: bool
    """Whether the member samples its host."""


class SliceReport(msgspec.Struct, frozen=True):
    """A member's answer to a slice; times by its own clock."""

    answer: AgentSlice
    early: float
    """Seconds between the order's arrival and the moment it names; negative: it came too late."""
    counting: float
    """When the agent reported that its counted part begins."""
    window: float
    """When that part should have begun."""
    counters: Counters | None


class ServerPlace(msgspec.Struct, frozen=True):
    """By what a server's process is found on its node."""

    port: int
    programs: tuple[str, ...]
    """Prefixes of command names."""


class SampleOrder(msgspec.Struct, frozen=True):
    """A window in which the server's host is sampled, by that host's clock."""

    place: ServerPlace
    begins: float
    ends: float
    refresh: float
    """Seconds after which the list of the server's processes is read again."""


class Call(msgspec.Struct, frozen=True):
    """Fields of a `connect`, or any other message to an agent, as JSON, with the files that it names."""

    message: Sealed
    files: dict[str, Sealed]
    """By field: what is in the file that the field names on the controller."""
    timeout: float


FILES = ("tls_ca", "tls_certificate", "tls_key")
"""Fields of `connect` that name a file."""
