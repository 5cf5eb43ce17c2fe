"""0-RTT on Caddy by HTTP/3: the first request of a resumed connection goes before its handshake is complete, the server's log
says so, and a server that takes none, or no longer, is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ciphercost.engines import Server, caddy
from ciphercost.engines._web.family import HTTP3
from ciphercost.host.datagram_relay import DatagramRelay
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve
from ciphercost.prove import witnesses
from conftest import RequireServer
from test_client_certificates import pair_of, server_witness
from web_servers import TLS, Site, program, site

BY_HTTP3 = {HTTP3: "on"}
EARLY = {"certificate": "ecdsa-p256", "resumption": "0-rtt"}
EARLY_SESSION = "HTTP/3.0 TLSv1.3 0-RTT"


@pytest.fixture(scope="module")
def home(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(require_server("caddy", "2.11"), tmp_path_factory.mktemp("logs"), {"/1KB": 1000}) as home:
        yield home


def fields(home: Site, server: Server, factors: Mapping[str, str] = EARLY) -> Connection:
    return home.fields(server, "encrypted", factors) | {"http": "3", "per_request": True}


@pytest.mark.parametrize(("connections", "threads"), [(1, 1), (3, 2)])
def test_the_first_request_of_a_resumed_connection_is_early(home: Site, connections: int, threads: int) -> None:
    with home.started(EARLY, settings=BY_HTTP3) as server, Agent() as agent:
        program(agent, "GET /1KB")
        answer = agent.connect("x", fields(home, server) | {"connections": connections, "threads": threads})
        assert (answer.protocol, answer.application, answer.verified) == ("TLSv1.3", "h3", True)
        done = agent.slice("x", 60, discard=0, operations=200)
        assert (done.operations, done.connects, done.errors, done.first_error) == (200, 200, 0, "")
        # A connection that was opened before the first ticket has none.
        assert done.early == done.resumed >= 200 - 2 * connections


def test_without_it_no_request_is_early_although_sessions_are_resumed(home: Site) -> None:
    tickets = EARLY | {"resumption": "tickets"}
    with home.started(tickets, settings=BY_HTTP3) as server, Agent() as agent:
        program(agent, "GET /1KB")
        agent.connect("x", fields(home, server, tickets))
        done = agent.slice("x", 60, discard=0, operations=100)
        assert (done.errors, done.early) == (0, 0)
        assert done.resumed >= 95
        assert [home.engine.sessions(server, agent, "x")[0][1] for _ in range(2)] == ["HTTP/3.0 TLSv1.3"] * 2


def test_the_servers_log_tells_an_early_request_from_others(home: Site) -> None:
    with home.started(EARLY, settings=BY_HTTP3) as server, Agent() as agent:
        agent.connect("x", fields(home, server))
        assert home.engine.sessions(server, agent, "x")[0][1] == "HTTP/3.0 TLSv1.3"
        others = set()
        for number in range(200):  # a busy server may complete a handshake before it looks at the request
            others.add(home.engine.sessions(server, agent, "x")[0][1])
            if EARLY_SESSION in others and number >= 9:
                break
        assert EARLY_SESSION in others
        assert others <= {"HTTP/3.0 TLSv1.3", EARLY_SESSION}


def test_a_server_that_takes_no_early_data_answers_after_the_handshake(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = caddy.configuration

    def without(config: Any) -> dict[str, Any]:
        configured = written(config)
        configured["apps"]["http"]["servers"]["tls"]["allow_0rtt"] = False
        return configured

    monkeypatch.setattr(caddy, "configuration", without)
    with home.started(EARLY, settings=BY_HTTP3) as server, Agent() as agent:
        program(agent, "GET /1KB")
        agent.connect("x", fields(home, server))
        done = agent.slice("x", 60, discard=0, operations=50)
        assert (done.operations, done.errors, done.early) == (50, 0, 0)
        assert home.engine.sessions(server, agent, "x")[0][1] == "HTTP/3.0 TLSv1.3"
        pair = pair_of(home, server, EARLY)
        pair.connect["encrypted"] |= {"http": "3"}
        proof = server_witness(witnesses.prove(home.engine, TLS, pair, agent, 1)[0])
    assert not proof.passed
    assert "of 10 resumed connections, no first request came before the handshake was complete (0-RTT)" in proof.detail


def test_a_server_that_no_longer_takes_the_ticket_costs_one_request(home: Site) -> None:
    """A server that was started anew has other keys for its tickets."""
    with (
        home.started(EARLY, settings=BY_HTTP3) as first,
        home.started(EARLY, settings=BY_HTTP3) as second,
        Moving(port_of(first)) as relay,
        Agent() as agent,
    ):
        program(agent, "GET /1KB")
        agent.connect("x", fields(home, first) | {"port": relay.port})
        done = agent.slice("x", 60, discard=0, operations=50)
        assert (done.operations, done.errors) == (50, 0)
        assert done.early > 0
        relay.move(port_of(second))
        done = agent.slice("x", 60, discard=0, operations=50)
        assert (done.errors, done.error_kinds.split("=")[0]) == (1, "closed-early")
        assert "0-RTT" in done.first_error
        done = agent.slice("x", 60, discard=0, operations=50)
        assert (done.operations, done.errors) == (50, 0)
        assert done.early > 0


def port_of(server: Server) -> int:
    port = server.other_ports["tls"]["port"]
    assert isinstance(port, int)
    return port


class Moving(DatagramRelay):
    """A relay that later leads to another server."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port)

    def move(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        # A new connection may come from a port that an earlier one had: to the relay it is the same client.
        for server in self._servers.values():
            server.connect(self._target)


@pytest.mark.parametrize(
    ("cell", "refusal"),
    [
        (
            CellSpec("caddy", "tls", workload="connect", factors={"resumption": "0-rtt"}),
            "by HTTP/3 only; write http=3 too",
        ),
        (CellSpec("caddy", "tls", workload="connect", factors={"resumption": "0-rtt", "http": "2"}), "by HTTP/3 only"),
        (
            CellSpec("nginx", "tls", workload="connect", factors={"resumption": "0-rtt", "http": "3"}),
            "nginx has no such option",
        ),
        (CellSpec("postgresql", "tls", factors={"resumption": "0-rtt"}), "never resumes a TLS session"),
    ],
    ids=["tcp", "http-2", "nginx", "postgresql"],
)
def test_where_nothing_can_be_early_it_is_refused(cell: CellSpec, refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        resolve(cell)
