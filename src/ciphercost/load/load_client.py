"""load_client: what measuring needs of whatever makes the load: an agent on this machine, a fleet of them, or a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ciphercost.load.agent_messages import HelloAnswer, Reply
from ciphercost.load.program import Program
from ciphercost.model.command_load import ToolFigures
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice, Arrivals, Counters

LATE = "late"
"""Code of the error for a slice that an agent can't begin in time to count the agreed window."""
SKEWED = "skewed"
"""Code of the error for a slice whose agents, or the sampling of the server, began so far apart that they did not count the same window."""


class AgentsLost(AgentError):
    """Agents were lost, and all arms have lost their connections; with the agents that are left the load can go on."""


class ClientMachine(msgspec.Struct, frozen=True):
    """What one machine that makes load did in a slice."""

    busy: float
    """CPU time of its agents as a share of the cores that they may use."""
    cores: int
    """Of the whole machine."""
    counters: Counters | None
    """Of its host. None: the controller's machine, which the session samples itself."""


class SliceSampler(Protocol):
    """Samples the server's processes and their host; `procfs.Sampler` explains the methods."""

    def refresh(self, every: float = 0.0) -> None: ...

    def begin(self) -> None: ...

    def stop(self) -> None: ...

    def end(self, agent_cpu_ns: int = 0, agent_user_ns: int = 0) -> Counters: ...


class SliceClient(Protocol):
    """Makes the load of both arms, slice by slice: all that a session needs. `Agent` explains the methods."""

    @property
    def compiles(self) -> bool: ...

    @property
    def pid(self) -> int: ...

    @property
    def start_skew(self) -> float | None:
        """Seconds from the first to the last agent that began to count in the last slice. None: there is only one."""

    @property
    def machines(self) -> Sequence[ClientMachine] | None:
        """Machines that made the load of the last slice. None: this one alone, and its answer tells how busy it was."""

    @property
    def server_sampler(self) -> SliceSampler | None:
        """Samples a server on another machine, where the load's machines can. None: only this machine's own can be sampled."""

    @property
    def reported(self) -> ToolFigures | None:
        """What the tool that made the last slice reported beside its answer. None: an agent made it."""

    def fitting(self, seconds: float, room: float = 0.0) -> float:
        """The length of a slice that it can make, at least about `seconds`; `room`: seconds that it may have where it needs more."""

    def own_cpu(self, answer: AgentSlice) -> tuple[int, int]:
        """CPU time in nanoseconds that the last slice cost agents on this machine: in all, and in user mode."""

    def slice(
        self,
        arm: str,
        seconds: float,
        *,
        discard: float = 0.2,
        seed: int = 0,
        rate: float = 0.0,
        operations: int = 0,
        arrivals: Arrivals = "even",
        on_counting: Callable[[], None] | None = None,
        on_counted: Callable[[], None] | None = None,
    ) -> AgentSlice: ...


class LoadClient(SliceClient, Protocol):
    """A client that also speaks the server's protocol, so that it can be asked: an agent, or a fleet of them."""

    @property
    def hello(self) -> HelloAnswer: ...

    def program(self, program: Program) -> None: ...

    def connect(self, arm: str, connection: Connection) -> Connected: ...

    def disconnect(self, arm: str) -> None: ...

    def query(
        self, arm: str, sql: str, *, everywhere: bool = False, timeout: float | None = None
    ) -> list[list[str | None]]: ...

    def reply(self, arm: str, sql: str) -> Reply: ...
