"""A real H2: its TLS, the witnesses with and without encryption, and what is refused."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import h2_servers
from ciphercost import mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.h2 import DRIVER, ENGINE
from ciphercost.host import supervisor
from ciphercost.host.pki import Pki
from ciphercost.host.relay import Relay, moved
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent
from ciphercost.load.peer_checks import REFUSES
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS, Arm, CellSpec
from ciphercost.plan.resolve import resolve
from ciphercost.prove import witnesses
from ciphercost.provision.server_pair import ServerPair
from conftest import RequireServer
from processes import opened

TLS = mechanisms.get("tls")
CANARY = "canary0123456789"


class Running(msgspec.Struct):
    """A server with both ports, and where its certificate lies."""

    server: Server
    secrets: Path
    supervisor: Supervisor
    agent: JdbcAgent
    """For the default factors."""

    def connect(self, arm: Arm, **factors: str) -> Connection:
        fields = self.server.connection() | TLS.connection(ENGINE, arm, TLS.check(factors), self.secrets)
        return fields | (self.server.other_ports["tls"] if arm == "encrypted" else {})

    def prove(self, encrypted: Connection) -> tuple[str, list[Proof]]:
        """Why the arms are not proven (empty: they are), and the proofs."""
        fields: dict[Arm, Connection] = {"plain": self.connect("plain"), "encrypted": encrypted}
        pair = ServerPair(fields, [self.server], CANARY, by_arm={"plain": self.server, "encrypted": self.server})
        proofs, _ = witnesses.prove(ENGINE, TLS, pair, self.agent, 1)
        return witnesses.unproven(proofs, TLS), proofs


@pytest.fixture(scope="module")
def running(require_server: RequireServer, require_java: None) -> Iterator[Running]:
    del require_java
    installation, run_id = require_server("h2"), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        ENGINE.initialise(installation, scratch / "data", run_supervisor)
        settings = TLS.server_settings(ENGINE, TLS.check({}), scratch / "secrets")
        server = ENGINE.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=scratch)
        )
        like = server.connection() | TLS.connection(ENGINE, "encrypted", TLS.check({}), scratch / "secrets")
        with h2_servers.agent(like, run_supervisor) as agent:
            yield Running(server, scratch / "secrets", run_supervisor, agent)
        server.stop()


def test_encryption_is_proven_by_server_wire_and_client(running: Running) -> None:
    reason, proofs = running.prove(running.connect("encrypted"))
    assert reason == ""
    details = {(proof.arm, proof.witness): proof.detail for proof in proofs}
    assert details["encrypted", "client"].startswith("TLSv1.3 TLS_AES_256_GCM_SHA384, peer verified")
    assert REFUSES["certificate"] in details["encrypted", "client"]
    assert details["encrypted", "server"] == "the server reports: TLS"
    assert details["plain", "server"] == "the server reports: not encrypted"


@pytest.mark.parametrize("where", ["in clear", "TLS on the unencrypted port"])
def test_an_encrypted_arm_without_tls_is_not_proven(running: Running, where: str) -> None:
    plain = running.connect("plain")
    wrong = plain if where == "in clear" else running.connect("encrypted") | {"port": plain.port}
    assert "encrypted arm" in running.prove(wrong)[0]


def test_the_version_and_the_cipher_that_were_asked_for_are_negotiated(running: Running) -> None:
    fields = running.connect("encrypted", version="1.2", cipher="aes128-gcm")
    with h2_servers.agent(fields, running.supervisor) as agent:
        answer = agent.connect("encrypted", fields)
        assert (answer.protocol, answer.cipher) == ("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_no_connection_resumes_a_session(running: Running, version: str) -> None:
    """A full handshake of TLS 1.2 or 1.3 carries the server's certificate, so it has more bytes than that."""
    fields = running.connect("encrypted", version=version)
    certificate = next(running.secrets.glob("*/server.pem")).read_text()
    least = len(ssl.PEM_cert_to_DER_cert(certificate))
    with h2_servers.agent(fields, running.supervisor) as agent:
        for _ in range(3):
            with Relay("127.0.0.1", fields.port) as relay:
                agent.connect("encrypted", moved(fields, "127.0.0.1", relay.port))
                agent.disconnect("encrypted")
                hello = bytes(relay.to_client)[: least + 200]
                assert len(relay.to_client) > least + 400
                if version == "1.2":
                    assert ssl.PEM_cert_to_DER_cert(certificate)[:100] in hello


def test_the_driver_trusts_no_other_authority_and_says_so(running: Running) -> None:
    fields = running.connect("encrypted")
    stranger = running.secrets / "stranger"
    fields |= {"tls_ca": str(Pki(stranger).ca)}
    with h2_servers.agent(fields, running.supervisor) as agent, pytest.raises(AgentError, match="PKIX path"):
        agent.connect("encrypted", fields)


def test_the_server_offers_no_anonymous_suite(running: Running) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("aNULL:@SECLEVEL=0")
    port = int(str(running.connect("encrypted").port))
    with (
        contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as plain,
        pytest.raises(ssl.SSLError, match=r"HANDSHAKE_FAILURE|handshake failure"),
    ):
        context.wrap_socket(plain)


def test_the_server_is_confined_and_listens_on_loopback_alone(running: Running) -> None:
    """As every server that `host/launch.py` starts; what that means is in test_confinement.py."""
    assert "NoNewPrivs:\t1" in Path(f"/proc/{running.server.pid}/status").read_text()
    held = opened(running.server.pid)
    listening = {
        line.split()[1]
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in held
    }
    assert listening == {f"0100007F:{running.connect(arm).port:04X}" for arm in ARMS}


@pytest.mark.parametrize(
    ("factors", "refusal"),
    [
        ({"library": "openssl-3.5"}, "H2 uses the TLS of Java"),
        ({"hop": "haproxy"}, "does not speak H2's"),
        ({"verify": "require"}, "always checks the server's certificate; write verify=ca"),
        ({"verify": "full"}, "checks no host names"),
        ({"group": "x25519"}, "no JDBC driver reports the negotiated group"),
        ({"resumption": "on"}, "never resumes a TLS session"),
        ({"client-cert": "on"}, "client-cert=on"),
        ({"certificate": "mldsa44"}, "ML-DSA"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
@pytest.mark.usefixtures("require_java")
def test_what_its_tls_has_not_is_refused_before_anything_starts(factors: dict[str, str], refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        resolve(CellSpec("h2", "tls", factors=factors))


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"version": "1.4"}, f"h2@1.4: only {DRIVER.version} is available"),
        ({"bindir": "/usr"}, "leave --url and --bindir out"),
        ({"url": "h2://localhost"}, "leave --url and --bindir out"),
    ],
)
def test_another_h2_is_refused(asked: dict[str, str], refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        ENGINE.find(**asked)


def test_another_version_is_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match=r"h2@1.4: only .* is available"):
        resolve(CellSpec("h2", "tls", version="1.4"))


def test_it_comes_from_maven_alone() -> None:
    with pytest.raises(UsageError, match="comes from maven, not from debian"):
        ENGINE.install(source="debian")


@pytest.mark.usefixtures("require_java")
def test_only_jdbc_makes_its_load() -> None:
    assert resolve(CellSpec("h2", "tls")).spec.client == "jdbc"
    with pytest.raises(UsageError, match=r"--client rust: .*JDBC.* h2"):
        resolve(CellSpec("h2", "tls", client="rust"))
