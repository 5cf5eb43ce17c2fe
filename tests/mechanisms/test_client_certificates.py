"""Mutual TLS, weak keys and old versions on nginx and Apache: each is proven, each witness can fail, other servers
refuse them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost import engines
from ciphercost.engines import Server, apache, nginx
from ciphercost.engines._web.family import OURS
from ciphercost.host import tls_names
from ciphercost.host.client_identity import ClientName
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Changes, Connected
from ciphercost.model.errors import AgentError, Unproven, UsageError
from ciphercost.model.slices import Proof
from ciphercost.prove import client_certificate, client_witness, load_connections, witnesses
from ciphercost.prove.probe import Probe
from ciphercost.provision.server_pair import ServerPair
from conftest import RequireServer
from test_real import ciphercost, measured, result_of
from web_servers import CANARY, TLS, Site, site

MUTUAL = {"certificate": "ecdsa-p256", "client-cert": "on"}


@pytest.fixture(scope="module", params=["nginx", "apache"])
def home(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with site(require_server(request.param), tmp_path_factory.mktemp("logs"), {"/1KB": 1000}) as running:
        yield running


def pair_of(home: Site, server: Server, factors: dict[str, str]) -> ServerPair:
    return ServerPair(
        connect={arm: home.fields(server, arm, factors) for arm in ("plain", "encrypted")},
        servers=[server],
        by_arm={"plain": server, "encrypted": server},
        promised={"encrypted": TLS.promises(factors)},
        canary=CANARY,
    )


def proven(home: Site, server: Server, factors: dict[str, str]) -> tuple[list[Proof], Connected | None]:
    """Return the witnesses' reports on both arms, and what the encrypted one negotiated."""
    with Agent() as agent:
        proofs, connected = witnesses.prove(home.engine, TLS, pair_of(home, server, factors), agent, 1)
        return proofs, connected.get("encrypted")


def server_witness(proofs: list[Proof]) -> Proof:
    return next(proof for proof in proofs if (proof.arm, proof.witness) == ("encrypted", "server"))


# ── client certificates ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["1.3", "1.2"])
@pytest.mark.parametrize("resumption", ["off", "tickets", "cache"])
def test_a_client_certificate_is_required_and_verified(home: Site, version: str, resumption: str) -> None:
    factors = {**MUTUAL, "version": version, "resumption": resumption}
    with home.started(factors) as server:
        proofs, negotiated = proven(home, server, factors)
    assert all(proof.passed for proof in proofs), proofs
    detail = server_witness(proofs).detail
    assert "client certificate verified" in detail
    assert "without a client certificate it refuses" in detail
    assert client_witness.negotiated(negotiated)["client_certificate"] == "verified by the server"


def test_a_server_that_refuses_everybody_does_not_prove_that_it_requires_a_certificate(home: Site) -> None:
    with home.started(MUTUAL) as server, Agent() as agent:
        pair = pair_of(home, server, MUTUAL)
        server.stop()
        probe = Probe(home.engine, TLS, pair, agent, 1)
        passed, words = client_certificate.without_certificate(probe, pair.connect["encrypted"].single)
    assert not passed
    assert "also refuses one with it" in words


def test_a_server_that_asks_for_no_client_certificate_is_not_proven(home: Site) -> None:
    with home.started(MUTUAL, settings={f"{OURS}client_ca": ""}) as server:
        proofs, negotiated = proven(home, server, MUTUAL)
        proof = server_witness(proofs)
        assert not proof.passed
        assert "no client certificate" in proof.detail
        assert "client_certificate" not in client_witness.negotiated(negotiated)
        # The witness also asks about the load's own connections.
        with Agent() as agent:
            answer = agent.connect("encrypted", home.fields(server, "encrypted", MUTUAL) | {"connections": 2})
            known = msgspec.structs.replace(answer, client_certificate="verified by the server")
            with pytest.raises(Unproven, match=r"no client certificate .*2 of 2 sessions"):
                load_connections.load_connections(
                    home.engine, TLS, pair_of(home, server, MUTUAL), agent, "encrypted", answer, {"encrypted": known}
                )


def test_a_server_that_serves_clients_without_a_certificate_too_is_not_proven(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"nginx": nginx, "apache": apache}[home.engine.name]
    for word in ("verify_client on", "VerifyClient require"):
        monkeypatch.setattr(module, "CLIENT", module.CLIENT.replace(word, f"{word.split()[0]} optional"))
    with home.started(MUTUAL) as server:
        proof = server_witness(proven(home, server, MUTUAL)[0])
    assert not proof.passed
    assert "client certificate verified; " in proof.detail
    assert "also accepts a connection without" in proof.detail


