"""A user's own servers that ask for a client certificate: `prove` and its one clear line where the certificate is wrong."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import warm
from client_certs import ClientAuthority, Own
from conftest import RequireServer
from userservers import UserServer, user_server

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
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as found:
        require_certificate(found, authority.ca)
        yield found


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
    made = "CREATE USER wanted IDENTIFIED BY 'x' REQUIRE X509"
    # The authority joins the file that the server knows.
    server.ca_at_server.write_bytes(server.ca.read_bytes() + ca.read_bytes())
    again = "ALTER INSTANCE RELOAD TLS" if server.engine.name == "mysql" else "FLUSH SSL"
    server.ask(made, "GRANT SELECT ON ciphercost.* TO wanted", again, "SET GLOBAL require_secure_transport = ON")


def prove(server: UserServer, own: Own | None, more: Mapping[str, str], *words: str) -> tuple[int, str]:
    environment = {**os.environ, "PGPASSWORD": "", "MYSQL_PWD": "x", **more}
    argv = ["prove", server.url_for("wanted"), *server.by_ca, *(own.options if own else []), *words]
    done = warm.run(argv, env=environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("form", FORMS)
def test_a_client_is_let_in_by_its_certificate(server: UserServer, authority: ClientAuthority, form: str) -> None:
    status, said = prove(server, authority.client("wanted", PASSPHRASE)[form], ENVIRONMENT)
    assert (status, "ENCRYPTED, proven by" in said) == (0, True), said
    assert "it enforces encryption" in said
    assert "without a client certificate it refuses: " in said
    whose = "client certificate verified, of /O=Shop/CN=wanted"
    assert (whose if server.engine.name == "postgresql" else "does not report whose client certificate") in said


def test_what_is_wrong_with_a_certificate_is_one_line(
    server: UserServer, authority: ClientAuthority, tmp_path: Path
) -> None:
    own = authority.client("wanted", PASSPHRASE)
    stranger = ClientAuthority(tmp_path / "others", "another authority").client("wanted", PASSPHRASE)
    expired = authority.client("wanted", PASSPHRASE, expired=True)["pem"]
    other = Own(own["pem"].cert, stranger["pem"].key)
    wrong = {"CIPHERCOST_KEY_PASSPHRASE": "wrong"}
    for given, environment, status, text in (
        (None, ENVIRONMENT, 1, "client certificate"),
        (
            stranger["pem"],
            ENVIRONMENT,
            1,
            "refused the client certificate",
        ),
        (own["sealed"], wrong, 2, "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
        (own["pkcs12"], wrong, 2, "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
        (
            own["sealed"],
            {},
            2,
            "there is no terminal on which to ask for its passphrase; set CIPHERCOST_KEY_PASSPHRASE",
        ),
        (other, ENVIRONMENT, 2, "does not belong to the certificate"),
        (expired, ENVIRONMENT, 2, "(CN=wanted,O=Shop) has expired, on"),
        (Own(own["pem"].cert), ENVIRONMENT, 2, "has no private key in it; name its key with --key FILE"),
    ):
        found, said = prove(server, given, environment)
        assert (found, text in said) == (status, True), said
        assert "Traceback" not in said
        assert status == 1 or said.count("ciphercost: ") == 1, said
