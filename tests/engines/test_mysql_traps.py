"""Ways in which MySQL and MariaDB seem encrypted and are not, or in which the arms differ in more than encryption.

Each test provokes one on a real server; the witnesses must detect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost.engines import Server
from ciphercost.engines._mysql.family import USER
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host.relay import Relay
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Changes, Connected, Connection
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import client_witness, load_connections, probe, session_witness, wire_witness, witnesses
from conftest import RequireServer
from mysql_servers import CANARY, OFF, SERVERS, TLS, ServerCopies, server_copies


@pytest.fixture(scope="module", params=SERVERS)
def home(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerCopies]:
    name, _, version = request.param.partition("@")
    with server_copies(require_server(name, version), tmp_path_factory.mktemp("logs")) as home:
        yield home


@pytest.fixture(scope="module")
def with_tls(home: ServerCopies) -> Iterator[Server]:
    with home.started(certificate="ecdsa-p256") as server:
        yield server


@pytest.fixture(scope="module")
def without_tls(home: ServerCopies) -> Iterator[Server]:
    with home.started(OFF[home.engine.name] | {"socket": "s"}) as server:
        yield server


def only(home: ServerCopies, name: str) -> None:
    if home.engine.name != name:
        pytest.skip(f"only {name} has this trap")


def hear(home: ServerCopies, server: Server, **factors: str) -> list[Proof]:
    with Agent() as agent:
        return witnesses.prove(home.engine, TLS, home.pair(server, **factors), agent, 1)[0]


# ── falling back to an unencrypted connection ─────────────────────────────────────────────────────────────────────────


def test_a_client_that_prefers_tls_falls_back_silently_but_the_agent_does_not(
    home: ServerCopies, without_tls: Server
) -> None:
    lenient = {
        "mysql": ["--ssl-mode=PREFERRED", "--get-server-public-key"],
        "mariadb": ["--ssl", "--skip-ssl-verify-server-cert"],
    }
    done = home.client(without_tls, EncryptsConnections.of(home.engine).tls_witness, *lenient[home.engine.name])
    assert (done.returncode, done.stdout.strip()) == (0, "f")  # TLS was requested, and the client gave no warning
    for verify in ("full", "ca", "require"):
        proofs = hear(home, without_tls, verify=verify)
        assert [proof.witness for proof in proofs if proof.arm == "encrypted"] == ["client"]
        reason = witnesses.unproven(proofs, TLS)
        assert "client witness, encrypted arm: " in reason
        assert "does not offer TLS" in reason
        assert "tls" in [proof.code for proof in proofs]
    with pytest.raises(Unproven, match=r"client witness, encrypted arm: .*not offer TLS"):
        witnesses.require(proofs, TLS)


def test_with_tls_on_the_server_all_witnesses_confirm_both_arms(home: ServerCopies, with_tls: Server) -> None:
    """The counterpart: the same proof passes if nothing is wrong."""
    proofs = hear(home, with_tls, certificate="ecdsa-p256")
    assert witnesses.unproven(proofs, TLS) == ""


# ── a wire that proves nothing ────────────────────────────────────────────────────────────────────────────────────────


def test_a_unix_socket_leaves_nothing_on_the_wire_and_that_proves_nothing(
    home: ServerCopies, without_tls: Server
) -> None:
    server = without_tls
    with Relay("127.0.0.1", server.connection().port) as relay:
        assert server.directory is not None
        password = reveal(server.connection().password)
        home.client(server, f"CREATE USER {USER}@localhost IDENTIFIED BY '{password}'", *home.clear())
        through = ["-hlocalhost", f"-P{relay.port}", f"--socket={server.directory / 'data' / 's'}", "--database="]
        done = home.client(server, f"SELECT '{CANARY}'", *through, *home.clear())
        sent, received = bytes(relay.to_server), bytes(relay.to_client)
    assert CANARY in done.stdout, done.stderr  # despite the port in the options, the client uses the socket
    assert (sent, received) == (b"", b"")
    for arm in ARMS:
        assert wire_witness.judge_wire(sent, received, CANARY, arm) == (False, probe.NULL_SEEN)


def test_compression_hides_the_canary_but_does_not_count_as_encryption(home: ServerCopies, with_tls: Server) -> None:
    port = with_tls.connection().port
    compress = ["--compression-algorithms=zlib"] if home.engine.name == "mysql" else ["--compress"]
    wire: dict[str, tuple[bytes, bytes]] = {}
    for name, options in (("compressed", compress), ("plain", [])):
        with Relay("127.0.0.1", port) as relay:
            statement = f"SELECT '{CANARY}', REPEAT('{CANARY}', 50)"
            done = home.client(with_tls, statement, *home.clear(), f"-P{relay.port}", *options)
            wire[name] = bytes(relay.to_server), bytes(relay.to_client)
        assert done.stdout.split() == [CANARY, CANARY * 50], done.stderr
    assert wire_witness.judge_wire(*wire["plain"], CANARY, "plain")[0]
    assert wire["compressed"][1].count(CANARY.encode()) < wire["plain"][1].count(CANARY.encode()) - 40
    # Even if no canary is left (a longer word, another algorithm): its absence alone is not encryption.
    sent, received = (part.replace(CANARY.encode(), b"\x78\x9c") for part in wire["compressed"])
    assert not wire_witness.judge_wire(sent, received, CANARY, "encrypted")[0]
    passed, detail = wire_witness.judge_wire(sent, received, CANARY, "plain")
    assert (passed, "compressed, or encrypted?" in detail) == (False, True)


# ── logins that differ ────────────────────────────────────────────────────────────────────────────────────────────────


def log_in(agent: Agent, fields: Connection) -> str:
    auth: str = agent.connect("a", fields).auth
    agent.disconnect("a")
    return auth


def test_the_first_unencrypted_login_is_an_rsa_exchange_and_the_next_is_not(home: ServerCopies) -> None:
    only(home, "mysql")
    with home.started(certificate="ecdsa-p256") as server, Agent() as agent:
        fields = home.fields(server, "plain")
        assert log_in(agent, fields) == "caching_sha2_password full (RSA)"
        assert log_in(agent, fields) == "caching_sha2_password fast"
        home.forget_logins(server)
        assert log_in(agent, home.fields(server, "encrypted", certificate="ecdsa-p256")) == (
            "caching_sha2_password full (TLS)"
        )
        assert log_in(agent, fields) == "caching_sha2_password fast"


@pytest.mark.parametrize("session", [1, 2])
def test_once_proven_both_arms_log_in_alike_whichever_is_first(
    home: ServerCopies, with_tls: Server, session: int
) -> None:
    server = with_tls
    home.forget_logins(server)
    with Agent() as agent:
        pair = home.pair(server, certificate="ecdsa-p256")
        proofs, connected = witnesses.prove(home.engine, TLS, pair, agent, session)
        witnesses.require(proofs, TLS)
        for arm in pair.connect:
            pair.connect[arm] |= {"per_request": True}
            answer = agent.connect(arm, pair.connect[arm])
            assert answer.auth in ("caching_sha2_password fast", "mysql_native_password")
            load_connections.load_connections(home.engine, TLS, pair, agent, arm, answer, connected)


def test_a_login_cache_flushed_in_between_is_detected(home: ServerCopies, with_tls: Server) -> None:
    only(home, "mysql")
    server = with_tls
    with Agent() as agent:
        pair = home.pair(server, certificate="ecdsa-p256")
        _, connected = witnesses.prove(home.engine, TLS, pair, agent, 1)
        agent.connect("admin", pair.connect["plain"])
        agent.query("admin", "FLUSH PRIVILEGES")
        arm: Arm = "plain"
        pair.connect[arm] |= {"per_request": True}
        answer = agent.connect(arm, pair.connect[arm])
        with pytest.raises(Unproven, match=r"plain arm: .*full \(RSA\), .*fast"):
            load_connections.load_connections(home.engine, TLS, pair, agent, arm, answer, connected)


# ── a negotiation that differs from the request ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("factors", "narrowed"),
    [
        ({"version": "1.2", "cipher": "aes256-gcm"}, {"ssl-cipher": "ECDHE-ECDSA-AES128-GCM-SHA256"}),
        ({"version": "1.3"}, {"tls-version": "TLSv1.2"}),
        ({"version": "1.2"}, {"tls-version": "TLSv1.3"}),
    ],
    ids=["suite", "no-1.3", "no-1.2"],
)
def test_a_server_that_offers_something_else_is_refused_with_a_clear_message(
    home: ServerCopies, with_tls: Server, factors: dict[str, str], narrowed: dict[str, str]
) -> None:
    with home.altered(with_tls, narrowed, certificate="ecdsa-p256") as server:
        proofs = hear(home, server, certificate="ecdsa-p256", **factors)
        reason = witnesses.unproven(proofs, TLS)
    assert reason.startswith("client witness, encrypted arm: ")
    assert [proof.code for proof in proofs if proof.arm == "encrypted"] == ["tls"]


def test_a_tls_13_suite_that_the_server_lacks_is_refused(home: ServerCopies, with_tls: Server) -> None:
    only(home, "mysql")
    lacking = {"tls-ciphersuites": "TLS_AES_128_GCM_SHA256"}
    with home.altered(with_tls, lacking, certificate="ecdsa-p256") as server:
        factors = {"certificate": "ecdsa-p256", "version": "1.3"}
        assert "tls" in [proof.code for proof in hear(home, server, **factors, cipher="aes256-gcm")]
        assert witnesses.unproven(hear(home, server, **factors, cipher="aes128-gcm"), TLS) == ""


def test_a_negotiation_that_differs_from_the_request_is_named() -> None:
    asked = Connection(driver="mysql", tls_max="1.3", tls_ciphers="A", tls_groups="X25519")
    answer = Connected(connections=1, encrypted=True, protocol="TLSv1.3", cipher="A", group="X25519", resumed=0)
    assert client_witness.negotiation_mismatch(answer, asked) == ""
    changes: list[dict[str, Any]] = [{"protocol": "TLSv1.2"}, {"cipher": "B"}, {"group": "P-256"}, {"resumed": 1}]
    for change in changes:
        assert client_witness.negotiation_mismatch(msgspec.structs.replace(answer, **change), asked) != ""
    assert (
        client_witness.negotiation_mismatch(msgspec.structs.replace(answer, resumed=1), (asked | {"resumption": True}))
        == ""
    )
    promised = TLS.promises({"certificate": "rsa2048"})
    assert (
        client_witness.negotiation_mismatch(msgspec.structs.replace(answer, peer_key="RSA 2048"), asked, promised) == ""
    )
    assert client_witness.negotiation_mismatch(msgspec.structs.replace(answer, peer_key=""), asked, promised) == ""
    other = client_witness.negotiation_mismatch(msgspec.structs.replace(answer, peer_key="EC P-256"), asked, promised)
    assert "peer_key is EC P-256" in other
    assert "RSA 2048" in other
    assert TLS.promises({"version": "1.3"}) == {}


def test_a_certificate_with_another_key_than_requested_fails_the_client_witness(
    home: ServerCopies, with_tls: Server
) -> None:
    """Even if the client does not verify the certificate."""
    only(home, "mysql")
    asked = {"verify": "require", "version": "1.3"}
    assert witnesses.unproven(hear(home, with_tls, certificate="ecdsa-p256", **asked), TLS) == ""
    reason = witnesses.unproven(hear(home, with_tls, certificate="rsa2048", **asked), TLS)
    assert reason.startswith("client witness, encrypted arm: ")
    assert "peer_key is EC P-256" in reason
    assert "RSA 2048" in reason


# ── resumption ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("resumption", ["off", "on"])
def test_sessions_are_resumed_if_and_only_if_the_factor_says_so(
    home: ServerCopies, with_tls: Server, version: str, resumption: str
) -> None:
    factors = {"version": version, "resumption": resumption, "certificate": "ecdsa-p256"}
    TLS.fits(home.engine, TLS.check(factors))
    program = workloads.prepare(workloads.get("connect"), home.engine.dialect, {})
    with Agent() as agent:
        agent.program(program)
        fields = home.fields(with_tls, "encrypted", **factors)
        answer = agent.connect("encrypted", fields | {"per_request": True})
        assert answer.resumed == 0  # the first connection has nothing to resume
        done = agent.slice("encrypted", 60, discard=0.0, operations=20)
        assert (done.errors, done.operations) == (0, 20)
        if resumption == "off":
            assert done.resumed == 0
        else:
            assert done.resumed == done.connects == 20


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_second_connection_resumes_the_session_of_the_first_by_client_and_server(
    home: ServerCopies, with_tls: Server, version: str
) -> None:
    asked = {"version": version, "certificate": "ecdsa-p256"}
    proofs = {(proof.arm, proof.witness): proof for proof in hear(home, with_tls, resumption="on", **asked)}
    proof = proofs["encrypted", "server"]
    assert proof.passed, proof.detail
    by = "server and the client" if home.engine.name == "mysql" else "client"
    assert "resumed the session of the first" in proof.detail
    assert f"by the {by}" in proof.detail
    assert "resumed" not in proofs["plain", "server"].detail
    assert "resumed" not in " ".join(proof.detail for proof in hear(home, with_tls, **asked))


def test_a_server_that_resumes_nothing_is_not_proven_where_resumption_is_on(
    home: ServerCopies, with_tls: Server
) -> None:
    only(home, "mysql")  # MariaDB has no setting for it
    with home.altered(with_tls, {"ssl-session-cache-mode": "OFF"}, certificate="ecdsa-p256") as server:
        proofs = hear(home, server, certificate="ecdsa-p256", resumption="on")
    reason = witnesses.unproven(proofs, TLS)
    assert reason.startswith("server witness, encrypted arm: ")
    assert session_witness.NOT_RESUMED in reason


# ── a server that enforces encryption ─────────────────────────────────────────────────────────────────────────────────


def test_the_errors_that_refuse_unencrypted_connections_are_known(home: ServerCopies, with_tls: Server) -> None:
    strict_server = home.altered(with_tls, {"require-secure-transport": "ON"}, certificate="ecdsa-p256")
    with strict_server as server, Agent() as agent:
        agent.connect("a", home.fields(server, "encrypted", certificate="ecdsa-p256"))
        with pytest.raises(AgentError) as caught:
            agent.connect("b", home.fields(server, "plain"))
        assert caught.value.code in EncryptsConnections.of(home.engine).refuses_clear
    with Agent() as agent:
        agent.connect("a", home.fields(server, "encrypted", certificate="ecdsa-p256"))
        agent.query("a", "CREATE USER strict@'127.0.0.1' IDENTIFIED BY 'word' REQUIRE SSL")
        strict: Changes = {"user": "strict", "password": Secret("word"), "database": ""}
        agent.connect("c", home.fields(server, "encrypted", certificate="ecdsa-p256") | strict)
        with pytest.raises(AgentError) as caught:
            agent.connect("d", home.fields(server, "plain") | strict)
        agent.query("a", "DROP USER strict@'127.0.0.1'")
        assert caught.value.code in EncryptsConnections.of(home.engine).refuses_clear


# ── a database of our own ─────────────────────────────────────────────────────────────────────────────────────────────


def test_our_database_is_created_marked_found_and_dropped(home: ServerCopies, with_tls: Server, tmp_path: Path) -> None:
    engine, fields = home.engine, home.fields(with_tls, "plain")
    with Agent(log=tmp_path / "agent.log") as agent:
        before = OwnSchema.of(engine).schemas(agent, fields)
        agent.connect("user", fields)
        agent.query("user", "CREATE DATABASE `ciphercost_o``dd`")
        OwnSchema.of(engine).make_schema(agent, fields, "ciphercost_run_1", "run-1")
        with pytest.raises(AgentError, match="exists"):
            OwnSchema.of(engine).make_schema(agent, fields, "ciphercost_run_1", "run-2")
        assert OwnSchema.of(engine).schemas(agent, fields) == {
            **before,
            "ciphercost_run_1": "run-1",
            "ciphercost_o`dd": "",
        }
        agent.connect("inside", fields | OwnSchema.of(engine).in_schema("ciphercost_run_1"))
        assert agent.query("inside", "SELECT DATABASE()") == [["ciphercost_run_1"]]
        OwnSchema.of(engine).drop_schema(agent, fields, "ciphercost_run_1")
        OwnSchema.of(engine).drop_schema(agent, fields, "ciphercost_o`dd")
        assert OwnSchema.of(engine).schemas(agent, fields) == before
