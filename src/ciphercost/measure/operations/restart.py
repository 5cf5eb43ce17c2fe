"""A restart after a crash: the server is killed with changes that no checkpoint has written, and started again on its data."""

from __future__ import annotations

import contextlib
import time

from ciphercost.engines._network import StartedServer
from ciphercost.host import deadlines
from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import ARMS, Arm


class RestartOperation(Operation):
    name = "restart"

    def __init__(self, context: OperationContext, stack: contextlib.ExitStack) -> None:  # noqa: ARG002
        self._context = context
        self._changes = int(context.bench.program.parameters["changes"])
        self._seeds = dict.fromkeys(ARMS, 0)
        """Of each arm's own: the changes before its n-th crash are those before the other arm's."""

    def prepare(self, arm: Arm) -> None:
        """Make the same number of changes in both arms, then kill the server. Raises AgentError if a change fails."""
        context = self._context
        self._seeds[arm] += 1
        agent, pair = context.agent, context.pair
        agent.connect(arm, pair.connect[arm])
        done = agent.slice(arm, deadlines.load(), discard=0.0, seed=self._seeds[arm], operations=self._changes)
        if done.errors:
            raise AgentError(done.first_error)
        agent.disconnect(arm)
        server = pair.by_arm[arm]
        assert isinstance(server, StartedServer)
        server.crash()
        context.sampler(arm).follow(0, ())
        context.empty_cache(arm)

    def execute(self, arm: Arm) -> Done:
        context = self._context
        bench, server = context.bench, context.pair.by_arm[arm]
        assert server.volume is not None
        place = bench.dataset.place(arm)
        began = time.monotonic()
        new = bench.start(place, server.volume, context.pair.server_cpus or None)
        took = time.monotonic() - began
        server.become(new)
        context.sampler(arm).follow(server.pid, server.cgroups)
        connection = server.connection()
        for connections in (context.pair.connect, context.pair.direct):
            connections[arm] |= {"host": connection.host, "port": connection.port}
        return Done(took)
