"""connection_memory: memory of server, hop, kernel and client with more and more idle connections. I/O, no statistics.

Each arm has a fresh server, because a server keeps memory of connections that are closed, and a fresh agent. Their steps alternate. Three ramps
follow each other: the connections are opened, then each has one operation, then one large response.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterable, Iterator, Mapping

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
from ciphercost.prove.load_connections import as_proven
from ciphercost.provision import server_pairs
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

SETTLE_S = 0.1
"""Between a step and its measurement: a server closes what it needed for the handshake."""
LIMIT_S = 120.0
"""Seconds that the operations of one step may take."""
WARM, WARM_UP = STEPS, 8
"""The step of the connections that are open before the first level, and their number."""
PLACES = 1000
"""Directories of fresh servers begin here; those of storms lie below."""


def phase(
    session: Session, blocks: Iterator[Block], bench: PreparedCell, pair: ServerPair, proven: Mapping[Arm, Connected]
) -> Generator[None]:
    """The ramps of a session, without a pause: their servers are none of the session's. Nothing unless the cell has idle connections.

    `blocks`: their orders decide which arm goes first in two steps. `proven`: what each arm's proof negotiated.
    """
    most = bench.planned.idle_connections
    if not most:
        return
    session.display.phase(session.measured.number, session.number, "memory per connection")
    session.rest()
    sizes = [(number + 1) * most // STEPS - number * most // STEPS for number in range(STEPS)]
    with contextlib.ExitStack() as stack:
        sides: dict[Arm, Side] = {}
        for arm in pair.connect:
            stack.enter_context(bench.shared.apart())
            number = session.number * 2 * PLACES + PLACES + len(sides)
            fresh = server_pairs.start(bench, number, pair.server_cpus, pair.agent_cpus, tuple(pair.connect))
            agent = stack.enter_context(bench.agent(fresh))
            of = proven[arm if pair.side(arm) == "encrypted" else "encrypted"]
            sides[arm] = Side(arm, fresh, agent, of, session.measured.seed)
        programs = {"traffic": bench.program, "response": bench.program.with_large()}
        for side in sides.values():
            side.warm_up(programs.values())
        for moment in MOMENTS:
            if moment != "handshake":
                if (program := programs[moment]) is None:
                    break
                for side in sides.values():
                    side.agent.program(program.seeded(session.measured.seed))
            _ramp(session, blocks, sides, moment, sizes)
    yield


def _ramp(
    session: Session, blocks: Iterator[Block], sides: Mapping[Arm, Side], moment: Moment, sizes: list[int]
) -> None:
    """Bring all connections of both arms to a moment, step by step, and record the level after each step."""
    for arm in sides:
        _record(session, sides[arm], moment, 0)
    done = 0
    order: Iterator[Arm] = iter(())
    for step, size in enumerate(sizes):
        if step % 2 == 0:
            order = iter(next(blocks).arms[1:])
        done += size
        for arm in (next(order), next(order)):
            side = sides[arm]
            try:
                side.open(step, size) if moment == "handshake" else side.operate(step, size)
            except AgentError as error:
                raise RunError(f"idle connections, {arm} arm, {done} of {sum(sizes)}: {error}") from None
            time.sleep(SETTLE_S)
            _record(session, side, moment, done)


def _record(session: Session, side: Side, moment: Moment, connections: int) -> None:
    server, hop, client = (memory_pss(pids()) for pids in (side.server, side.hop, side.client))
    if not server:
        raise RunError("idle connections: the server's processes can't be seen from here, so its memory is unknown")
    session.measured.record.append_beside(
        MemoryLevel(
            cell=session.measured.number,
            session=session.number,
            arm=side.arm,
            moment=moment,
            connections=connections,
            server=server,
            client=client,
            hop=hop,
            kernel=tcp_bytes(side.ports),
        )
    )


class Side:
    """One arm's fresh server and the agent that holds its idle connections."""

    def __init__(self, arm: Arm, pair: ServerPair, agent: Agent, proven: Connected, seed: int) -> None:
        self.arm, self.agent = arm, agent
        self._pair, self._proven, self._seed = pair, proven, seed
        server = pair.by_arm[arm]
        ways = (
            pair.connect[arm].port,
            server.connection().port,
            *(way.get("port", 0) for way in server.other_ports.values()),
        )
        self.ports = {port for port in ways if port}
        """Of the connections to the hop and to the server."""

    def warm_up(self, programs: Iterable[Program | None]) -> None:
        """Let some connections go through all moments: what a server and an agent need once is in no slope. Raises AgentError, Unproven."""
        self.open(WARM, WARM_UP)
        for program in filter(None, programs):
            self.agent.program(program.seeded(self._seed))
            self.operate(WARM, WARM_UP)
            self.agent.program(msgspec.structs.replace(program, transactions=()))

    def open(self, step: int, size: int) -> None:
        """Open the connections of a step. Raises AgentError, Unproven."""
        answer = self.agent.connect(f"{self.arm}-{step}", self._pair.connect[self.arm] | {"connections": size})
        as_proven(self._pair, self.arm, answer, self._proven)

    def operate(self, step: int, size: int) -> None:
        """One operation on each connection of a step. Raises AgentError."""
        answer = self.agent.slice(f"{self.arm}-{step}", LIMIT_S, discard=0.0, seed=self._seed + step, operations=size)
        if answer.errors:
            raise AgentError(answer.first_error)

    def server(self) -> list[int]:
        server = self._pair.by_arm[self.arm]
        return [pid for root in (server.pid, *(server.volume.pids if server.volume else ())) for pid in tree(root)]

    def hop(self) -> list[int]:
        return [pid for root in self._pair.hop_pids(self.arm) for pid in tree(root)]

    def client(self) -> list[int]:
        return tree(self.agent.pid)
