"""hop_chain: starts the processes of a hop between client and server, and leads an arm's connections through them.

Cells of one experiment share a chain that they would configure alike. A second chain with the same settings, whose parts are
joined by relays that record bytes, is what the wire witness looks at: the chain that carries the load can't be led elsewhere
while it runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.hops import Stage, Wanted
from ciphercost.host.pki import Pki
from ciphercost.host.relay import Relay, moved
from ciphercost.host.supervisor import Process
from ciphercost.mechanisms import Route
from ciphercost.mechanisms.tls import Tls
from ciphercost.model.connection import Connection
from ciphercost.model.spec import Arm
from ciphercost.provision.delay import Address
from ciphercost.provision.route import Chain

if TYPE_CHECKING:
    from ciphercost.engines import Server
    from ciphercost.provision.prepared_cell import PreparedCell

STOP_SECONDS = 5.0


class HopWay:
    """How one arm's connections reach the server through a hop."""

    def __init__(
        self, bench: PreparedCell, route: Route, server: Server, straight: Mapping[Arm, Connection], cpus: set[int]
    ) -> None:
        """Start the chain that carries the load, until the end of the session.

        `straight`: the connection of each arm straight to the server, encrypted in the one and not in the other.
        """
        self.legs = route.legs
        self._bench = bench
        self._route = route
        self._server = server
        self._stages = route.hop.stages(route.ends)
        self._target = straight[_arm(encrypted=self.legs[-1])].address
        self._connection = straight[_arm(encrypted=self.legs[0])]
        self._installation = bench.servers.hop(route.hop)
        like = repr(
            (
                self._installation,
                self._stages,
                self._target,
                self._route.hop.name,
                bench.planned.conditions.listen,
                bench.factors["certificate"],
            )
        )
        self.chain = bench.shared.once(like, self._made(cpus, watched=False))

    @property
    def ends_tls(self) -> bool:
        """Whether a process of the hop ends TLS, or begins it."""
        return any(stage.accepts or stage.connects for stage in self._stages)

    @property
    def own_tls(self) -> str:
        return self._route.hop.own_tls if self.ends_tls else ""

    @contextmanager
    def watched(self) -> Iterator[Chain]:
        """A second chain of the same kind, which records what crosses each part of the way."""
        with self._made(None, watched=True) as chain:
            yield chain

    def connection(self, chain: Chain) -> Connection:
        """The arm's connection through this chain."""
        begins = HasTls.of(self._bench.engine).tls_begins
        at_once = self._stages[0].accepts and begins == "either" and not self._route.hop.speaks
        return moved(self._connection, *chain.address) | ({"tls_at_once": True} if at_once else {})

    @contextmanager
    def _made(self, cpus: set[int] | None, *, watched: bool) -> Iterator[Chain]:
        with ExitStack() as stack:
            at, processes, relays = self._target, list[Process](), list[Relay]()
            for stage in reversed(self._stages):
                if watched:
                    relays.insert(0, stack.enter_context(Relay(*at)))
                    at = ("127.0.0.1", relays[0].port)
                process, port = self._start(stage, at, cpus, stack)
                processes.insert(0, process)
                at = (self._bench.planned.conditions.listen, port)
            if watched:
                relays.insert(0, stack.enter_context(Relay(*at)))
                at = ("127.0.0.1", relays[0].port)
            title = f"{self._route.hop.title} {self._installation.version}"
            yield Chain(title, at, tuple(processes), tuple(relays))

    def _start(self, stage: Stage, target: Address, cpus: set[int] | None, stack: ExitStack) -> tuple[Process, int]:
        bench = self._bench
        directory = bench.directory / f"hop-{secrets.token_hex(4)}"
        directory.mkdir(mode=0o700)
        plain = self._server.connection()
        between = len(self._stages) > 1
        wanted = Wanted(
            stage=stage,
            target=target,
            engine=bench.engine.name,
            directory=directory,
            pki=_pki(bench, both_ends=between),
            user=plain.user or "",
            password=plain.password,
            clients=bench.shared.clients,
            address=bench.planned.conditions.listen,
            cpus=tuple(sorted(cpus)) if cpus else None,
            logs=bench.logs,
            mutual=between,
        )
        started = self._route.hop.start(self._installation, wanted, bench.supervisor)
        stack.callback(started.process.stop, STOP_SECONDS)
        return started.process, started.port


def ways(
    bench: PreparedCell, servers: Mapping[Arm, Server], straight: Mapping[Arm, Connection], cpus: set[int]
) -> dict[Arm, HopWay]:
    """The way of each arm that goes through a hop, whose processes are started on these CPUs. `straight`: the connection of each arm straight to the server."""
    routes = {arm: bench.mechanism.route(arm, bench.factors) for arm in servers}
    return {arm: HopWay(bench, route, servers[arm], straight, cpus) for arm, route in routes.items() if route}


def _pki(bench: PreparedCell, *, both_ends: bool) -> Pki:
    """The server's own certificate and authority; between two processes of a hop, one that serves both ends."""
    if not both_ends:
        assert isinstance(bench.mechanism, Tls)
        return bench.mechanism.pki(bench.factors, bench.shared.secrets, bench.planned.conditions.listen)
    kind = bench.factors["certificate"]
    return Pki(
        bench.shared.secrets / f"hop-{kind}", kind, reuse=True, both_ends=True, address=bench.planned.conditions.listen
    )


def _arm(*, encrypted: bool) -> Arm:
    return "encrypted" if encrypted else "plain"
