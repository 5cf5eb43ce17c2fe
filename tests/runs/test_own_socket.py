"""A MySQL or MariaDB that the user runs: the plain arm by its Unix-domain socket, the encrypted one by TCP with TLS.

By TCP the user's account requires TLS, or a client certificate too, so an unencrypted arm that went by TCP would be refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ciphercost import mechanisms
from ciphercost.engines import Server
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import pki
from ciphercost.load.agent import Agent
from client_certs import ClientAuthority
from conftest import RequireServer
from mysql_servers import ServerCopies, server_copies
from test_real import SHORT, ciphercost, measured, result_of

WORD = "a word"
ACCOUNTS = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.items (id int PRIMARY KEY, name varchar(20))",
    "INSERT INTO shop.items VALUES (1, 'one'), (2, 'two')",
    *(
        f"CREATE USER {user}@{host} IDENTIFIED BY '{word}'{more}"
        for user, host, word, more in (
            ("me", "localhost", WORD, ""),
            ("me", "'127.%'", WORD, " REQUIRE SSL"),
            ("certified", "localhost", WORD, ""),
            ("certified", "'127.%'", WORD, " REQUIRE X509"),
            ("other", "localhost", "another word", ""),
            ("other", "'127.%'", WORD, ""),
            ("remote", "'127.%'", WORD, ""),
        )
    ),
    *(
        f"GRANT SELECT ON shop.items TO {user}@{host}"
        for user in ("me", "certified")
        for host in ("localhost", "'127.%'")
    ),
    "GRANT ALL ON `ciphercost\\_%`.* TO me@localhost",
    "GRANT ALL ON `ciphercost\\_%`.* TO me@'127.%'",
)
BY_SOCKET = "the plain arm connects by the server's Unix socket, the encrypted arm by TCP with TLS"


class Own(NamedTuple):
    """A server like a user's own."""

    name: str
    home: ServerCopies
    server: Server
    ca: Path
    clients: ClientAuthority

    @property
    def socket(self) -> Path:
        assert self.server.directory is not None
        return self.server.directory / "data" / "s"

    def url(self, user: str = "me", host: str = "localhost", socket: Path | None = None) -> str:
        port = self.server.connection().port
        return f"{self.name}://{user}@{host}:{port}/shop?socket={socket or self.socket}"

    def argv(self, *more: str, url: str = "") -> tuple[str, ...]:
        return ("run", f"{self.name}:tls", "--url", url or self.url(), "--ca", str(self.ca), *more, *SHORT)


@pytest.fixture(scope="module", params=["mysql@9.7", "mariadb@11.8"])
def own(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Own]:
    name, _, version = request.param.partition("@")
    directory = tmp_path_factory.mktemp(name)
    clients = ClientAuthority(directory / "clients")
    with server_copies(require_server(name, version), directory) as home:
        made = pki.Pki(home.secrets / "own", "ecdsa-p256")
        ca = directory / "ca.pem"
        ca.write_bytes(made.ca.read_bytes())
        # The server trusts the authority of its clients too.
        made.ca.write_bytes(ca.read_bytes() + clients.ca.read_bytes())
        settings = HasTls.of(home.engine).tls_settings(made, mechanisms.get("tls").check({}))
        with home.started(settings | {"socket": "s"}) as server:
            with Agent() as agent:
                agent.connect("admin", server.connection())
                for each in ACCOUNTS:
                    agent.query("admin", each)
            yield Own(name, home, server, ca, clients)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", WORD)


def words(text: str) -> str:
    """The text in one line, without the banner's marks."""
    return " ".join(text.replace("===", " ").split())


