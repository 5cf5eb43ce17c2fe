"""Whole runs on nginx, Apache, Caddy, HAProxy and a pair of URLs: proven, measured, split, and reported in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost import load
from ciphercost.engines import Server
from ciphercost.load.plaintext_guard import CERTIFICATE_WANTED
from ciphercost.model.result import Cell
from ciphercost.report.formats import terminal
from ciphercost.report.words import cell_text
from conftest import RequireServer
from test_real import ciphercost, measured, result_of
from web_servers import Site, site

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress")
ALL = {(arm, witness) for arm in ("plain", "encrypted") for witness in ("client", "server", "wire")}


@pytest.fixture(params=["nginx", "apache"])
def name(request: pytest.FixtureRequest, require_server: RequireServer) -> str:
    require_server(request.param)
    return str(request.param)


def cells_of(tmp_path: Path, *argv: str) -> tuple[list[dict[str, Any]], str]:
    """(cells, output) of a successful run."""
    done = measured("run", *argv, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = result_of(tmp_path)["cells"]
    for cell in cells:
        assert cell["status"] == "ok"
        assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
        assert 0 < cell["overhead"]["throughput"]["low"] <= cell["overhead"]["throughput"]["high"]
        if cell["mechanism"] == "tls":
            assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]} == ALL
    fits(done.stdout)
    return cells, " ".join(done.stdout.split())


def fits(screen: str) -> None:
    """Check that it fits into 80 columns, except the last line, which is a path."""
    assert max(len(line) for line in screen.splitlines()[:-1]) <= 80, screen


# ── ours ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_with_what_sendfile_is_worth_beside_it(tmp_path: Path, name: str) -> None:
    (cell, control), words = cells_of(tmp_path, f"{name}:tls", "--workload", "file", *QUICK)
    assert (cell["mechanism"], control["mechanism"]) == ("tls", "no-sendfile")
    assert cell["encryption"]["protocol"] == "TLSv1.3"
    assert cell["encryption"]["verified"] == "yes"
    left = cell["beside"]["no-sendfile"]
    # Two parts of one experiment add up to the whole.
    without = control["overhead"]["throughput"]
    whole = cell["overhead"]["throughput"]
    assert without["low"] * left["low"] < whole["high"]
    assert without["high"] * left["high"] > whole["low"]
    assert not cell["handshakes"]
    assert "of which no sendfile:" in words
    assert "TLS itself:" in words
    assert not control["proofs"]
    result = load(max((tmp_path / "runs").iterdir()))
    broken = msgspec.structs.replace(result.cells[1], status="failed", reason="it broke", overhead={})
    again = terminal.render(msgspec.structs.replace(result, cells=[result.cells[0], broken]))
    assert "! the control no-sendfile: FAILED: it broke" in again
    assert "TLS itself:" not in again
    assert "one experiment" not in again
    fits(again + "\n-")


@pytest.mark.parametrize("target", ["caddy", "haproxy"])
def test_a_server_that_never_uses_sendfile_has_no_control(
    tmp_path: Path, require_server: RequireServer, target: str
) -> None:
    require_server(target)
    (cell,), words = cells_of(tmp_path, f"{target}:tls", "--workload", "file", "--set", "size=10KB", *QUICK)
    assert (cell["mechanism"], cell["workload"], cell["beside"]) == ("tls", "file", {})
    assert cell["encryption"]["protocol"] == "TLSv1.3"
    assert "no sendfile" not in words


@pytest.mark.parametrize(
    ("target", "resumption"),
    [
        ("nginx", "off"),
        ("nginx", "tickets"),
        ("apache", "off"),
        ("apache", "cache"),
        ("caddy", "tickets"),
        ("haproxy", "cache"),
    ],
)
def test_handshakes_full_or_resumed_by_the_servers_own_log(
    tmp_path: Path, require_server: RequireServer, target: str, resumption: str
) -> None:
    require_server(target)
    given = ("--set", f"resumption={resumption}", "--set", "certificate=ecdsa-p256", *QUICK)
    (cell,), words = cells_of(tmp_path, f"{target}:tls", "--workload", "connect", *given)
    full, resumed = (cell["handshakes"].get(kind, 0) for kind in ("full", "resumed"))
    assert full + resumed > 20
    assert resumed == 0 if resumption == "off" else resumed >= 0.99 * (full + resumed)
    assert next(cell_text.logged(msgspec.convert(cell, Cell))) in words
    assert 0 < cell["overhead"]["server_cpu_per_op"]["high"] < math.inf
    assert not [warning for warning in cell["warnings"] if warning["code"] == "not-resumed"]


@pytest.mark.parametrize(("target", "resumption"), [("caddy", "0-rtt")])
def test_first_requests_are_early(tmp_path: Path, require_server: RequireServer, target: str, resumption: str) -> None:
    require_server(target)
    given = ("--set", f"resumption={resumption}", "--set", "http=3", "--set", "certificate=ecdsa-p256", *QUICK)
    (cell,), words = cells_of(tmp_path, f"{target}:tls", "--workload", "connect", *given)
    arm = cell["arms"]["encrypted"]
    assert 0.95 * arm["connects"] < arm["early"] == arm["resumed"]
    assert "early" not in cell["arms"]["plain"]
    assert "0-RTT: " in words
    assert f"early on {arm['early']:,} of {arm['connects']:,} connections" in words
    assert any("came by 0-RTT" in proof["detail"] for proof in cell["proofs"])


def test_a_small_api_with_posts(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("apache")
    (cell,), _ = cells_of(tmp_path, "apache:tls", "--workload", "small-api", "--clients", "16", *QUICK)
    assert cell["clients"] == 16
    assert all(0.999 < facts["rows_per_op"] < 1.001 for facts in cell["arms"].values())


def test_a_matrix_of_sizes_each_with_its_own_control(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    cells, words = cells_of(tmp_path, "nginx:tls", "--workload", "file", "--matrix", "size=1KB,100KB", *QUICK)
    assert [(cell["mechanism"], cell["variant"]) for cell in cells] == [
        ("tls", "size=1KB"),
        ("tls", "size=100KB"),
        ("no-sendfile", "size=1KB no-sendfile"),
        ("no-sendfile", "size=100KB no-sendfile"),
    ]
    assert all(cell["beside"] for cell in cells[:2])
    assert words.count("of which no sendfile:") == 2


@pytest.mark.parametrize("target", ["nginx", "caddy"])
def test_the_cpus_instructions_can_be_taken_away(tmp_path: Path, require_server: RequireServer, target: str) -> None:
    require_server(target)
    (cell,), _ = cells_of(tmp_path, f"{target}:tls", "--workload", "page", "--cpu-crypto", "off", *QUICK)
    assert cell["conditions"] | {"idle": ""} == {"cpu_crypto": "off", "idle": ""}
    shown = {proof["witness"]: proof["detail"] for proof in cell["proofs"] if "AES hidden" in proof["detail"]}
    assert "16 MB cost it" in shown["server"]
    assert "uses no AES instructions" in shown["client"]


def test_a_longer_way_for_both_arms(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    (cell,), _ = cells_of(tmp_path, "nginx:tls", "--workload", "page", "--delay", "5ms", *QUICK)
    assert all(facts["throughput"] < 4 / 0.005 for facts in cell["arms"].values())


# ── the user's ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def site_and_server(tmp_path: Path, require_server: RequireServer) -> Iterator[tuple[Site, Server]]:
    """A web server like a user's own, on two ports."""
    (tmp_path / "logs").mkdir()
    with (
        site(require_server("nginx"), tmp_path / "logs", {"/index.html": 10_000}) as web_site,
        web_site.started({"certificate": "ecdsa-p256"}) as server,
    ):
        (tmp_path / "ca.pem").write_bytes((web_site.secrets / "tls-ecdsa-p256" / "ca.pem").read_bytes())
        yield web_site, server


