"""A real Valkey: its commands, its TLS, and the witnesses with and without encryption."""

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

VALKEY, TLS = engines.get("valkey"), mechanisms.get("tls")
CANARY = "canary0123456789"


@pytest.fixture(scope="module")
def home(require_server: RequireServer) -> Iterator[tuple[Server, dict[Arm, dict[str, object]]]]:
    """A server with both ports, and the fields that connect each arm."""
    installation, run_id = require_server("valkey"), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        VALKEY.initialise(installation, scratch / "data", run_supervisor)
        factors = TLS.check({})
        settings = TLS.server_settings(VALKEY, factors, scratch / "secrets")
        server = VALKEY.start(installation, scratch / "data", run_supervisor, settings=settings, logs=scratch)
        connect: dict[Arm, dict[str, object]] = {
            "plain": server.connection() | TLS.connection(VALKEY, "plain", factors, scratch / "secrets"),
            "encrypted": {
                **server.connection(),
                **TLS.connection(VALKEY, "encrypted", factors, scratch / "secrets"),
                **server.other_ports["tls"],
            },
        }
        yield server, connect
        server.stop()


def prove(server: Server, connect: dict[Arm, dict[str, object]]) -> str:
    """Return why the arms are not proven; empty: they are."""
    pair = ServerPair(connect, [server], CANARY, by_arm={"plain": server, "encrypted": server})
    with Agent() as agent:
        proofs, _ = witnesses.prove(VALKEY, TLS, pair, agent, 1)
    return witnesses.unproven(proofs, TLS, mute=VALKEY.mute)


def test_encryption_is_proven_by_wire_and_client(home: tuple[Server, dict[Arm, dict[str, object]]]) -> None:
    assert prove(*home) == ""


def test_an_unencrypted_encrypted_arm_is_not_proven(home: tuple[Server, dict[Arm, dict[str, object]]]) -> None:
    server, connect = home
    assert "encrypted arm" in prove(server, {**connect, "encrypted": connect["plain"]})


def test_tls_on_the_unencrypted_port_is_not_proven(home: tuple[Server, dict[Arm, dict[str, object]]]) -> None:
    server, connect = home
    to_plain = connect["encrypted"] | {"port": connect["plain"]["port"]}
    assert "encrypted arm" in prove(server, {**connect, "encrypted": to_plain})


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_commands_and_their_replies(home: tuple[Server, dict[Arm, dict[str, object]]], arm: Arm) -> None:
    with Agent() as agent:
        answer = agent.connect(arm, **home[1][arm])
        assert (answer["encrypted"], answer["auth"]) == (arm == "encrypted", "password")
        assert str(answer["server_version"]).startswith("8.")
        assert agent.query(arm, "SET k 'two words'; GET k") == [["two words"]]
        assert agent.query(arm, "GET none") == [[None]]
        assert agent.query(arm, "DEL k") == [["1"]]
        assert agent.query(arm, "EVAL \"return {1, {'a'}, false}\" 0") == [["1"], ["a"], [None]]
        assert agent.query(arm, f"EVAL \"return string.rep('x', ARGV[1])\" 0 {1 << 20}") == [["x" * (1 << 20)]]
        with pytest.raises(AgentError) as caught:
            agent.query(arm, "GETT k")
        assert caught.value.code == "ERR"
        assert agent.query(arm, "PING") == [["PONG"]]


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_a_connection_for_each_query_ends_when_it_is_over(
    home: tuple[Server, dict[Arm, dict[str, object]]], arm: Arm
) -> None:
    """Unencrypted, the server closes a connection only after QUIT; without it each following one waits for the
    deadline."""
    with Agent() as agent:
        agent.connect(arm, **home[1][arm], per_request=True)
        for _ in range(3):
            assert agent.query(arm, "PING", timeout=5) == [["PONG"]]


@pytest.mark.parametrize("per_request", [False, True])
def test_each_connection_begins_with_its_setup(
    home: tuple[Server, dict[Arm, dict[str, object]]], per_request: bool
) -> None:
    fields = home[1]["plain"] | {"per_request": per_request}
    with Agent() as agent:
        agent.connect("plain", **fields, setup="SELECT 1; SET begun 'a; b'")
        assert agent.query("plain", "SELECT 1; GET begun") == [["a; b"]]
        with pytest.raises(AgentError, match="setup: "):
            agent.connect("plain", **fields, setup="PING; ECHO 'never closed")


def test_a_wrong_password_is_refused(home: tuple[Server, dict[Arm, dict[str, object]]]) -> None:
    with Agent() as agent, pytest.raises(AgentError) as caught:
        agent.connect("plain", **home[1]["plain"] | {"password": "wrong"})
    assert caught.value.code == "WRONGPASS"


def test_it_has_tls_and_nothing_else() -> None:
    assert mechanisms.of(VALKEY) == ("tls", "none")
    assert not isinstance(VALKEY, StoresData)
    with pytest.raises(UsageError, match="valkey is started by ciphercost"):
        TakesUrl.of(VALKEY)
    with pytest.raises(UsageError, match="leave group=p256 out"):
        VALKEY.check_factors("tls", {"group": "p256"}, "")
