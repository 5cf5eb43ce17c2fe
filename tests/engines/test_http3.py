"""nginx by HTTP/3: the same bytes as by HTTP/1.1, what its log states, every setting of TLS, and what can go wrong."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import ask, raw
from ciphercost.engines import Server
from ciphercost.engines._web.family import HTTP3
from ciphercost.host.ports import free_port
from ciphercost.host.tls_names import GROUPS, KEYS, suite
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError
from conftest import RequireServer
from processes import wait_for
from web_servers import TLS, Site, program, site

BY_HTTP3 = {HTTP3: "on"}
EC = {"certificate": "ecdsa-p256"}
BOTH = {0, 1} & os.sched_getaffinity(0) or None
SESSION = ["t", "HTTP/3.0 TLSv1.3", "TLS_AES_256_GCM_SHA384"]


@pytest.fixture(scope="module")
def home(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    documents = {"/1KB": 1000, "/100KB": 100_000, "/empty": 0}
    with site(require_server("nginx", "1.26"), tmp_path_factory.mktemp("logs"), documents) as home:
        yield home


@pytest.fixture(scope="module")
def server(home: Site) -> Iterator[Server]:
    with home.started(EC, settings=BY_HTTP3) as started:
        yield started


def fields(home: Site, server: Server, factors: dict[str, str] | None = None) -> Connection:
    return home.fields(server, "encrypted", factors or EC) | {"http": "3"}


def test_it_answers_with_the_same_bytes_as_by_http_1(home: Site, server: Server) -> None:
    with Agent() as agent:
        program(agent, "GET /1KB", "GET /100KB", "GET /empty", "HEAD /100KB", "POST /1KB a=1&b=2", "DELETE /1KB")
        seen = set()
        added_: dict[str, Changes] = {"plain": {}, "encrypted": {"http": "3"}}
        for arm, added in added_.items():
            answer = agent.connect(arm, home.fields(server, arm, EC) | added)
            assert answer.application == ("h3" if added else "http/1.1")
            done = agent.slice(arm, 60, discard=0, operations=20)
            assert (done.rows, done.errors, done.first_error, done.connects) == (120, 0, "", 0)
            seen.add(done.checksum)
            assert agent.query(arm, "GET /nowhere")[0][0] == "404"
        assert len(seen) == 1


@pytest.mark.parametrize(("connections", "threads"), [(1, 1), (3, 3), (9, 2)])
@pytest.mark.parametrize("per_request", [False, True])
def test_several_connections_lose_nothing_and_count_their_datagrams(
    home: Site, connections: int, threads: int, per_request: bool
) -> None:
    with home.started(EC, settings=BY_HTTP3, cpus=BOTH) as started, Agent(cpus=BOTH) as agent:
        program(agent, "GET /100KB")
        many: Changes = {"connections": connections, "threads": threads, "per_request": per_request}
        agent.connect("many", fields(home, started) | many)
        assert home.engine.sessions(started, agent, "many", everywhere=True) == [SESSION] * connections
        done = agent.slice("many", 60, discard=0, operations=60)
        assert (done.operations, done.errors, done.first_error) == (60, 0, "")
        assert done.connects == (60 if per_request else 0)
        # No datagram has more than 1472 bytes, and a response has 100,000.
        assert 60 * 100_000 < done.bytes_received <= 1472 * done.segments_received
        assert 0 < done.bytes_sent <= 1472 * done.segments_sent


@pytest.mark.parametrize("certificate", ["rsa2048", "ecdsa-p256", "mldsa65"])
def test_the_log_states_what_the_client_negotiated(home: Site, certificate: str) -> None:
    given = {"certificate": certificate, "client-cert": "on"}
    with home.started(given, settings=BY_HTTP3) as started, Agent() as agent:
        # Those that the server prefers to offer; MLKEM768 alone is none of them.
        for group in ("x25519", "p256", "p384", "x25519mlkem768") if certificate == "ecdsa-p256" else ("p384",):
            for cipher in ("aes256-gcm", "aes128-gcm", "chacha20"):
                factors = given | {"group": group, "cipher": cipher}
                answer = agent.connect("x", fields(home, started, factors))
                wanted = suite(TLS.check(factors))
                assert (answer.protocol, answer.cipher, answer.group) == ("TLSv1.3", wanted, GROUPS[group])
                assert (answer.peer_key, answer.verified) == (KEYS[certificate], True)
                assert home.engine.sessions(started, agent, "x") == [["t", "HTTP/3.0 TLSv1.3", wanted, "SUCCESS"]]
        bare = fields(home, started, given) | {"tls_certificate": None, "tls_key": None}
        # nginx tells a client without a certificate so, by a status.
        agent.connect("x", bare)
        assert agent.query("x", "GET /1KB")[0][0] == "400"


@pytest.mark.parametrize("resumption", ["off", "tickets", "cache"])
def test_the_log_has_the_share_of_sessions_that_were_resumed(home: Site, resumption: str) -> None:
    given = EC | {"resumption": resumption}
    with home.started(given, settings=BY_HTTP3) as started, Agent() as agent:
        program(agent, "GET /1KB")
        agent.connect("x", fields(home, started, given) | {"connections": 2, "per_request": True})
        done = agent.slice("x", 60, discard=0, operations=100)
        assert (done.operations, done.connects, done.errors) == (100, 100, 0)
        total = [0, 0]

        def heard() -> bool:
            for number, more in enumerate(started.handshakes()):
                total[number] += more
            return sum(total) >= 100

        wait_for("the log of every handshake", heard)
        assert total == [100 - done.resumed, done.resumed]
        assert done.resumed == 0 if resumption == "off" else done.resumed >= 95


def test_a_connection_that_the_server_has_closed_is_opened_again(home: Site) -> None:
    with home.started(EC, settings=BY_HTTP3) as started, Agent() as agent:
        config = Path(started.directory or "") / "nginx.conf"
        text = config.read_text().replace("keepalive_requests 1000000000;", "keepalive_requests 10;")
        assert "keepalive_requests 10;" in text
        config.write_text(text)
        before = workers(started)
        os.kill(started.pid, signal.SIGHUP)
        # A worker that is on its way out answers a new connection with CONNECTION_CLOSE.
        wait_for("workers with the new configuration", lambda: bool(now := workers(started)) and not now & before)
        program(agent, "GET /1KB")
        agent.connect("x", fields(home, started))
        done = agent.slice("x", 60, discard=0, operations=50)
        assert (done.operations, done.errors, done.first_error, done.connects) == (50, 0, "", 4)


def workers(server: Server) -> set[str]:
    return set(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split())


# ── what can go wrong ─────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(agent: Agent, given: Connection) -> str:
    with pytest.raises(AgentError) as caught:
        agent.connect("x", given)
    return str(caught.value)


def test_a_port_without_http3_is_named(home: Site) -> None:
    with home.started(EC) as started, Agent() as agent:
        message = refusal(agent, fields(home, started))
        assert "by UDP" in message
        assert "no HTTP/3 on this port" in message


def test_a_port_that_never_answers_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, Agent() as agent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        given = Connection(driver="http", host="127.0.0.1", port=port, http="3", tls="require")
        message = refusal(agent, given | {"timeout": 0.5})
        assert "no answer from 127.0.0.1" in message or "login within 0.5 s" in message


def test_a_wrong_certificate_or_cipher_is_refused_as_by_tcp(home: Site, server: Server) -> None:
    with Agent() as agent:
        changes: list[tuple[Changes, str]] = [
            ({"tls_server_name": "elsewhere.example"}, "name mismatch"),
            ({"tls_ca": "/etc/ssl/certs/ca-certificates.crt"}, "signed by an unknown authority"),
            ({"tls_groups": GROUPS["mlkem768"]}, "refused the TLS handshake: handshake failure"),
        ]
        for change, reason in changes:
            if (ca := change.get("tls_ca")) and not Path(ca).exists():
                continue
            assert reason in refusal(agent, fields(home, server) | change), change
        # The agent goes on.
        assert agent.connect("x", fields(home, server)).verified


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tls": "off"}, "HTTP/3 is always encrypted"),
        ({"tls_min": "1.2", "tls_max": "1.2"}, "HTTP/3 needs TLS 1.3"),
        ({"clear_port": 80}, "HTTP/3 has no unencrypted form"),
        ({"http": "4"}, "4"),
    ],
)
def test_a_connection_that_can_not_be_is_refused_at_once(change: dict[str, object], reason: str) -> None:
    given = Connection(driver="http", host="127.0.0.1", port=free_port(), http="3", tls="require")
    with Agent() as agent:
        with pytest.raises(AgentError) as caught:
            ask(agent, raw("x", given) | change)
        assert reason in str(caught.value)