def urls(server: Server) -> tuple[str, str]:
    return f"http://localhost:{server.connection().port}/", f"https://localhost:{server.other_ports['tls']['port']}/"


def test_a_pair_of_urls_is_measured(tmp_path: Path, site_and_server: tuple[Site, Server]) -> None:
    plain, encrypted = urls(site_and_server[1])
    argv = ("run", "url:tls", "--url", plain, "--url", encrypted, "--ca", "ca.pem", *QUICK, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    fits(done.stdout)
    (cell,) = result_of(tmp_path)["cells"]
    heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert heard == {(arm, witness) for arm, witness in ALL if witness != "server"}
    assert "server_cpu_per_op" in cell["overhead"]
    assert cell["encryption"]["cipher"] == "TLS_AES_256_GCM_SHA384"
    assert "not-controlled" in {warning["code"] for warning in cell["warnings"]}
    assert "ciphercost sends requests and creates nothing" in done.stderr
    assert site_and_server[1].handshakes() != (0, 0)


def test_prove_needs_the_authority_and_says_yes_with_it(tmp_path: Path, site_and_server: tuple[Site, Server]) -> None:
    plain, encrypted = urls(site_and_server[1])
    without = ciphercost("prove", encrypted, cwd=tmp_path)
    assert without.returncode == 1
    assert "NOT PROVEN" in without.stdout
    assert "--ca" in without.stdout
    assert "(subject CN=localhost, issuer CN=ciphercost test CA)" in " ".join(without.stdout.split())
    with_it = ciphercost("prove", encrypted, "--ca", "ca.pem", cwd=tmp_path)
    assert with_it.returncode == 0, with_it.stdout + with_it.stderr
    assert "ENCRYPTED, proven" in with_it.stdout
    # nginx answers an unencrypted request on that port with 400, which says nothing about its http address.
    assert "it enforces encryption" not in with_it.stdout
    assert "the server answers 400" in with_it.stdout
    both = ciphercost("prove", plain, encrypted, "--ca", "ca.pem", cwd=tmp_path)
    assert both.returncode == 0, both.stdout + both.stderr
    assert "ENCRYPTED, proven by every witness" in both.stdout
    clear = ciphercost("prove", plain, "--ca", "ca.pem", cwd=tmp_path)
    assert clear.returncode == 1
    assert "NOT PROVEN" in clear.stdout
    assert "does not speak TLS on this port" in " ".join(clear.stdout.split())
    for done in (without, with_it, clear):
        fits(done.stdout + "\n-")


def test_prove_says_that_a_redirect_enforces_encryption(
    tmp_path: Path, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ciphercost.engines import nginx

    redirect = nginx.TLS + "\n        error_page 497 =301 https://$host:$server_port$request_uri;"
    monkeypatch.setattr(nginx, "TLS", redirect)
    with (
        site(require_server("nginx"), tmp_path, {"/index.html": 500}) as web_site,
        web_site.started({"certificate": "rsa2048"}) as server,
    ):
        ca = str(web_site.secrets / "tls-rsa2048" / "ca.pem")
        done = ciphercost("prove", urls(server)[1], "--ca", ca, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    assert "the server answers 301 (to https://localhost:" in words
    assert "refuses unencrypted connections: it enforces encryption" in words


def test_prove_says_that_a_site_asks_for_a_client_certificate(tmp_path: Path, require_server: RequireServer) -> None:
    with (
        site(require_server("nginx"), tmp_path, {"/index.html": 500}) as web_site,
        web_site.started({"certificate": "rsa2048", "client-cert": "on"}) as server,
    ):
        ca = str(next(web_site.secrets.rglob("ca.pem")))
        done = ciphercost("prove", urls(server)[1], "--ca", ca, cwd=tmp_path)
    assert done.returncode == 1
    assert "No required SSL certificate was sent" in done.stderr
    assert CERTIFICATE_WANTED in done.stderr


def test_prove_can_start_its_own_server(tmp_path: Path, name: str) -> None:
    done = ciphercost("prove", f"{name}:tls", "--set", "version=1.2", "--set", "cipher=chacha20", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305" in done.stdout
    assert "ENCRYPTED, proven by every witness" in done.stdout
