"""HAProxy as a web server: what it can answer, what it counts, and what it refuses before it starts.

`test_web` has what it shares with other web servers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ciphercost import engines
from ciphercost.engines import haproxy
from ciphercost.engines._web import log
from ciphercost.engines._web.family import OURS
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError, RunError, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import resolve
from conftest import RequireServer
from test_client_certificates import MUTUAL, proven, server_witness
from web_servers import Site, program, site

HEADER = "# pxname,svname,scur,ssl_sess,ssl_reused_sess,"


@pytest.fixture(scope="module")
def home(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    sizes = {"/index.html": 1000, "/most.json": haproxy.ENGINE.largest_document}
    with site(require_server("haproxy"), tmp_path_factory.mktemp("logs"), sizes) as home:
        yield home


# ── what it answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_largest_document_arrives_whole_over_both_versions(home: Site) -> None:
    with home.started({"certificate": "ecdsa-p256"}) as server, Agent() as agent:
        program(agent, "GET /most.json")
        for arm in ("plain", "encrypted"):
            for http in ("1.1", "2"):
                agent.connect("x", home.fields(server, arm, {"certificate": "ecdsa-p256"}) | {"http": http})
                done = agent.slice("x", 60, discard=0, operations=20)
                assert (done.operations, done.errors, done.first_error) == (20, 0, "")
                assert done.bytes_received > 20 * haproxy.ENGINE.largest_document


def test_a_directory_is_its_index(home: Site) -> None:
    with home.started() as server, Agent() as agent:
        program(agent, "GET")
        agent.connect("x", home.fields(server, "plain"))
        assert [agent.query("x", f"GET {path}")[0][0] for path in ("/", "/index.html", "/index", "/most")] == [
            "200", "200", "404", "404",
        ]  # fmt: skip


# ── what it counts ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        (f"{HEADER}\ndocuments,FRONTEND,0,7,5,\n", (7, 5)),
        (f"{HEADER}\ndocuments,FRONTEND,0,,,\n", (0, 0)),
        (f"{HEADER}\na,FRONTEND,0,1,2,\na,BACKEND,0,30,40,\nb,FRONTEND,0,5,6,\n", (6, 8)),
        ("", (0, 0)),
    ],
)
def test_its_table_of_statistics(table: str, counts: tuple[int, int]) -> None:
    assert haproxy.counted(table) == counts


def test_handshakes_are_counted_once(home: Site) -> None:
    factors = {"certificate": "ecdsa-p256", "resumption": "tickets"}
    with home.started(factors) as server, Agent() as agent:
        program(agent, "GET /index.html")
        agent.connect("x", home.fields(server, "encrypted", factors) | {"per_request": True})
        assert sum(server.handshakes()) == 1  # the connection that `connect` tries
        done = agent.slice("x", 60, discard=0, operations=30)
        full, resumed = server.handshakes()
        assert (full + resumed, resumed) == (30, done.resumed)
        assert resumed > 0
        assert server.handshakes() == (0, 0)


def test_a_server_that_does_not_answer_about_its_handshakes_is_an_error(home: Site) -> None:
    with home.started({"certificate": "ecdsa-p256"}) as server:
        assert server.directory is not None
        (server.directory / haproxy.SOCKET).unlink()
        with pytest.raises(RunError, match=r"HAProxy .*handshakes: No such file"):
            server.handshakes()


# ── witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("resumption", ["off", "cache"])
def test_a_client_certificate_is_required_and_verified(home: Site, resumption: str) -> None:
    factors = {**MUTUAL, "resumption": resumption}
    with home.started(factors) as server:
        proofs, _ = proven(home, server, factors)
    assert all(proof.passed for proof in proofs), proofs
    detail = server_witness(proofs).detail
    assert "client certificate verified" in detail
    assert "without a client certificate it refuses" in detail


@pytest.mark.parametrize("wrong", ["no authority", "optional"])
def test_a_server_that_does_not_insist_on_a_certificate_is_not_proven(
    home: Site, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(haproxy, "CLIENT", haproxy.CLIENT.replace("required", "optional"))
    with home.started(MUTUAL, settings={f"{OURS}client_ca": ""} if wrong == "no authority" else {}) as server:
        proof = server_witness(proven(home, server, MUTUAL)[0])
    assert not proof.passed
    assert ("but it also accepts a connection" if wrong == "optional" else "no client certificate") in proof.detail


def test_the_witness_needs_no_line_of_its_log(home: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # HAProxy drops a line of its log where another of its threads is writing one.
    monkeypatch.setattr(log.Log, "read", lambda _: [])
    factors = {"certificate": "ecdsa-p256"}
    with home.started(factors) as server, Agent() as agent:
        agent.connect("x", home.fields(server, "encrypted", factors) | {"connections": 20})
        rows = haproxy.ENGINE.sessions(server, agent, "x", everywhere=True)
    assert [row[:2] for row in rows] == [["t", "TLSv1.3"]] * 20


def test_a_document_is_no_answer_to_a_witness(home: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(haproxy, "LINE", "welcome")
    with home.started() as server, Agent() as agent:
        agent.connect("x", home.fields(server, "plain"))
        with pytest.raises(AgentError, match="HAProxy answered only 0 of this witness's 1 requests"):
            haproxy.ENGINE.sessions(server, agent, "x")


def test_a_server_that_names_another_cipher_than_the_client_fails_the_server_witness(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(haproxy, "LINE", haproxy.LINE.replace("%[ssl_fc_cipher]", "TLS_AES_128_CCM_SHA256"))
    factors = {"certificate": "ecdsa-p256"}
    with home.started(factors) as server:
        proof = server_witness(proven(home, server, factors)[0])
    assert not proof.passed
    assert "the server reports TLS_AES_128_CCM_SHA256, the client reports" in proof.detail


# ── what it refuses ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"workload": "file"}, "/file has 100,000 bytes, .*at most 15,000: .* size=10KB"),
        ({"workload": "page", "factors": {"size": "16KB"}}, "its document /index.html has 16,000 bytes"),
        ({"workload": "shop"}, "/[a-z.]+ has [0-9,]+ bytes, .*--set page=10KB"),
        ({"version": "2.6", "factors": {"certificate": "rsa1024"}}, r"HAProxy 2\.6 has no setting for OpenSSL's"),
        ({"factors": {"http": "4"}}, "http=4: unknown HTTP version"),
    ],
)
def test_what_it_can_not_do_is_refused_before_anything_starts(cell: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve.resolve(CellSpec("haproxy", "tls", **{"workload": "page"} | cell))  # type: ignore[arg-type]


@pytest.mark.parametrize("workload", ["page", "small-api", "connect"])
def test_its_usual_workloads_fit(workload: str) -> None:
    planned = resolve.resolve(CellSpec("haproxy", "tls", workload=workload))
    assert max(planned.program.documents.values()) <= haproxy.ENGINE.largest_document


def test_a_server_that_does_not_start_reports_the_reason(home: Site) -> None:
    with (
        pytest.raises(RunError, match=r"(?s)HAProxy .* did not start \(log: .*/nonexistent/ca\.pem"),
        home.started(MUTUAL, settings={f"{OURS}client_ca": "/nonexistent/ca.pem"}),
    ):
        pass


def test_the_hop_and_the_server_are_one_program() -> None:
    from ciphercost.hops import haproxy as hop

    server = engines.get("haproxy")
    assert isinstance(server, haproxy.HAProxy)
    assert (hop.HOP.program, hop.HOP.version_words) == (server.programs[0], server.version_words)
