"""Servers on another address than 127.0.0.1 (`--listen`): reached there alone, and verified by that address."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.engines import Engine
from ciphercost.host import link
from ciphercost.host.procfs import tree
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import ARMS
from conftest import RequirePossible, RequireServer
from listening_servers import CANARY, FAR, NEAR, Listening, neighbour, started
from processes import marked, opened

SERVERS = ["postgresql", "mysql", "mariadb", "firebird", "nginx", "apache", "valkey", "redis", "memcached"]
ELSEWHERE = "127.0.0.2"
"""An address of every machine that has loopback. No server of ciphercost's listens there by itself."""
CLIENT = {"postgresql": "SELECT inet_client_addr()", "mysql": "SELECT SUBSTRING_INDEX(USER(), '@', -1)"}
"""By server: the address from which it sees the client connect."""
LOGINS = [name for name in SERVERS if name not in ("nginx", "apache")]
RECOVERABLE = ("mysql", "valkey", "redis", "memcached")
"""Servers to which an unencrypted login shows the password, or would show it to an impostor."""


@pytest.fixture(scope="module", params=SERVERS)
def elsewhere(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Listening]:
    with started(require_server(request.param), ELSEWHERE, tmp_path_factory.mktemp("logs")) as elsewhere:
        yield elsewhere


def listening(server: Listening) -> set[tuple[str, int]]:
    """(address as the kernel writes it, port) of every socket on which this server, or whatever else its run started, listens."""
    inodes = {inode for process in {*tree(server.server.pid), *marked(server.run_id)} for inode in opened(process)}
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for fields in map(str.split, Path(table).read_text().splitlines()[1:]):
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                sockets.add((address, int(port, 16)))
    return sockets


def assert_echoed(engine: Engine, agent: Agent, arm: str) -> None:
    """Check that the server sends the canary back, in rows or in a refusal."""
    if engine.echoes_in_errors:
        with pytest.raises(AgentError, match=CANARY):
            agent.query(arm, engine.echo(CANARY))
    else:
        assert all(engine.echoed(agent.query(arm, engine.echo(CANARY)), CANARY))


def test_it_listens_there_alone(elsewhere: Listening) -> None:
    sockets = listening(elsewhere)
    assert {address for address, _ in sockets} == {"0200007F"}
    assert {fields.port for fields in elsewhere.connect.values()} <= {port for _, port in sockets}
    for _, port in sockets:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
            # Another test's server may have the same port on that address.
            assert {address for address, own in listening(elsewhere) if own == port} == {"0200007F"}


def test_both_arms_reach_it_there_and_the_certificate_names_the_address(elsewhere: Listening) -> None:
    engine = elsewhere.engine
    with Agent() as agent:
        for arm in ARMS:
            fields = elsewhere.connect[arm]
            assert fields.host == ELSEWHERE
            assert not fields.trusted  # it is this machine's own loopback
            answer = agent.connect(arm, fields)
            assert answer.encrypted == (arm == "encrypted")
            assert_echoed(engine, agent, arm)
        if engine.name == "firebird":
            return  # its encryption knows no certificate
        assert answer.verified
        with pytest.raises(AgentError, match=r"(?i)certificate|mismatch"):
            agent.connect("other", elsewhere.connect["encrypted"] | {"tls_server_name": "127.0.0.3"})


@pytest.mark.parametrize("name", SERVERS)
def test_it_is_reached_over_tls_from_another_network_namespace_by_its_own_address(
    name: str, require_server: RequireServer, require_possible: RequirePossible, tmp_path: Path
) -> None:
    installation = require_server(name)
    require_possible(link.check_rights)
    with neighbour() as place, started(installation, NEAR, tmp_path) as near, Agent(netns=place) as agent:
        assert {address for address, _ in listening(near)} == {"014D12C6"}
        assert near.connect["plain"].trusted == (name in LOGINS)
        if name in RECOVERABLE:
            careful = near.connect["plain"] | {"trusted": False}
            with pytest.raises(AgentError, match="unencrypted"):
                agent.connect("plain", careful)
        # The unencrypted login comes first, when no server remembers a password yet.
        for arm in ARMS:
            assert near.connect[arm].host == NEAR
            answer = agent.connect(arm, near.connect[arm])
            assert answer.encrypted == (arm == "encrypted")
            assert_echoed(near.engine, agent, arm)
            if statement := CLIENT.get(name):
                assert agent.query(arm, statement) == [[FAR]]
        assert answer.verified == (name != "firebird")
