"""watch: whether all that a session's load needs still stands: supervisor, servers, hops, relay, link, FUSE daemons."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from ciphercost.engines import Server
from ciphercost.host.link import DEVICES, Link
from ciphercost.host.standing import Standing
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import Arm

LOOKS, SOON_SECONDS = 10, 0.02
"""After an error: a process that is killed closes its connections a moment before the kernel shows that it is dead."""


class Watch:
    """What the load of a session needs. An empty one finds nothing wrong."""

    def __init__(
        self,
        supervisor: Supervisor | None = None,
        servers: Mapping[Arm, Server] | None = None,
        helpers: Sequence[Standing] = (),
        link: Link | None = None,
    ) -> None:
        """`helpers`: processes of ours between client and server, or below it."""
        self._supervisor = supervisor
        self._servers = dict(servers or {})
        self._helpers = list(helpers)
        self._link = link
        self._replicas: list[Standing] = []
        self.arm: Arm | None = None
        """The arm whose load goes on; the other's server may be paused. None: no load yet."""

    def also(self, replica: Standing) -> None:
        """Watch a process that must live, but may be stopped for any time."""
        self._replicas.append(replica)

    def check(self) -> None:
        """Raise RunError, which names what died, if something did. Takes microseconds."""
        if self._supervisor is not None:
            self._supervisor.check()
        died = [server.died() for server in dict.fromkeys(self._servers.values())]
        others = (*self._helpers, *self._replicas)
        if problem := next(filter(None, (*died, *(other.died() for other in others))), ""):
            raise RunError(problem)
        if self._link is not None and not (DEVICES / self._link.device).exists():
            raise RunError(
                f"the link for --bandwidth, --mtu or --loss is gone: somebody removed its interface {self._link.device} during the measurement"
            )

    def look(self) -> None:
        """Do the same while an answer is awaited, and also raise RunError if something has been stopped for longer than a login may
        take. Call it about once a second.
        """
        self.check()
        if self._supervisor is not None:
            self._supervisor.check_answers()
        for standing in self._standing():
            standing.check_answers()

    def explained(self, steps: Iterator[None]) -> Iterator[None]:
        """A phase of a session: check after each of its steps, and say what died or is stopped instead of what came of it."""
        try:
            for _ in steps:
                self.look()
                yield
            self.look()
        except RunError as error:
            if type(error) not in (RunError, AgentError):
                raise
            for _ in range(LOOKS):
                self.check()
                time.sleep(SOON_SECONDS)
            if (stopped := self.stopped()) and stopped not in str(error):
                raise RunError(f"{error}; {stopped}") from error
            raise

    def stopped(self) -> str:
        """What is stopped (SIGSTOP) of all that the load needs, and what to do; empty: nothing is."""
        return next(filter(None, (standing.stopped() for standing in self._standing())), "")

    def _standing(self) -> list[Standing]:
        servers = [server for arm, server in self._servers.items() if self.arm in (None, arm)]
        return [*(server.standing for server in dict.fromkeys(servers) if server.standing), *self._helpers]
