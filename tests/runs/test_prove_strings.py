"""`ciphercost prove` with connection strings as users have them, on servers of their own: what does such a client get?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

import warm
from conftest import RequireServer
from connection_cases import DEMANDING, ON_A_SERVER, WITHOUT_TLS, Case
from userservers import UserServer, user_server


@pytest.fixture(scope="module", params=sorted(ON_A_SERVER))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[UserServer]:
    """A server whose connections may be encrypted or not."""
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def answers(url: str, cases: tuple[Case, ...], ca: Path, environment: Mapping[str, str], home: Path) -> list[str]:
    """What is wrong with the answers to these cases."""
    wrong = []
    for case in cases:
        query = case.query.format(ca=ca, none=home / "none")
        more = {name: value.format(ca=ca) for name, value in case.environment}
        done = warm.run(["prove", f"{url}?{query}"], cwd=home, env={**environment, **more, "HOME": str(home)})
        said = " ".join((done.stdout + done.stderr).split())
        missing = [text for text in case.texts if text not in said]
        if done.returncode != case.status or missing:
            wrong.append(f"{query}: exit {done.returncode}, without {missing}: {said}")
    return wrong


def test_a_string_gets_the_answer_that_its_client_gets(server: UserServer, tmp_path: Path) -> None:
    assert answers(server.url, ON_A_SERVER[server.engine.name], server.ca, server.environment, tmp_path) == []


@pytest.mark.parametrize(("name", "setting"), [("postgresql", "off"), ("mariadb", "OFF")])
def test_a_server_without_tls_is_no_reason_to_call_a_string_encrypted(
    name: str, setting: str, tmp_path: Path, require_server: RequireServer
) -> None:
    require_server(name)
    with user_server(name, tmp_path, settings={"ssl": setting}) as server:
        assert answers(server.url, WITHOUT_TLS[name], server.ca, server.environment, tmp_path) == []


def test_a_server_that_demands_more_is_said_so_with_what_to_do(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server:
        assert server.server.directory
        clients = "127.0.0.0/8"
        rules = (f"hostssl all wanted {clients} cert", f"hostssl all all {clients} scram-sha-256")
        server.ask("CREATE ROLE wanted LOGIN", f"ALTER SYSTEM SET ssl_ca_file = '{server.ca_at_server}'")
        (server.server.directory / "pg_hba.conf").write_text("\n".join(rules) + "\n")
        server.ask("SELECT pg_reload_conf()")
        assert answers(server.url, DEMANDING, server.ca, server.environment, tmp_path) == []

        wanted = warm.run(
            ["prove", f"{server.url_for('wanted')}?sslmode=require"],
            cwd=tmp_path,
            env={**os.environ, "PGPASSWORD": "x"},
        )
        assert wanted.returncode == 1
        assert "The server asks for a client certificate, which ciphercost can't present yet" in wanted.stderr

        without = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"} | {"HOME": str(tmp_path)}
        nobody = warm.run(["prove", f"{server.url}?sslmode=require"], cwd=tmp_path, env=without)
        assert nobody.returncode == 1
        assert "Set PGPASSWORD, or put it into ~/.pgpass" in nobody.stderr
        assert "Is the server running" not in nobody.stderr

        run = [
            "run",
            "postgresql:tls",
            "--url",
            server.url,
            "--ca",
            server.ca,
            "--quick",
            "--time",
            "4s",
            "--no-progress",
        ]
        done = warm.run(run, cwd=tmp_path, env={**os.environ, **server.environment})
        said = " ".join(done.stdout.split())
        assert done.returncode == 1, done.stdout + done.stderr
        assert "the server refuses unencrypted connections, so it has no unencrypted arm to measure" in said
        version = server.installation.version.partition(".")[0]
        assert f"ciphercost run postgresql@{version}:tls" in said


def test_authorities_are_taken_in_every_form(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server:
        der = tmp_path / "ca.der"
        der.write_bytes(x509.load_pem_x509_certificate(server.ca.read_bytes()).public_bytes(Encoding.DER))
        hashed = tmp_path / "hashed"
        hashed.mkdir()
        (hashed / "4f316efb.0").write_bytes(server.ca.read_bytes())
        store = tmp_path / "store.p12"
        store.write_bytes(bytes.fromhex("3082038002010330820346"))
        for ca, status, text in (
            (der, 0, "ENCRYPTED, proven by every witness"),
            (hashed, 0, "ENCRYPTED, proven by every witness"),
            (store, 2, f"--ca {store}: this is a PKCS#12 file; convert it with: openssl pkcs12 -in {store}"),
        ):
            done = warm.run(["prove", server.url, "--ca", ca], cwd=tmp_path, env={**os.environ, **server.environment})
            assert (done.returncode, text in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
