"""server_pair: a session's pair of servers, one for each arm or one for both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ciphercost.engines import Server
from ciphercost.load.agent import Agent
from ciphercost.load.trust import Place, Refused, encrypted_first, words
from ciphercost.mechanisms._rest import Look, Rest
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.provision import columns


class ServerPair(msgspec.Struct):
    """What serves the two arms in one session."""

    connect: dict[Arm, dict[str, object]]
    """Fields of the agent's `connect` for the load, without the arm's name. That arm first which comes first in this session."""
    servers: list[Server]
    canary: str
    rest: Rest | None = None
    """Of a mechanism at rest."""
    sealing: columns.Secrets | None = None
    """Of a mechanism in columns."""
    promised: dict[str, str] = {}
    """What the encrypted arm's `connected` answer must say, beside what its fields ask for."""
    by_arm: dict[Arm, Server] = {}
    """The server of each arm: one and the same, but at rest."""
    openings: dict[Arm, float] = {}
    """Seconds that each arm's own server took to its first answer."""
    server_cpus: set[int] = set()
    agent_cpus: set[int] = set()
    embedded: bool = False
    relay: int = 0
    """Process of ours that stands between agent and servers; 0: none. Its CPU is neither the server's nor foreign."""
    netns: Path | None = None
    """The network namespace that the agent must be in, behind the link; None: this process's own."""
    device: str = ""
    """The servers' end of that link, whose counters have what crossed it; empty: loopback."""
    direct: dict[Arm, dict[str, object]] = {}
    """`connect` by the shortest way to the server: without the delay that the cell may ask for."""
    place: Place | None = None
    """Of a server of the user's."""
    refused: Refused | None = None
    """What the run knows of servers of the user's; None: these are ours."""

    def note(self, error: AgentError) -> None:
        """The encrypted arm failed: if the server is the user's, nothing more is sent to it unencrypted."""
        if self.refused and self.place:
            self.refused.note(self.place, self.connect["encrypted"], error)

    @property
    def login_order(self) -> list[Arm]:
        """Arms in the order in which they log in: the seed's at our own servers, encrypted first at one of the user's."""
        return list(self.connect) if self.refused is None else encrypted_first(self.connect)

    @property
    def closed(self) -> str:
        """Why the plain arm may not be tried, in words for the user; empty: it may."""
        if not (self.refused and self.place and "plain" in self.connect):
            return ""
        error = self.refused.reason(self.place, self.connect["plain"])
        return words(str(error), error.code) if error else ""

    @property
    def server(self) -> Server | None:
        """A server whose processes can be seen; where one serves both arms it is that."""
        return next((each for each in self.servers if each.pid), None)

    def look(self, arm: Arm, agent: Agent, name: str, connect: Mapping[str, object]) -> Look:
        """One arm at rest, for a witness. `name`: the agent's arm that is connected with the fields `connect`."""
        assert self.rest is not None
        server = self.by_arm[arm]
        assert server.volume is not None
        return Look(arm, self.rest, server.volume, server, agent, name, connect)

    def sight(self, arm: Arm, agent: Agent, name: str) -> columns.Sight:
        """One arm in columns, for a witness. `name`: the agent's arm that is connected to its schema."""
        assert self.sealing is not None
        volume = self.by_arm[arm].volume
        return columns.Sight(arm, self.sealing, self.canary, agent, name, volume.backing if volume else ())
