"""replicas: a replica for each arm's primary, which follows it over a link that is encrypted in one arm. All of it ends with the session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from ciphercost.engines import Server
from ciphercost.engines._network import StartedServer
from ciphercost.engines.capabilities.replication import Ask, Replicates, ReplicationLink
from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import Arm
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair, to_its_end

JOIN_S = 30.0
"""Seconds that a replica may take to follow its primary."""
LOOK_S = 0.01
"""Between two looks at whether it does."""


class Replica:
    """One arm's primary and its replica. `primary` and `replica` send a statement to one of them over connections without TLS."""

    def __init__(
        self, bench: PreparedCell, pair: ServerPair, arm: Arm, server: Server, agent: Agent, writer: Agent
    ) -> None:
        """`writer`: makes changes that wait for no replica."""
        self.arm = arm
        self.server = server
        self.engine = Replicates.of(bench.engine)
        self._bench, self._pair = bench, pair
        self._writer, self._written = writer, 0
        writer.connect(arm, pair.connect[arm])
        assert server.directory is not None
        self.directory = server.directory
        self._names = {"primary": f"primary-{arm}", "replica": f"replica-{arm}"}
        to = pair.connect[arm].single
        agent.connect(self._names["primary"], to)
        there = server.connection()
        agent.connect(self._names["replica"], to | {"host": there.host, "port": there.port})
        self.primary, self.replica = (
            Ask(partial(agent.query, name, timeout=deadlines.load()), partial(agent.reply, name))
            for name in self._names.values()
        )

    @property
    def encrypted(self) -> bool:
        return self._bench.side(self.arm) == "encrypted"

    @property
    def target(self) -> tuple[str, int]:
        """Where the primary accepts links of this arm."""
        primary = self._pair.by_arm[self.arm]
        connection = primary.connection()
        if self.encrypted and not self.engine.same_port:
            connection |= primary.other_ports["tls"]
        return connection.host, connection.port

    def link(self, host: str = "", port: int = 0) -> ReplicationLink:
        """The arm's link to its primary, or to a relay before it."""
        here, there = self.target
        ca = self._bench.link_ca(self.arm) if self.encrypted else ""
        to = self._pair.by_arm[self.arm].connection()
        return ReplicationLink(to, host or here, port or there, ca, self.directory)

    def join(self, link: ReplicationLink) -> None:
        """Follow the primary over a link, and wait until it does. Raises RunError."""
        try:
            self.engine.join(self.primary, self.replica, link)
            self.wait(lambda: self.engine.joined(self.primary, self.replica), JOIN_S)
        except AgentError as error:
            raise RunError(f"{self.arm} arm: the replica can't follow its primary: {error}") from None

    def synchronous(self, *, on: bool) -> None:
        """Decide whether commits on the primary wait for the replica. Raises AgentError."""
        self.engine.synchronous(self.primary, self.replica, on=on)

    def write(self, operations: int) -> None:
        """Let clients make changes; the n-th time they are the same for both arms. Raises AgentError."""
        self._written += 1
        done = self._writer.slice(self.arm, deadlines.load(), discard=0.0, seed=self._written, operations=operations)
        if done.errors:
            raise AgentError(done.first_error)

    def position(self) -> int:
        """How far the primary has written."""
        return self.engine.position(self.primary)

    def applied(self) -> int:
        """How far of it the replica has applied."""
        return self.engine.applied(self.replica)

    def catch_up(self, seconds: float) -> None:
        """Wait until the replica has applied all that the primary has written by now. Raises RunError."""
        position = self.position()

        def behind() -> str:
            return "" if self.applied() >= position else "it has not applied all changes"

        self.wait(behind, seconds)

    def wait(self, why: Callable[[], str], seconds: float) -> None:
        """Wait until there is no reason left. Raises RunError, with the reason, once `seconds` have passed."""
        deadline = time.monotonic() + seconds
        while reason := why():
            self._pair.watch.look()
            if time.monotonic() > deadline:
                raise RunError(f"{self.arm} arm: the replica does not follow its primary after {seconds:g} s: {reason}")
            time.sleep(LOOK_S)


def open_replicas(bench: PreparedCell, pair: ServerPair, number: int, stack: ExitStack) -> dict[Arm, Replica]:
    """Start a replica for each arm, which follows nothing yet. Raises RunError, MissingServer."""
    agent, writer = (stack.enter_context(bench.helper(pair.connect["plain"])) for _ in range(2))
    for each in (agent, writer):
        each.watch(pair.watch.look)
    writer.program(bench.program.with_backlog())
    replicas: dict[Arm, Replica] = {}
    for arm in pair.connect:
        directory = bench.directory / f"replica-{number}" / arm
        server = bench.shared.enter(_server(bench, pair, arm, directory))
        if server.standing:
            pair.watch.also(server.standing)
        pair.replicas[arm] = server
        replicas[arm] = Replica(bench, pair, arm, server, agent, writer)
    return replicas


@contextmanager
def _server(bench: PreparedCell, pair: ServerPair, arm: Arm, directory: Path) -> Iterator[Server]:
    place, engine = bench.dataset.place(arm), Replicates.of(bench.engine)
    with bench.volume(place, directory) as volume:
        bench.fetch(place, volume)
        engine.make_replica(volume.path)
        server = bench.start(place, volume, pair.server_cpus or None, more=engine.replication_settings(2))
        if isinstance(server, StartedServer) and server.standing:
            server.standing.what = f"the replica of the {arm} arm"
        with to_its_end(server, volume.path):
            yield server
