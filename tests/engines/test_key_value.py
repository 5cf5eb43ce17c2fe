"""A real Valkey and a real memcached: their commands, their TLS, and the witnesses with and without encryption."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import Secret
from ciphercost.model.spec import Arm
from ciphercost.prove import witnesses
from ciphercost.provision.server_pair import ServerPair
from conftest import RequireServer

NAMES = ["valkey", "redis", "memcached"]
TLS = mechanisms.get("tls")
CANARY = "canary0123456789"
NO_OPERATION = {"valkey": "PING", "redis": "PING", "memcached": "VERSION"}
REPLY = {"valkey": "PONG", "redis": "PONG", "memcached": "VERSION 1.6."}
"""What its reply begins with."""
OLDEST_VERSION = {"valkey": "8.", "redis": "8.", "memcached": "1.6."}


class Store(msgspec.Struct):
    """A server with both ports, and the fields that connect each arm."""

    engine: Engine
    server: Server
    connect: dict[Arm, Connection]

    def prove(self, **connect: Connection) -> str:
        """Why the arms, with these fields replaced, are not proven; empty: they are."""
        fields: dict[Arm, Connection] = {**self.connect, **connect}  # type: ignore[dict-item]
        pair = ServerPair(fields, [self.server], CANARY, by_arm={"plain": self.server, "encrypted": self.server})
        with Agent() as agent:
            proofs, _ = witnesses.prove(self.engine, TLS, pair, agent, 1)
        return witnesses.unproven(proofs, TLS, mute=self.engine.mute)


@pytest.fixture(scope="module", params=NAMES)
def store(request: pytest.FixtureRequest, require_server: RequireServer) -> Iterator[Store]:
    engine = engines.get(request.param)
    installation, run_id = require_server(engine.name), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        factors = TLS.check({})
        settings = TLS.server_settings(engine, factors, scratch / "secrets")
        server = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=scratch)
        )
        plain, encrypted = (TLS.connection(engine, arm, factors, scratch / "secrets") for arm in ("plain", "encrypted"))
        yield Store(
            engine,
            server,
            {
                "plain": (server.connection() | plain),
                "encrypted": (server.connection() | encrypted | server.other_ports["tls"]),
            },
        )
        server.stop()


def test_encryption_is_proven_by_wire_and_client(store: Store) -> None:
    assert store.prove() == ""


def test_the_server_is_confined(store: Store) -> None:
    """As every server that `host/launch.py` starts; what that means is in test_confinement.py."""
    assert "NoNewPrivs:\t1" in Path(f"/proc/{store.server.pid}/status").read_text()


def test_an_unencrypted_encrypted_arm_is_not_proven(store: Store) -> None:
    assert "encrypted arm" in store.prove(encrypted=store.connect["plain"])


def test_tls_on_the_unencrypted_port_is_not_proven(store: Store) -> None:
    to_plain = store.connect["encrypted"] | {"port": store.connect["plain"].port}
    assert "encrypted arm" in store.prove(encrypted=to_plain)


def code(agent: Agent, arm: Arm, command: str) -> str:
    """The code with which a command is refused."""
    with pytest.raises(AgentError) as caught:
        agent.query(arm, command)
    return caught.value.code


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_commands_and_their_replies(store: Store, arm: Arm) -> None:
    name = store.engine.name
    with Agent() as agent:
        answer = agent.connect(arm, store.connect[arm])
        assert (answer.encrypted, answer.auth) == (arm == "encrypted", "password")
        assert str(answer.server_version).startswith(OLDEST_VERSION[name])
        assert agent.query(arm, "SET k 'two words'; GET k") == [["two words"]]
        assert agent.query(arm, "GET none") == [[None]]
        large = "x" * 500_000
        assert agent.query(arm, f"SET large {large}; GET large") == [[large]]
        if name in ("valkey", "redis"):
            assert agent.query(arm, "DEL k") == [["1"]]
            assert agent.query(arm, "EVAL \"return {1, {'a'}, false}\" 0") == [["1"], ["a"], [None]]
            assert agent.query(arm, f"EVAL \"return string.rep('x', ARGV[1])\" 0 {1 << 20}") == [["x" * (1 << 20)]]
            assert code(agent, arm, "GETT k") == "ERR"
        else:
            assert agent.query(arm, "DELETE k") == [["DELETED"]]
            assert agent.query(arm, "SET n 41; INCR n 1") == [["42"]]
            assert code(agent, arm, "SET huge " + "x" * (2 << 20)) == "SERVER_ERROR"
            assert code(agent, arm, "GETT k") == "ERROR"
            with pytest.raises(AgentError, match="does not know this command"):
                agent.query(arm, "GET 'a key'")
        assert str(agent.query(arm, NO_OPERATION[name])[0][0]).startswith(REPLY[name])


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_a_connection_for_each_query_ends_when_it_is_over(store: Store, arm: Arm) -> None:
    """Unencrypted, a server closes a connection only after the agent's goodbye; without it each following one waits for
    the deadline."""
    name = store.engine.name
    with Agent() as agent:
        agent.connect(arm, store.connect[arm] | {"per_request": True})
        for _ in range(3):
            assert str(agent.query(arm, NO_OPERATION[name], timeout=60)[0][0]).startswith(REPLY[name])


@pytest.mark.parametrize("per_request", [False, True])
def test_each_connection_begins_with_its_setup(store: Store, per_request: bool) -> None:
    fields, first = store.connect["plain"] | {"per_request": per_request}, NO_OPERATION[store.engine.name]
    with Agent() as agent:
        agent.connect("plain", fields | {"setup": f"{first}; SET begun 'a; b'"})
        assert agent.query("plain", f"{first}; GET begun") == [["a; b"]]
        with pytest.raises(AgentError, match="setup: "):
            agent.connect("plain", fields | {"setup": f"{first}; GET 'never closed"})


def test_a_wrong_password_is_refused(store: Store) -> None:
    words = {"valkey": "WRONGPASS", "redis": "WRONGPASS", "memcached": "authentication failure"}[store.engine.name]
    with Agent() as agent, pytest.raises(AgentError) as caught:
        agent.connect("plain", store.connect["plain"] | {"password": Secret("wrong")})
    assert words in f"{caught.value.code}: {caught.value}"


@pytest.mark.parametrize("name", NAMES)
def test_what_it_has_beside_tls(name: str) -> None:
    engine = engines.get(name)
    assert isinstance(engine, StoresData) == (name != "memcached")
    assert [mechanism for mechanism in mechanisms.of(engine) if mechanism not in mechanisms.of(engine, "rest")] == [
        "tls",
        "hop",
        "none",
    ]
    assert TakesUrl.of(engine).urls == 2
    with pytest.raises(UsageError, match="leave group=p256 out"):
        engine.check_factors("tls", {"group": "p256"}, "")
