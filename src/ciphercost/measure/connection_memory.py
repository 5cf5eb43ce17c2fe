"""connection_memory: memory of server, hop, kernel and client with more and more idle connections. I/O, no statistics.

Each arm has a fresh server, because a server keeps memory of connections that are closed, and a fresh agent. Their steps alternate. Three ramps
follow each other: the connections are opened, then each has one operation, then one large response.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping

import msgspec

from ciphercost.host.procfs import memory_pss, tree
from ciphercost.host.socket_memory import tcp_bytes
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.measure.session import Session
from ciphercost.model.connection import Connected
from ciphercost.model.connection_memory import MOMENTS, MemoryLevel, Moment
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.slices import Block
from ciphercost.model.spec import Arm
from ciphercost.plan.connection_loads import STEPS
from ciphercost.prove.load_connections import as_proven, proof_of
from ciphercost.provision import server_pairs
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

SETTLE_S = 0.1
"""Between a step and its measurement: a server closes what it needed for the handshake."""
LIMIT_S = 120.0
"""Seconds that the operations of one step may take."""
WARM, WARM_UP = STEPS, 8
"""The step of the connections that are open before the first level, and their number."""


def phase(
    session: Session, blocks: Iterator[Block], bench: PreparedCell, pair: ServerPair, proven: Mapping[Arm, Connected]
) -> Generator[None]:
    """The ramps of a session, without a pause: their servers are none of the session's. Nothing unless the cell has idle connections.

    `blocks`: their orders decide which arm goes first in two steps. `proven`: what each arm's proof negotiated.
    """
    most, measured = bench.planned.idle_connections, session.measured
    if not most:
        return
    session.display.phase(measured.number, session.number, "memory per connection")
    session.rest()
    with contextlib.ExitStack() as stack:
        sides: dict[Arm, Side] = {}
        for arm in pair.connect:
            stack.enter_context(bench.shared.apart())
            name = f"{session.number}-memory{len(sides)}"
            fresh = server_pairs.start(bench, name, pair.server_cpus, pair.agent_cpus, tuple(pair.connect))
            agent = stack.enter_context(bench.agent(fresh))
            sides[arm] = Side(arm, fresh, agent, proof_of(pair, arm, proven), measured.seed)
        for level in levels(sides, bench.program, most, blocks):
            measured.record.append_beside(msgspec.structs.replace(level, cell=measured.number, session=session.number))
    yield


def levels(sides: Mapping[Arm, Side], program: Program, most: int, blocks: Iterator[Block]) -> Iterator[MemoryLevel]:
    """The levels of all ramps, up to `most` connections of each arm, as of cell 0 and session 1. Raises RunError, Unproven."""
    programs: dict[Moment, Program | None] = {"traffic": program, "response": program.with_large()}
    for side in sides.values():
        with _told(side, WARM_UP, WARM_UP):
            side.warm_up(programs)
    sizes = [(number + 1) * most // STEPS - number * most // STEPS for number in range(STEPS)]
    for moment in MOMENTS:
        if moment != "handshake":
            if (used := programs[moment]) is None:
                return
            for side in sides.values():
                side.run(used)
        yield from (side.level(moment, 0) for side in sides.values())
        done = 0
        order: Iterator[Arm] = iter(())
        for step, size in enumerate(sizes):
            if step % 2 == 0:
                order = iter(next(blocks).arms[1:])
            done += size
            for arm in (next(order), next(order)):
                with _told(sides[arm], done, most):
                    sides[arm].go(moment, step, size)
                time.sleep(SETTLE_S)
                yield sides[arm].level(moment, done)


@contextlib.contextmanager
def _told(side: Side, done: int, most: int) -> Iterator[None]:
    """Say at how many connections an agent's request failed."""
    try:
        yield
    except AgentError as error:
        raise RunError(f"idle connections, {side.arm} arm, {done} of {most}: {error}") from None


class Side:
    """One arm's fresh server and the agent that holds its idle connections."""

    def __init__(self, arm: Arm, pair: ServerPair, agent: Agent, proven: Connected, seed: int) -> None:
        self.arm = arm
        self._pair, self._agent, self._proven, self._seed = pair, agent, proven, seed
        server = pair.by_arm[arm]
        ways = (
            pair.connect[arm].port,
            server.connection().port,
            *(way.get("port", 0) for way in server.other_ports.values()),
        )
        self._ports = {port for port in ways if port}
        """Of the connections to the hop and to the server."""

    def warm_up(self, programs: Mapping[Moment, Program | None]) -> None:
        """Let some connections go through all moments: what a server and an agent need once is in no slope. Raises AgentError, Unproven."""
        self.go("handshake", WARM, WARM_UP)
        for moment, program in programs.items():
            if program is not None:
                self.run(program)
                self.go(moment, WARM, WARM_UP)
                # Connections that open later must not prepare its statements.
                self.run(msgspec.structs.replace(program, transactions=()))

    def run(self, program: Program) -> None:
        """The operation of the steps from now on."""
        self._agent.program(program.seeded(self._seed))

    def go(self, moment: Moment, step: int, size: int) -> None:
        """Open the connections of a step, or let each have one operation. Raises AgentError, Unproven."""
        name = f"{self.arm}-{step}"
        if moment == "handshake":
            answer = self._agent.connect(name, self._pair.connect[self.arm] | {"connections": size})
            as_proven(self._pair, self.arm, answer, self._proven)
            return
        done = self._agent.slice(name, LIMIT_S, discard=0.0, seed=self._seed + step, operations=size)
        if done.errors:
            raise AgentError(done.first_error)

    def level(self, moment: Moment, connections: int) -> MemoryLevel:
        """What this arm's processes hold now. Raises RunError."""
        server = self._pair.by_arm[self.arm]
        roots = (server.pid, *(server.volume.pids if server.volume else ()))
        held = memory_pss(pid for root in roots for pid in tree(root))
        if not held:
            raise RunError("idle connections: the server's processes can't be seen from here, so its memory is unknown")
        try:
            kernel = tcp_bytes(self._ports)
        except OSError as error:
            raise RunError(
                f"idle connections: the kernel does not list its sockets ({error.strerror or error}), so the memory of their buffers is unknown"
            ) from None
        return MemoryLevel(
            cell=0,
            session=1,
            arm=self.arm,
            moment=moment,
            connections=connections,
            server=held,
            client=memory_pss(tree(self._agent.pid)),
            hop=memory_pss(pid for root in self._pair.hop_pids(self.arm) for pid in tree(root)),
            kernel=kernel,
        )
