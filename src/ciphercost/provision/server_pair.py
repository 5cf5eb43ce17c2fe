"""server_pair: the servers of one session: one per arm, or one for both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ciphercost.engines import Server
from ciphercost.host.link import Link
from ciphercost.load.load_client import LoadClient
from ciphercost.load.plaintext_guard import Place, Refused, encrypted_first, words
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import Arm
from ciphercost.provision import columns
from ciphercost.provision.route import Route
from ciphercost.provision.watch import Watch


class ServerPair(msgspec.Struct):
    """What serves the two arms in one session."""

    connect: dict[Arm, Connection]
    """The connections of the load, in the order in which the session runs the
    arms.
    """
    servers: list[Server]
    canary: str
    directory: Path | None = None
    """Of the cell, in the run's scratch: for a relay's Unix-domain socket."""
    sides: Mapping[Arm, Arm] = {}
    """What the mechanism does for an arm, where that is not the arm's own name."""
    asked_for: Mapping[Arm, Mapping[str, str]] = {}
    """The mechanism's factors of each arm; on your own server those that you gave."""
    rests: Mapping[Arm, AtRestContext] = {}
    """For a mechanism at rest."""
    sealings: Mapping[Arm, columns.Secrets] = {}
    """For a column mechanism: how each arm's values are encrypted, in a plain arm how they would be."""
    promised: Mapping[Arm, Mapping[str, str]] = {}
    """What an encrypted arm's `connected` answer must contain, beside what its fields request."""
    by_arm: dict[Arm, Server] = {}
    """The server of each arm. The same one for both, except at rest."""
    replicas: dict[Arm, Server] = {}
    """What repeats the changes of an arm's server. Empty: nothing does."""
    openings: dict[Arm, float] = {}
    """Seconds from the start of each arm's own server to its first answer."""
    server_cpus: set[int] = set()
    agent_cpus: set[int] = set()
    embedded: bool = False
    relay: int = 0
    """Process id of ciphercost's relay between agent and servers; 0: none. Its CPU counts neither as the server's nor
    as foreign.
    """
    link: Link | None = None
    """The link between agent and servers. None: loopback."""
    direct: dict[Arm, Connection] = {}
    """`connect` without the delay that the cell may ask for: straight to the server."""
    ways: Mapping[Arm, Route] = {}
    """How an arm's connections reach the server, if they go through a hop."""
    libraries: Mapping[Arm, str] = {}
    """Directory of the OpenSSL libraries that an arm's server must use. Empty: its own."""
    fips: Mapping[Arm, str] = {}
    """Whether an arm's server must be in FIPS mode: `on` or `off`. Empty: nothing is proven about it."""
    in_clear: bool = False
    """Whether neither arm is encrypted: the cell is a control."""
    failures: dict[Arm, AgentError] = {}
    """The first error of each arm that a witness met in this session."""
    place: Place | None = None
    """Set for your own server."""
    refused: Refused | None = None
    """What the run knows about connections that your own servers refused. None: ciphercost started the servers."""
    watch: Watch = msgspec.field(default_factory=Watch)
    """Notices when something dies that the load needs."""

    @property
    def netns(self) -> Path | None:
        """The network namespace that the agent must run in, behind the link. None: the current one."""
        return self.link.path if self.link else None

    @property
    def rest(self) -> AtRestContext | None:
        """For a mechanism at rest: what it knows about the encrypted arm."""
        return self.rests.get("encrypted")

    @property
    def sealing(self) -> columns.Secrets | None:
        """For a column mechanism: how the encrypted arm's values are encrypted."""
        return self.sealings.get("encrypted")

    def side(self, arm: Arm) -> Arm:
        """What the mechanism does for an arm: encrypt, or leave it plain."""
        return self.sides.get(arm, arm)

    def legs(self, arm: Arm) -> tuple[bool, ...]:
        """Whether each part of the arm's way is encrypted, from the client to the server."""
        return self.ways[arm].legs if arm in self.ways else (self.side(arm) == "encrypted" and not self.in_clear,)

    def one_session(self, arm: Arm) -> bool:
        """Whether the client's TLS session is the server's too, because nothing in between ends it."""
        return all(self.legs(arm)) and (arm not in self.ways or not self.ways[arm].ends_tls)

    def hop_pids(self, arm: Arm) -> tuple[int, ...]:
        """The processes between client and server."""
        return self.ways[arm].chain.pids if arm in self.ways else ()

    def note(self, error: AgentError, arm: Arm = "encrypted") -> None:
        """Note that an encrypted arm failed. If the server is your own, nothing more is sent to it less protected."""
        if self.refused and self.place:
            self.refused.note(self.place, self.connect[arm], error)

    @property
    def login_order(self) -> list[Arm]:
        """Arms in login order: the seed's order on servers that ciphercost starts; encrypted first on your own."""
        return list(self.connect) if self.refused is None else encrypted_first(self.connect)

    @property
    def closed(self) -> str:
        """Why the plain arm, or the one that takes its place, must not be tried, as a message for the user. Empty: it may be tried."""
        if not (self.refused and self.place and "plain" in self.connect):
            return ""
        error = self.refused.reason(self.place, self.connect["plain"])
        return words(str(error), error.code) if error else ""

    @property
    def server(self) -> Server | None:
        """A server whose processes are visible. If one server serves both arms, it is that one."""
        return next((server for server in self.servers if server.pid), None)

    def directories(self) -> Iterator[Path]:
        """Those whose file systems hold the data that its servers write. None for your own servers: theirs are not known."""
        if self.place is not None:
            return
        volumes = [server.volume for server in self.servers if server.volume is not None]
        for volume in volumes:
            yield from (path for path in (volume.path, *volume.backing) if path.is_dir())
        if not volumes and self.directory is not None:
            yield self.directory

    def look(self, arm: Arm, agent: LoadClient, name: str, connect: Connection) -> ArmAtRest:
        """One arm at rest, for a witness. `name`: the agent's arm that is connected like `connect`."""
        server = self.by_arm[arm]
        assert server.volume is not None
        return ArmAtRest(self.side(arm), self.rests[arm], server.volume, server, agent, name, connect)

    def arm_view(self, arm: Arm, agent: LoadClient, name: str) -> columns.ArmView:
        """One arm of a column mechanism, for a witness. `name`: the agent's arm that is connected to its schema."""
        volume = self.by_arm[arm].volume
        places = volume.backing if volume else ()
        return columns.ArmView(arm, self.sealings[arm], self.canary, agent, name, places, self.side(arm))


@contextmanager
def to_its_end(server: Server, data: Path) -> Iterator[None]:
    """Stop a server and remove its data at the end. Raises RunError if it had died."""
    try:
        yield
        if died := server.died():
            raise RunError(died)
    finally:
        server.stop()
        shutil.rmtree(data, ignore_errors=True)
