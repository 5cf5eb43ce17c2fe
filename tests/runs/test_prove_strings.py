"""`ciphercost prove` with connection strings as users have them, on servers of their own: what does such a client get?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

import cases
import warm
from ciphercost.load.plaintext_guard import CERTIFICATE_WANTED
from conftest import RequireServer
from connection_cases import DEMANDING, ON_A_SERVER, WITHOUT_TLS, Case
from userservers import UserServer, user_server


@pytest.fixture(scope="module", params=sorted(ON_A_SERVER))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[UserServer]:
    """A server whose connections may be encrypted or not."""
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def answers(
    server: UserServer,
    given: tuple[Case, ...],
    environment: Mapping[str, str],
    home: Path,
    record: cases.Record,
    where: str = "",
) -> list[str]:
    """What is wrong with the answers to these cases. `where`: what is special about the server."""
    wrong, ca, url = [], server.ca, server.url
    for case in given:
        query = case.query.format(ca=ca, none=home / "none")
        more = {name: value.format(ca=ca) for name, value in case.environment}
        done = warm.run(["prove", f"{url}?{query}"], cwd=home, env={**environment, **more, "HOME": str(home)})
        output = " ".join((done.stdout + done.stderr).split())
        shown = " ".join(
            [f"?{case.query}"] * bool(case.query) + [f"{name}={value}" for name, value in case.environment]
        )
        answer = next((text for text in case.texts if text in output), output)
        name = f"{server.engine.name}{where} {shown.format(ca='CA', none='')}"
        cases.record(record, "connections", name, f"{answer} (exit status {done.returncode})")
        missing = [text for text in case.texts if text not in output]
        if done.returncode != case.status or missing:
            wrong.append(f"{query}: exit {done.returncode}, without {missing}: {output}")
    return wrong


def test_a_string_gets_the_answer_that_its_client_gets(
    server: UserServer, tmp_path: Path, record_property: cases.Record
) -> None:
    given = ON_A_SERVER[server.engine.name]
    assert answers(server, given, server.environment, tmp_path, record_property) == []


def test_keywords_get_the_same_answer_as_a_url(
    tmp_path: Path, require_server: RequireServer, record_property: cases.Record
) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server:
        parts = urlsplit(server.url)
        string = f"host={parts.hostname} port={parts.port} user={parts.username} dbname={parts.path.strip('/')}"
        for more, expected in (
            ("sslmode=disable", "NOT ENCRYPTED"),
            (f"sslmode=verify-full sslrootcert='{server.ca}'", "proven"),
        ):
            environment = {**os.environ, **server.environment, "HOME": str(tmp_path)}
            by_url, by_words = (
                warm.run(["prove", text], cwd=tmp_path, env=environment)
                for text in (f"{server.url}?{more.replace(' ', '&').replace(chr(39), '')}", f"{string} {more}")
            )
            assert expected in by_words.stdout
            assert (by_words.returncode, by_words.stderr) == (by_url.returncode, by_url.stderr)
            answer = next(text for text in ("NOT ENCRYPTED", "proven") if text in by_words.stdout)
            cases.record(record_property, "connections", f"host=… {more.partition('=/')[0]}", answer)


@pytest.mark.parametrize(
    ("name", "levels"),
    [("postgresql", ["sslmode=disable", "sslmode=allow", "sslmode=prefer"]), ("mariadb", ["ssl-mode=PREFERRED"])],
)
def test_an_authority_beside_a_string_that_verifies_nothing_is_said_to_have_no_effect(
    name: str, levels: list[str], tmp_path: Path, require_server: RequireServer
) -> None:
    require_server(name)
    with user_server(name, tmp_path) as server:
        environment = {**os.environ, **server.environment, "HOME": str(tmp_path)}
        for level in levels:
            url = f"{server.url}{'&' if '?' in server.url else '?'}{level}"
            beside_it: tuple[list[str | Path], ...] = ([], ["--ca", server.ca])
            alone, beside = (warm.run(["prove", url, *more], cwd=tmp_path, env=environment) for more in beside_it)
            assert alone.returncode == beside.returncode == 1, beside.stdout + beside.stderr
            assert "--ca" not in alone.stdout
            # A long path breaks at its slashes.
            assert f"--ca{server.ca}:noeffect,sincewith{level}" in "".join(beside.stdout.split())


@pytest.mark.parametrize(("name", "setting"), [("postgresql", "off"), ("mariadb", "OFF")])
def test_a_server_without_tls_is_no_reason_to_call_a_string_encrypted(
    name: str, setting: str, tmp_path: Path, require_server: RequireServer, record_property: cases.Record
) -> None:
    require_server(name)
    with user_server(name, tmp_path, settings={"ssl": setting}) as server:
        given = WITHOUT_TLS[name]
        assert answers(server, given, server.environment, tmp_path, record_property, " without TLS") == []


def test_a_server_that_demands_more_is_said_so_with_what_to_do(
    tmp_path: Path, require_server: RequireServer, record_property: cases.Record
) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server:
        assert server.server.directory
        clients = "127.0.0.0/8"
        rules = (f"hostssl all wanted {clients} cert", f"hostssl all all {clients} scram-sha-256")
        server.ask("CREATE ROLE wanted LOGIN", f"ALTER SYSTEM SET ssl_ca_file = '{server.ca_at_server}'")
        (server.server.directory / "pg_hba.conf").write_text("\n".join(rules) + "\n")
        server.ask("SELECT pg_reload_conf()")
        assert answers(server, DEMANDING, server.environment, tmp_path, record_property, " that demands TLS") == []

        wanted = warm.run(
            ["prove", f"{server.url_for('wanted')}?sslmode=require"],
            cwd=tmp_path,
            env={**os.environ, "PGPASSWORD": "x"},
        )
        assert wanted.returncode == 1
        assert CERTIFICATE_WANTED in wanted.stderr
        cases.record(
            record_property, "connections", "a server that asks for a client certificate", cases.flat(wanted.stderr)
        )

        without = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"} | {"HOME": str(tmp_path)}
        nobody = warm.run(["prove", f"{server.url}?sslmode=require"], cwd=tmp_path, env=without)
        assert nobody.returncode == 1
        assert "Set PGPASSWORD, or put it into ~/.pgpass" in nobody.stderr
        cases.record(record_property, "connections", "no password, no terminal", cases.flat(nobody.stderr))
        assert "Is the server running" not in nobody.stderr

        run: list[str | Path] = [
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
        output = " ".join(done.stdout.split())
        assert done.returncode == 1, done.stdout + done.stderr
        refused = "the server refuses unencrypted connections, so it has no unencrypted arm to measure"
        assert refused in output
        cases.record(record_property, "connections", "run on a server that refuses unencrypted connections", refused)
        version = server.installation.version.partition(".")[0]
        assert f"ciphercost run postgresql@{version}:tls" in output


def test_authorities_are_taken_in_every_form(
    tmp_path: Path, require_server: RequireServer, record_property: cases.Record
) -> None:
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
            cases.record(
                record_property, "connections", f"--ca {ca.name}", cases.flat(text.replace(f"{tmp_path}/", ""))
            )
            assert (done.returncode, text in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
