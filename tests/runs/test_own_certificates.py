"""A user's own servers that ask for a client certificate: `prove` and its one clear line where the certificate is wrong."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import short
import warm
from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.host.pki import CLIENT
from ciphercost.load.plaintext_guard import CERTIFICATE_REFUSED
from ciphercost.model import run_directory
from ciphercost.model.secret import reveal
from client_certs import ClientAuthority, Own
from conftest import RequireServer
from test_real import SHORT, result_of
from userservers import UserServer, user_server
from web_servers import site

PASSPHRASE = "correct horse " + secrets.token_hex(4)
FORMS = ("pem", "one", "sealed", "pkcs12")
ENVIRONMENT = {"CIPHERCOST_KEY_PASSPHRASE": PASSPHRASE}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> ClientAuthority:
    return ClientAuthority(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "mysql"])
def server(
    request: pytest.FixtureRequest,
    authority: ClientAuthority,
    tmp_path_factory: pytest.TempPathFactory,
    require_server: RequireServer,
) -> Iterator[UserServer]:
    """A server on which `wanted`, with the least rights, logs in with a certificate, and nobody unencrypted."""
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as running:
        require_certificate(running, authority.ca)
        yield running


def require_certificate(server: UserServer, ca: Path) -> None:
    directory = server.server.directory
    assert directory
    if server.engine.name == "postgresql":
        trusted = directory / "clients-ca.pem"
        trusted.write_bytes(ca.read_bytes())
        trusted.chmod(0o644)
        rules = ("hostssl all wanted 127.0.0.0/8 cert", "hostssl all all 127.0.0.0/8 scram-sha-256")
        server.ask("CREATE ROLE wanted LOGIN", f"ALTER SYSTEM SET ssl_ca_file = '{trusted}'")
        (directory / "pg_hba.conf").write_text("\n".join(rules) + "\n")
        server.ask("SELECT pg_reload_conf()")
        return
    statement = "CREATE USER wanted IDENTIFIED BY 'x' REQUIRE X509"
    # The authority joins the file that the server knows.
    server.ca_at_server.write_bytes(server.ca.read_bytes() + ca.read_bytes())
    again = "ALTER INSTANCE RELOAD TLS" if server.engine.name == "mysql" else "FLUSH SSL"
    server.ask(statement, "GRANT SELECT ON ciphercost.* TO wanted", again, "SET GLOBAL require_secure_transport = ON")


def prove(server: UserServer, certificate: Own | None, more: Mapping[str, str], *words: str) -> tuple[int, str]:
    environment = {**os.environ, "PGPASSWORD": "", "MYSQL_PWD": "x", **more}
    argv = ["prove", server.url_for("wanted"), *server.by_ca, *(certificate.options if certificate else []), *words]
    done = warm.run(argv, env=environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("form", FORMS)
def test_a_client_is_let_in_by_its_certificate(server: UserServer, authority: ClientAuthority, form: str) -> None:
    status, output = prove(server, authority.client("wanted", PASSPHRASE)[form], ENVIRONMENT)
    assert (status, "ENCRYPTED, proven by" in output) == (0, True), output
    assert "it enforces encryption" in output
    assert "without a client certificate it refuses: " in output
    whose = "client certificate verified, of /O=Shop/CN=wanted"
    assert (whose if server.engine.name == "postgresql" else "does not report whose client certificate") in output


def test_what_is_wrong_with_a_certificate_is_one_line(
    server: UserServer, authority: ClientAuthority, tmp_path: Path
) -> None:
    forms = authority.client("wanted", PASSPHRASE)
    stranger = ClientAuthority(tmp_path / "others", "another authority").client("wanted", PASSPHRASE)
    expired = authority.client("wanted", PASSPHRASE, expired=True)["pem"]
    other = Own(forms["pem"].cert, stranger["pem"].key)
    wrong = {"CIPHERCOST_KEY_PASSPHRASE": "wrong"}
    for given, environment, status, text in (
        (None, ENVIRONMENT, 1, "client certificate"),
        (
            stranger["pem"],
            ENVIRONMENT,
            1,
            "refused the client certificate",
        ),
        (forms["sealed"], wrong, 2, "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
        (forms["pkcs12"], wrong, 2, "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
        (
            forms["sealed"],
            {},
            2,
            "for its passphrase; set CIPHERCOST_KEY_PASSPHRASE",
        ),
        (other, ENVIRONMENT, 2, "does not belong to the certificate"),
        (expired, ENVIRONMENT, 2, "(CN=wanted,O=Shop) has expired, on"),
        (Own(forms["pem"].cert), ENVIRONMENT, 2, "has no private key in it"),
    ):
        exit_status, output = prove(server, given, environment)
        assert (exit_status, text in output) == (status, True), output
        assert "Traceback" not in output
        assert status == 1 or output.count("ciphercost: ") == 1, output


@pytest.mark.usefixtures("require_java")
def test_a_jdbc_driver_presents_the_certificate(server: UserServer, authority: ClientAuthority) -> None:
    certificate = authority.client("wanted", PASSPHRASE)["sealed"]
    parts = urlsplit(server.url_for("wanted"))
    place = f"jdbc:{server.engine.name}://{parts.netloc.rpartition('@')[2]}{parts.path}?user=wanted&"
    # None of the drivers of MySQL and MariaDB takes an authority as PEM from its URL alone.
    verified = {
        "postgresql": f"sslmode=verify-full&sslrootcert={server.ca}",
        "mysql": "sslMode=REQUIRED",
        "mariadb": f"sslMode=verify-full&serverSslCert={server.ca}",
    }
    environment = {**os.environ, "MYSQL_PWD": "x", **ENVIRONMENT}
    argv = ["prove", place + verified[server.engine.name]]
    with_it, without = (warm.run([*argv, *more], env=environment) for more in (certificate.options, []))
    assert with_it.returncode == (1 if server.engine.name == "mysql" else 0), with_it.stdout + with_it.stderr
    assert "ENCRYPTED" in with_it.stdout
    assert PASSPHRASE not in with_it.stdout + with_it.stderr
    assert (without.returncode, "the application can't connect" in without.stderr) == (1, True), without.stdout


# ── servers that report nothing about a session ───────────────────────────────────────────────────────────────────────


def test_a_web_server_lets_the_certificate_in_and_nobody_else(require_server: RequireServer, tmp_path: Path) -> None:
    mutual = {"certificate": "ecdsa-p256", "client-cert": "on"}
    with (
        site(require_server("nginx"), tmp_path, {"/1KB": 1000}) as web_site,
        web_site.started(mutual) as running,
    ):
        place = web_site.secrets / "tls-ecdsa-p256-mutual"
        url = f"https://localhost:{running.other_ports['tls']['port']}/1KB"
        check(["prove", url, "--ca", place / "ca.pem"], place, tmp_path)
        clear = f"http://localhost:{running.connection().port}/1KB"
        check_run(["url:tls", "--url", clear, "--url", url, "--ca", place / "ca.pem"], tmp_path)
        stranger = ClientAuthority(tmp_path / "others").client("me")["pem"]
        refused = warm.run(["prove", url, "--ca", place / "ca.pem", *stranger.options])
        assert refused.returncode == 1
        assert CERTIFICATE_REFUSED in " ".join(refused.stderr.split())


def test_a_store_lets_the_certificate_in_and_nobody_else(require_server: RequireServer, tmp_path: Path) -> None:
    engine, installation = engines.get("valkey"), require_server("valkey")
    tls = mechanisms.get("tls")
    factors = tls.check({"certificate": "ecdsa-p256", "client-cert": "on"})
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine.initialise(installation, scratch / "server", run_supervisor)
        settings = tls.server_settings(engine, factors, scratch / "secrets")
        request = StartRequest(installation, scratch / "server", run_supervisor, settings=settings, logs=tmp_path)
        running = engine.start(request)
        try:
            place = scratch / "secrets" / "tls-ecdsa-p256-mutual"
            url = f"valkeys://localhost:{running.other_ports['tls']['port']}"
            password = {"VALKEYCLI_AUTH": reveal(running.connection().password)}
            check(["prove", url, "--ca", place / "ca.pem"], place, tmp_path, password)
            clear = f"valkey://localhost:{running.connection().port}"
            (tmp_path / "own.txt").write_text("PING\n")
            named: list[str | Path] = [
                "valkey:tls",
                "--url",
                clear,
                "--url",
                url,
                "--ca",
                place / "ca.pem",
                "--sql",
                "own.txt",
            ]
            check_run(named, tmp_path, password)
        finally:
            running.stop()


def check_run(argv: list[str | Path], directory: Path, more: Mapping[str, str] | None = None) -> None:
    """`run` measures with the certificate and key that `check` has put into `directory`, on a server that serves both arms by two
    ports, and says without them what the server wants.
    """
    environment = {**os.environ, **(more or {})}
    command = ["run", *argv, *SHORT]
    named = ("--cert", directory / "me.pem", "--key", directory / "me.key", "--json", "out.json")
    done = short.run([*command, *named], cwd=directory, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(directory)["cells"]
    assert cell["status"] == "ok"
    assert cell["arms"]["encrypted"]["errors"] == 0
    assert "client_certificate" in cell["encryption"]
    refused = short.run(command, cwd=directory, env=environment)
    assert refused.returncode == 1
    refusal = " ".join((refused.stderr + refused.stdout).split())
    assert "asks for a client certificate" in refusal
    assert "--cert FILE and --key FILE" in refusal


def check(argv: list[str | Path], place: Path, directory: Path, more: Mapping[str, str] | None = None) -> None:
    """`prove` succeeds with the certificate and key in `place`, and says without them what the server wants."""
    cert, key = directory / "me.pem", directory / "me.key"
    cert.write_bytes((place / CLIENT[0]).read_bytes())
    key.touch(0o600)
    key.write_bytes((place / CLIENT[1]).read_bytes())
    environment, named = {**os.environ, **(more or {})}, ("--cert", cert, "--key", key)
    let_in = warm.run([*argv, *named], env=environment)
    refused = warm.run(argv, env=environment)
    output = " ".join(let_in.stdout.split())
    assert (let_in.returncode, "ENCRYPTED, proven by" in output) == (0, True), output + let_in.stderr
    assert "without a client certificate it refuses: " in output
    assert refused.returncode == 1
    # Valkey may end the connection without the alert that says so; then this stands behind what else may be wrong.
    refusal = " ".join((refused.stderr + refused.stdout).split())
    assert "asks for a client certificate" in refusal
    assert "--cert FILE and --key FILE" in refusal