def test_a_certificate_of_another_authority_is_refused(home: Site, tmp_path: Path) -> None:
    from ciphercost.host.pki import CLIENT, Pki

    other = Pki(tmp_path / "other", "ecdsa-p256", client=True)
    with home.started(MUTUAL) as server, Agent() as agent:
        fields = home.fields(server, "encrypted", MUTUAL)
        fields |= {"tls_certificate": str(other.directory / CLIENT[0]), "tls_key": str(other.directory / CLIENT[1])}
        refusal = client_certificate.refusal(home.engine, agent, fields)
    assert refusal


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tls_key": None}, "tls_certificate and tls_key: give both or neither"),
        ({"tls_key": "/nonexistent/client.key"}, "tls_key /nonexistent/client.key: "),
        ({"tls_certificate": "/nonexistent/client.pem"}, "tls_certificate /nonexistent/client.pem: "),
        ({"tls_security_level": 6}, "tls_security_level: must be 0 to 5"),
    ],
)
def test_the_agent_reports_what_is_wrong_with_its_own_certificate(home: Site, change: Changes, message: str) -> None:
    with home.started(MUTUAL) as server, Agent() as agent:
        fields = home.fields(server, "encrypted", MUTUAL) | change
        with pytest.raises(AgentError, match=message):
            agent.connect("x", fields)


