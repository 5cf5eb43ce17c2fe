"""A user's own server that enforces TLS: `run` says what to do, and --versus measures it with two encrypted arms; nothing goes unencrypted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import odd_sites
from ciphercost.host import pki
from conftest import RequireServer
from odd_sites import pair
from stores import store
from test_own_keys import OWN
from test_real import SHORT, ciphercost, measured, result_of
from userservers import UserServer, user_server

VERSUS = ("--versus", "version=1.2")


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[UserServer]:
    """A server on which nobody logs in without TLS."""
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as running:
        if request.param == "postgresql":
            assert running.server.directory is not None
            (running.server.directory / "pg_hba.conf").write_text("hostssl all all 127.0.0.0/8 scram-sha-256\n")
            running.ask("SELECT pg_reload_conf()")
        else:
            running.ask("SET GLOBAL require_secure_transport = ON")
        yield running


def run(server: UserServer, cwd: Path, *more: str) -> tuple[int, str]:
    argv = ("run", f"{server.engine.name}:tls", "--url", server.url, *server.by_ca, *SHORT, "--json", "out.json", *more)
    done = measured(*argv, cwd=cwd, **server.environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_server_that_enforces_tls_is_measured_with_two_encrypted_arms(server: UserServer, tmp_path: Path) -> None:
    status, output = run(server, tmp_path)
    assert status == 1
    assert "refuses unencrypted connections" in output
    assert "--versus version=1.2" in output
    status, output = run(server, tmp_path, *VERSUS)
    assert status == 0, output
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert [cell["pair"][place]["encryption"]["protocol"] for place in ("reference", "compared")] == [
        "TLSv1.2",
        "TLSv1.3",
    ]
    assert {proof["arm"]: proof["passed"] for proof in cell["proofs"]} == {"reference": True, "compared": True}


def test_an_encrypted_arm_that_the_server_refuses_is_one_line(server: UserServer, tmp_path: Path) -> None:
    status, output = run(
        server, tmp_path, "--set", "version=1.2", "--set", "cipher=aes256-cbc", "--versus", "version=1.3"
    )
    assert status == 2, output
    assert "CBC" in output


def test_the_tls_port_of_a_store_is_enough(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> None:
    require_server("valkey")
    (tmp_path / "own.txt").write_text(OWN)
    with store("valkey", tmp_path_factory.mktemp("store")) as user_store:
        urls = ("--url", user_store.encrypted, "--ca", str(user_store.ca), "--sql", "own.txt")
        done = measured(
            "run",
            user_store.target,
            *urls,
            *VERSUS,
            *SHORT,
            "--json",
            "out.json",
            cwd=tmp_path,
            **user_store.environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (cell,) = result_of(tmp_path)["cells"]
        assert (cell["status"], cell["pair"]["reference"]["name"]) == ("ok", "TLS 1.2")
        refused = ciphercost("run", user_store.target, *urls, *SHORT, cwd=tmp_path, **user_store.environment)
        assert refused.returncode == 2
        assert "--versus" in refused.stderr
        both = ciphercost(
            "run", user_store.target, "--url", user_store.clear, *urls, *VERSUS, cwd=tmp_path, **user_store.environment
        )
        assert (both.returncode, "nothing goes to an address without TLS" in " ".join(both.stderr.split())) == (2, True)


def test_the_https_address_of_a_site_is_enough(tmp_path: Path) -> None:
    site_pki = pki.Pki(tmp_path / "certificates", "ecdsa-p256", owner=(os.geteuid(), os.getegid()))
    with pair(odd_sites.steady, (site_pki.certificate, site_pki.key)) as site:
        _, encrypted = site.urls
        argv = (
            "run",
            "url:tls",
            "--url",
            encrypted,
            "--ca",
            str(site_pki.ca),
            "--quick",
            "--time",
            "3s",
            "--no-latency",
        )
        done = measured(*argv, "--no-progress", *VERSUS, "--json", "out.json", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        plain, _ = site
        assert plain.asked == 0
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["pair"]["compared"]["name"] == "TLS 1.3"