def test_the_socket_is_compared_with_tcp_and_tls_and_everything_says_so(own: Own, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("\\set id random(1, 2)\nSELECT name FROM items WHERE id = :id;\n")
    done = measured(*own.argv("--sql", "own.sql", "--json", "out.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert BY_SOCKET in words(done.stderr), "the banner"
    assert BY_SOCKET in words(done.stdout), "the report"
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    warnings = {each["code"]: each["text"] for each in cell["warnings"]}
    assert BY_SOCKET in warnings["by-unix-socket"]
    assert "includes the cost of TCP" in warnings["by-unix-socket"]
    assert "connected by: the server's Unix socket | TCP" in cell["config_diff"]
    proofs = {(each["arm"], each["witness"]): each for each in cell["proofs"]}
    assert all(each["passed"] for each in proofs.values())
    assert proofs["plain", "wire"]["detail"].startswith("by the Unix socket: the canary is visible in both directions")
    assert proofs["plain", "client"]["detail"] == "unencrypted, by the server's Unix socket"
    assert proofs["plain", "server"]["detail"] == "the server reports: not encrypted"
    assert "TLS records" in proofs["encrypted", "wire"]["detail"]
    plain, encrypted = (cell["arms"][arm] for arm in ("plain", "encrypted"))
    assert 0 < plain["wire_bytes_per_op"] < encrypted["wire_bytes_per_op"]
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0


@pytest.mark.parametrize("workload", ["connect", "point-select"])
def test_connections_and_tables_of_our_own_go_by_the_socket_too(own: Own, tmp_path: Path, workload: str) -> None:
    done = measured(*own.argv("--workload", workload, "--clients", "8", "--json", "out.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert {arm: each["errors"] for arm, each in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert cell["arms"]["plain"]["wire_bytes_per_op"] > 0
    with Agent() as agent:
        agent.connect("look", own.server.connection())
        assert "ciphercost_" not in str(agent.query("look", "SHOW DATABASES LIKE 'ciphercost\\_%'"))
    cleaned = ciphercost("clean", "--url", own.url(), "--ca", str(own.ca), cwd=tmp_path)
    assert (cleaned.returncode, "Nothing of ciphercost's" in cleaned.stdout) == (0, True), cleaned.stderr


def test_resumption_on_a_users_own_server_is_proven_before_it_is_measured(own: Own, tmp_path: Path) -> None:
    url = own.url("other", "127.0.0.1").partition("?")[0].removesuffix("shop")
    argv = own.argv("--workload", "connect", "--set", "resumption=on", "--json", "out.json", url=url)
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    by = "server and the client" if own.name == "mysql" else "client"
    (proof,) = (each for each in cell["proofs"] if (each["arm"], each["witness"]) == ("encrypted", "server"))
    assert f"a second connection resumed the session of the first, by the {by}" in proof["detail"]
    assert {each["code"] for each in cell["warnings"]}.isdisjoint({"not-resumed", "by-unix-socket"})


def test_a_client_certificate_is_for_tcp_alone(own: Own, tmp_path: Path) -> None:
    """An account with REQUIRE X509 can't log in unencrypted; that of the same name at localhost can, by the socket."""
    cert = own.clients.client("certified")["pem"]
    argv = own.argv("--workload", "connect", "--json", "out.json", *cert.options, url=own.url("certified"))
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["status"], cell["arms"]["encrypted"]["errors"]) == ("ok", 0)
    assert "client_certificate" in cell["encryption"]
    without = measured(*own.argv("--workload", "connect", url=own.url("certified")), cwd=tmp_path)
    assert without.returncode == 1
    assert "--cert" in words(without.stderr + without.stdout)


def test_prove_has_the_socket_as_its_control(own: Own, tmp_path: Path) -> None:
    done = ciphercost("prove", own.url(host="127.0.0.1"), "--ca", str(own.ca), cwd=tmp_path)
    said = words(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ENCRYPTED, proven by every witness" in said
    assert "ok wire: by the Unix socket: the canary is visible in both directions" in said
    assert "The control above is the server's Unix socket" in said
    assert "own clients use it for localhost only, and connect to 127.0.0.1 by TCP" in said
    assert "The server accepted an unencrypted one too" not in said
    local = ciphercost("prove", own.url(), "--ca", str(own.ca), cwd=tmp_path)
    assert (local.returncode, "NOT ENCRYPTED" in local.stdout) == (1, True)
    assert f"write 127.0.0.1:{own.server.connection().port} for the host and keep the socket" in words(local.stdout)


@pytest.mark.parametrize(("user", "account"), [("other", "'other'@'localhost'"), ("remote", "'remote'@'localhost'")])
def test_an_account_that_the_socket_does_not_let_in_is_named(own: Own, tmp_path: Path, user: str, account: str) -> None:
    url = own.url(user).replace("/shop?", "/?")
    done = measured(*own.argv("--workload", "connect", url=url), cwd=tmp_path)
    said = words(done.stdout + done.stderr)
    assert done.returncode == 1, said
    assert f"The server looked for an account that fits {account}" in said
    assert "by a Unix socket, by TCP and from another host it may find another one" in said
    assert "refuses unencrypted connections" not in said
    proven = ciphercost("prove", url.replace("localhost", "127.0.0.1"), "--ca", str(own.ca), cwd=tmp_path)
    assert proven.returncode == 0, proven.stdout + proven.stderr
    assert "the server may have another account (USER@localhost)" in words(proven.stdout)
    assert "the wire witness had no control" in words(proven.stdout)


def test_a_socket_of_another_server_or_of_none_is_refused(own: Own, tmp_path: Path) -> None:
    with own.home.started({"socket": "s"}) as other:
        assert other.directory is not None
        place = other.directory / "data" / "s"
        done = ciphercost(*own.argv("--workload", "connect", url=own.url(socket=place)), cwd=tmp_path)
        assert (done.returncode, "are two servers" in done.stderr) == (2, True), done.stdout + done.stderr
    (tmp_path / "file").touch()
    for socket, why in (
        (tmp_path / "nobody", "No such file"),
        (tmp_path / "file", "refused"),
        (tmp_path / ("x" * 120), "path too long"),
    ):
        done = ciphercost(*own.argv("--workload", "connect", url=own.url(socket=socket)), cwd=tmp_path)
        assert (done.returncode, why in done.stderr) == (2, True), done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()[-1:]) == 1
