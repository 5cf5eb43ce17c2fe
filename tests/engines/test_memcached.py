"""A real memcached: its commands, its TLS, and the witnesses with and without encryption."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Server
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.spec import Arm
from ciphercost.prove import witnesses
from ciphercost.provision.server_pair import ServerPair
from conftest import RequireServer

MEMCACHED, TLS = engines.get("memcached"), mechanisms.get("tls")
CANARY = "canary0123456789"
Home = tuple[Server, dict[Arm, dict[str, object]]]


@pytest.fixture(scope="module")
def home(require_server: RequireServer) -> Iterator[Home]:
    """A server with both ports, and how each arm connects."""
    installation, run_id = require_server("memcached"), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        MEMCACHED.initialise(installation, scratch / "data", run_supervisor)
        factors = TLS.check({})
        settings = TLS.server_settings(MEMCACHED, factors, scratch / "secrets")
        server = MEMCACHED.start(installation, scratch / "data", run_supervisor, settings=settings, logs=scratch)
        plain = TLS.connection(MEMCACHED, "plain", factors, scratch / "secrets")
        encrypted = TLS.connection(MEMCACHED, "encrypted", factors, scratch / "secrets")
        yield (
            server,
            {
                "plain": server.connection() | plain,
                "encrypted": {**server.connection(), **encrypted, **server.other_ports["tls"]},
            },
        )
        server.stop()


def prove(server: Server, connect: dict[Arm, dict[str, object]]) -> str:
    """Why the arms are not proven; empty: they are."""
    pair = ServerPair(connect, [server], CANARY, by_arm={"plain": server, "encrypted": server})
    with Agent() as agent:
        proofs, _ = witnesses.prove(MEMCACHED, TLS, pair, agent, 1)
    return witnesses.unproven(proofs, TLS, mute=MEMCACHED.mute)


def test_encryption_is_proven_by_wire_and_client(home: Home) -> None:
    assert prove(*home) == ""


def test_an_encrypted_arm_that_is_in_clear_is_not_proven(home: Home) -> None:
    server, connect = home
    assert "encrypted arm" in prove(server, {**connect, "encrypted": connect["plain"]})


def test_tls_at_the_port_in_clear_is_not_proven(home: Home) -> None:
    server, connect = home
    to_plain = connect["encrypted"] | {"port": connect["plain"]["port"]}
    assert "encrypted arm" in prove(server, {**connect, "encrypted": to_plain})


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_commands_and_their_replies(home: Home, arm: Arm) -> None:
    with Agent() as agent:
        answer = agent.connect(arm, **home[1][arm])
        assert (answer["encrypted"], answer["auth"]) == (arm == "encrypted", "password")
        assert str(answer["server_version"]).startswith("1.6.")
        assert agent.query(arm, "SET k 'two words'; GET k") == [["two words"]]
        assert agent.query(arm, "GET none") == [[None]]
        assert agent.query(arm, "DELETE k") == [["DELETED"]]
        assert agent.query(arm, "SET n 41; INCR n 1") == [["42"]]
        large = "x" * 500_000
        assert agent.query(arm, f"SET large {large}") == [["STORED"]]
        assert agent.query(arm, "GET large") == [[large]]
        with pytest.raises(AgentError) as caught:
            agent.query(arm, "SET huge " + "x" * (2 << 20))
        assert caught.value.code == "SERVER_ERROR"
        with pytest.raises(AgentError) as caught:
            agent.query(arm, "GETT k")
        assert caught.value.code == "ERROR"
        with pytest.raises(AgentError, match="does not know this command"):
            agent.query(arm, "GET 'a key'")
        assert str(agent.query(arm, "VERSION")[0][0]).startswith("VERSION 1.6.")


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_a_connection_for_each_query_ends_when_it_is_over(home: Home, arm: Arm) -> None:
    with Agent() as agent:
        agent.connect(arm, **home[1][arm], per_request=True)
        for _ in range(3):
            assert str(agent.query(arm, "VERSION", timeout=5)[0][0]).startswith("VERSION")


@pytest.mark.parametrize("per_request", [False, True])
def test_each_connection_begins_with_its_setup(home: Home, per_request: bool) -> None:
    fields = home[1]["plain"] | {"per_request": per_request}
    with Agent() as agent:
        agent.connect("plain", **fields, setup="VERSION; SET begun 'a; b'")
        assert agent.query("plain", "GET begun") == [["a; b"]]
        with pytest.raises(AgentError, match="setup: "):
            agent.connect("plain", **fields, setup="VERSION; GET 'never closed")


def test_a_wrong_password_is_refused(home: Home) -> None:
    with Agent() as agent, pytest.raises(AgentError, match="authentication failure"):
        agent.connect("plain", **home[1]["plain"] | {"password": "wrong"})


def test_it_has_tls_and_nothing_else() -> None:
    assert mechanisms.of(MEMCACHED) == ("tls", "none")
    assert not isinstance(MEMCACHED, StoresData)
    with pytest.raises(UsageError, match="memcached is started by ciphercost"):
        TakesUrl.of(MEMCACHED)
    with pytest.raises(UsageError, match="leave group=p256 out"):
        MEMCACHED.check_factors("tls", {"group": "p256"}, "")
