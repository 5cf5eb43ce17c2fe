"""Capability: the server counts its operations, so that its load can be read from it without making any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines.capabilities import Capability
from ciphercost.model.server_counters import Count

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient
    from ciphercost.model.connection import Connection


class Counted(msgspec.Struct, frozen=True):
    """What one read returned."""

    counts: tuple[Count, ...]
    """Each without what this reader's own reads added to it."""
    marks: tuple[str, ...] = ()
    """What changes if the server starts again or its counters are reset."""
    lost: str = ""
    """What changes if it forgets operations that it has counted; `transactions` are then taken instead."""
    notes: tuple[str, ...] = ()


class CounterReader(ABC):
    """Reads a server's counters over one connection. It sends nothing that could change anything on the server."""

    operation: str
    """What counts as one operation; see `Reading`."""
    notes: tuple[str, ...] = ()
    """Sentences about what could not be read, and why."""
    knows_cpu: bool = False
    """Whether the server counts the CPU time of all its work itself, so that nobody has to look into its processes."""
    spread: float = 0.0
    """Seconds within which every session has reported its counts once. A read is then the mean over this time, so that it does not matter
    when each of them does.
    """
    counts_cpu: bool = False
    """Whether the server counts the CPU time of its operations, which will do if its processes can't be seen."""

    def __init__(self, agent: LoadClient, arm: str, connection: Connection) -> None:
        self.agent, self.arm, self.connection = agent, arm, connection
        self.prepare()

    def prepare(self) -> None:  # noqa: B027
        """Find out what this server counts and this user may read. Raises AgentError, UsageError."""

    @abstractmethod
    def read(self) -> Counted:
        """Return the counters at this moment. Raises AgentError, UsageError."""


class CountsLoad(Capability):
    """A server whose counters tell how many operations it does."""

    missing = "has no counters that ciphercost reads"

    counter_reader: type[CounterReader]

    @property
    @abstractmethod
    def counted_programs(self) -> Collection[str]:
        """Prefixes of the names of its processes."""

    counted_title: str = ""
    """What messages call it. Empty: the engine's title."""
    measured_as: Collection[str] = ()
    """Engines whose measured parts hold for it. Empty: itself alone."""

    @property
    def called_when_read(self) -> str:
        """What messages call it."""
        return self.counted_title or self.title

    @property
    def like(self) -> Collection[str]:
        """Names of the engines whose measured parts hold for this server."""
        return self.measured_as or (self.name,)