# ── databases and key-value stores ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "client"),
    [
        *((name, "rust") for name in ("postgresql", "mariadb", "valkey", "mysql", "redis", "memcached")),
        *((name, "jdbc") for name in ("postgresql", "mariadb", "mysql")),
    ],
)
def test_every_server_requires_it(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path: Path, name: str, client: str
) -> None:
    require_server(name)
    if client == "jdbc":
        request.getfixturevalue("require_java")
    done = ciphercost("prove", f"{name}:tls", "--set", "client-cert=on", "--client", client, cwd=tmp_path)
    words = " ".join(done.stdout.split())
    assert (done.returncode, "ENCRYPTED, proven by every witness" in words) == (0, True), words + done.stderr
    assert "without a client certificate it refuses: " in words
    reports = "client certificate verified, of /CN=ciphercost client"
    assert (reports if name == "postgresql" else client_certificate.NO_NAME) in words


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb", "valkey", "memcached"])
def test_its_cost_has_an_interval(require_server: RequireServer, tmp_path: Path, name: str) -> None:
    require_server(name)
    quick = ("--quick", "--time", "6s", "--no-latency", "--no-progress", "--json", "out.json")
    done = measured(
        "run", f"{name}:tls", "--workload", "connect", "--matrix", "client-cert=off,on", *quick, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    without, with_it = result_of(tmp_path)["cells"]
    assert "client_certificate" not in without["encryption"]
    assert with_it["encryption"]["client_certificate"].split()[0] in ("verified", "required")
    assert 0 < with_it["overhead"]["throughput"]["low"] < with_it["overhead"]["throughput"]["high"]
    assert "tls_certificate: none | set" in with_it["config_diff"]


def test_whose_certificate_it_was_must_be_right() -> None:
    wanted = ClientName("/O=Shop/CN=me", 4711)
    cases: list[tuple[list[list[str | None]], bool, str]] = [
        ([["/O=Shop/CN=me", "4711"]], True, "client certificate verified, of /O=Shop/CN=me"),
        ([["/O=Shop/CN=me", "4711"], [None, None]], False, "no client certificate for 1 of 2 sessions"),
        ([], False, "no client certificate for 0 of 0 sessions"),
        ([["/O=Shop/CN=other", "4711"]], False, "the client certificate of /O=Shop/CN=other (4711), not of"),
        ([["/O=Shop/CN=me", "4712"]], False, "(4712), not of /O=Shop/CN=me"),
        ([["", "4711"]], False, "not of /O=Shop/CN=me"),
    ]
    for rows, passed, words in cases:
        judged = client_certificate.judge_names(rows, wanted)
        assert (judged[0], words in judged[1]) == (passed, True), judged
    # PostgreSQL reports 63 bytes of a subject.
    long = ClientName(f"/CN={'x' * 80}", 1)
    assert client_certificate.judge_names([[long.subject[:63], "1"]], long)[0]
    assert not client_certificate.judge_names([[long.subject[:62], "1"]], long)[0]


# ── RSA keys, old versions ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("certificate", [f"rsa{bits}" for bits in (1024, 1280, 1536, 3072)])
def test_rsa_keys_of_every_size_are_proven_and_weak_ones_need_a_lower_security_level(
    home: Site, certificate: str
) -> None:
    factors = {"certificate": certificate}
    with home.started(factors) as server:
        proofs, negotiated = proven(home, server, factors)
        assert negotiated is not None
        assert all(proof.passed for proof in proofs), proofs
        assert negotiated.peer_key == f"RSA {certificate.removeprefix('rsa')}"
        fields = home.fields(server, "encrypted", factors)
        assert fields.tls_security_level == (1 if certificate in tls_names.WEAK else None)
        if certificate in tls_names.WEAK:
            with Agent() as agent, pytest.raises(AgentError, match="key too weak"):
                agent.connect("x", fields | {"tls_security_level": 2})


@pytest.mark.parametrize("certificate", ["rsa2048", "ecdsa-p256"])
@pytest.mark.parametrize("version", tls_names.OLD)
def test_old_versions_are_negotiated_on_request(home: Site, version: str, certificate: str) -> None:
    for cipher in tls_names.SUITES_OLD:
        factors = {"version": version, "certificate": certificate, "cipher": cipher}
        with home.started(factors) as server:
            proofs, negotiated = proven(home, server, factors)
        assert negotiated is not None
        assert all(proof.passed for proof in proofs), proofs
        wanted = (tls_names.PROTOCOLS[version], tls_names.suite(TLS.check(factors)))
        assert (negotiated.protocol, negotiated.cipher) == wanted
        assert " ".join(wanted) in server_witness(proofs).detail


@pytest.mark.parametrize("version", tls_names.OLD)
def test_a_server_refuses_old_versions_by_default(home: Site, version: str) -> None:
    with home.started({"certificate": "rsa2048"}) as server:
        proofs, _ = proven(home, server, {"version": version, "certificate": "rsa2048"})
    client = next(proof for proof in proofs if (proof.arm, proof.witness) == ("encrypted", "client"))
    assert not client.passed
    assert f"does not accept TLS version {version}" in client.detail


def test_a_server_that_speaks_another_version_than_requested_is_not_proven(home: Site) -> None:
    factors = {"version": "1.0", "certificate": "rsa2048"}
    with home.started(factors) as server, Agent() as agent:
        fields = home.fields(server, "encrypted", factors)
        answer = agent.connect("x", fields | {"tls_min": "1.0", "tls_max": "1.1"})
    assert answer.protocol == "TLSv1.1"
    assert client_witness.negotiation_mismatch(answer, fields) == "protocol TLSv1 was requested"


# ── the whole path, and what is refused ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["nginx", "apache"])
def test_a_run_compares_them(tmp_path: Path, require_server: RequireServer, name: str) -> None:
    require_server(name)
    matrix = (
        "--matrix",
        "client-cert=off,on",
        "--matrix",
        "certificate=rsa2048,rsa1024",
        "--matrix",
        "version=1.3,1.0",
    )
    quick = ("--quick", "--time", "4s", "--no-latency", "--no-progress", "--json", "out.json")
    done = measured("run", f"{name}:tls", "--workload", "connect", *matrix, *quick, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    cells = result_of(tmp_path)["cells"]
    told = {
        (cell["factors"]["client-cert"], cell["factors"]["certificate"], cell["factors"]["version"]): cell
        for cell in cells
    }
    assert len(told) == 4
    mutual, weak, old = (
        told["on", "rsa2048", "1.3"],
        told["off", "rsa1024", "1.3"],
        told["off", "rsa2048", "1.0"],
    )
    assert mutual["encryption"]["client_certificate"] == "verified by the server"
    assert "client certificate verified by the server" in words
    assert "tls_certificate: none | set" in mutual["config_diff"]
    assert not any("/" in line for line in mutual["config_diff"])
    assert weak["encryption"]["peer_key"] == "RSA 1024"
    assert old["encryption"]["protocol"] == "TLSv1"
    lowered = {
        key: [e["text"] for e in cell["warnings"] if e["code"] == "security-level-lowered"]
        for key, cell in told.items()
    }
    assert "lowered to 1 for certificate=rsa1024" in lowered["off", "rsa1024", "1.3"][0]
    assert "lowered to 0 for version=1.0" in lowered["off", "rsa2048", "1.0"][0]
    assert not lowered["on", "rsa2048", "1.3"]


@pytest.mark.parametrize(
    ("engine", "given", "message"),
    [
        ("h2", {"client-cert": "on"}, "client-cert=on: .* servers that it starts, and not on h2"),
        ("url", {"client-cert": "on"}, "client-cert=on: .* not on url"),
        ("mysql", {"version": "1.1"}, r"version=1\.1: .*; write version=1\.2 or 1\.3"),
        ("mariadb", {"certificate": "rsa1536"}, "rsa1536: OpenSSL refuses RSA keys below 2048 bits"),
        ("nginx", {"version": "1.1", "cipher": "aes256-gcm"}, r"TLS 1\.1 has only CBC suites; write cipher=aes256-cbc"),
        ("nginx", {"version": "1.0", "group": "x25519mlkem768"}, r"TLS 1\.0 has no post-quantum groups"),
        ("nginx", {"version": "1.0", "group": "x25519", "certificate": "ecdsa-p256"}, r"in TLS 1\.0 the curve"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_with_the_reason(
    tmp_path: Path, engine: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        TLS.fits(engines.get(engine), TLS.check(given))
    target = [f"{engine}:tls"]
    if engine == "url":
        target += ["--url", "http://localhost/", "--url", "https://localhost/"]
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    done = ciphercost("run", *target, *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(message, " ".join(done.stderr.split()))


def test_the_default_cipher_fits_the_version() -> None:
    assert {v: TLS.check({"version": v})["cipher"] for v in ("1.3", "1.2", "1.1", "1.0")} == {
        "1.3": "aes256-gcm", "1.2": "aes256-gcm", "1.1": "aes256-cbc", "1.0": "aes256-cbc",
    }  # fmt: skip
