"""Memory per connection: what a server is known to keep is found, in both arms, and a process that can't be seen is an error."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import hoarding_server
from ciphercost.engines import Server
from ciphercost.estimate import connection_memory as estimates
from ciphercost.host import sock_diag, socket_memory
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.measure import connection_memory
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.errors import RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule
from ciphercost.plan.connection_loads import STEPS
from ciphercost.provision.server_pair import ServerPair
from processes import wait_for

KEPT = 50_000
"""Bytes that the encrypted arm's server keeps for each connection."""
CONNECTIONS = 160
PLAIN = Connected(connections=1, encrypted=False, protocol="", cipher="")


class Hoarding(Server):
    """A server that keeps memory."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self._port = pid, port

    def connection(self) -> Connection:
        return Connection(driver="http", host="127.0.0.1", port=self._port)

    def stop(self) -> None:
        raise AssertionError


@contextlib.contextmanager
def hoarding(keep: int) -> Iterator[Hoarding]:
    argv = [sys.executable, hoarding_server.__file__, str(keep)]
    # With one arena of malloc's, so that what is kept is what is resident.
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "MALLOC_ARENA_MAX": "1"}
    ) as process:
        assert process.stdout is not None
        try:
            yield Hoarding(process.pid, int(process.stdout.readline()))
        finally:
            process.kill()


@pytest.fixture
def sides() -> Iterator[dict[Arm, connection_memory.Side]]:
    """Two servers without TLS, one of which keeps memory: the arms differ in nothing else."""
    with contextlib.ExitStack() as stack:
        by_arm = {}
        for arm, keep in zip(ARMS, (0, KEPT), strict=True):
            server, agent = stack.enter_context(hoarding(keep)), stack.enter_context(Agent())
            pair = ServerPair(
                connect={arm: server.connection()}, servers=[server], canary="", by_arm={arm: server}, in_clear=True
            )
            by_arm[arm] = connection_memory.Side(arm, pair, agent, PLAIN, 1)
        yield by_arm


def state(pid: int) -> str:
    """`R`: it runs or waits for a CPU; `S`: it waits for an event."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_fifty_kilobytes_for_each_connection_are_found_within_five_percent(
    sides: dict[Arm, connection_memory.Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = [side._pair.by_arm[arm].pid for arm, side in sides.items()]

    def settle(seconds: float) -> None:
        """On a busy machine, a server may not have accepted all connections yet."""
        time.sleep(seconds)
        wait_for("the servers to wait", lambda: all(state(pid) == "S" for pid in pids))

    monkeypatch.setattr(connection_memory, "time", SimpleNamespace(sleep=settle))
    program = workloads.prepare(workloads.get("idle-connections"), "http", {})
    levels = list(connection_memory.levels(sides, program, CONNECTIONS, schedule.blocks(1, 0, 1)))
    known = estimates.result(levels)
    assert known is not None
    assert (known.connections, known.steps) == (CONNECTIONS, STEPS)
    for moment in ("handshake", "traffic", "response"):
        added = known.added[moment]["server"]
        assert added.bytes == pytest.approx(KEPT, rel=0.05)
        assert added.low <= added.bytes <= added.high
        assert abs(known.arms["plain"][moment]["server"].bytes) < KEPT / 10


def test_a_server_whose_processes_are_gone_is_an_error(sides: dict[Arm, connection_memory.Side]) -> None:
    server = sides["plain"]._pair.by_arm["plain"]
    server.pid = 2**22  # no process has this number
    with pytest.raises(RunError, match="can't be seen"):
        sides["plain"].level("handshake", 0)


def test_buffers_of_sockets_are_counted_at_both_ends() -> None:
    with hoarding(0) as server, Agent() as agent:
        agent.connect("idle", server.connection())
        port = server.connection().port
        before = socket_memory.tcp_bytes({port})
        with socket.create_connection(("127.0.0.1", port)) as stuck:
            os.kill(server.pid, signal.SIGSTOP)  # it reads nothing
            try:
                stuck.sendall(b"x" * 100_000)
                assert socket_memory.tcp_bytes({port}) - before >= 100_000
            finally:
                os.kill(server.pid, signal.SIGCONT)


def test_a_kernel_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, sides: dict[Arm, connection_memory.Side]
) -> None:
    """Its buffers would else count as no bytes."""
    monkeypatch.setattr(sock_diag, "NETLINK_SOCK_DIAG", 31)
    with pytest.raises(OSError, match="not supported"):
        socket_memory.tcp_bytes({80})
    with pytest.raises(RunError, match=r"idle connections: the kernel does not list its sockets .* unknown"):
        sides["plain"].level("handshake", 0)
