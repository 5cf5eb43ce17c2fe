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
from ciphercost.runs import prove
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
def user_server(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Own]:
    name, _, version = request.param.partition("@")
    directory = tmp_path_factory.mktemp(name)
    clients = ClientAuthority(directory / "clients")
    with server_copies(require_server(name, version), directory) as home:
        server_pki = pki.Pki(home.secrets / "own", "ecdsa-p256")
        ca = directory / "ca.pem"
        ca.write_bytes(server_pki.ca.read_bytes())
        # The server trusts the authority of its clients too.
        server_pki.ca.write_bytes(ca.read_bytes() + clients.ca.read_bytes())
        settings = HasTls.of(home.engine).tls_settings(server_pki, mechanisms.get("tls").check({}))
        with home.started(settings | {"socket": "s"}) as server:
            with Agent() as agent:
                agent.connect("admin", server.connection())
                for statement in ACCOUNTS:
                    agent.query("admin", statement)
            yield Own(name, home, server, ca, clients)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", WORD)


def words(text: str) -> str:
    """The text in one line, without the banner's marks."""
    return " ".join(text.replace("===", " ").split())


def test_the_socket_is_compared_with_tcp_and_tls_and_everything_says_so(user_server: Own, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("\\set id random(1, 2)\nSELECT name FROM items WHERE id = :id;\n")
    done = measured(*user_server.argv("--sql", "own.sql", "--json", "out.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert BY_SOCKET in words(done.stderr), "the banner"
    assert BY_SOCKET in words(done.stdout), "the report"
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    warnings = {warning["code"]: warning["text"] for warning in cell["warnings"]}
    assert BY_SOCKET in warnings["by-unix-socket"]
    assert "includes the cost of TCP" in warnings["by-unix-socket"]
    assert any(line.endswith(" Unix socket | TCP") for line in cell["config_diff"])
    proofs = {(proof["arm"], proof["witness"]): proof for proof in cell["proofs"]}
    assert all(proof["passed"] for proof in proofs.values())
    assert proofs["plain", "wire"]["detail"].startswith("by the Unix socket: ")
    assert "visible in both directions" in proofs["plain", "wire"]["detail"]
    assert proofs["plain", "client"]["detail"] == "unencrypted, by the server's Unix socket"
    assert proofs["plain", "server"]["detail"] == "the server reports: not encrypted"
    assert "TLS records" in proofs["encrypted", "wire"]["detail"]
    plain, encrypted = (cell["arms"][arm] for arm in ("plain", "encrypted"))
    assert 0 < plain["wire_bytes_per_op"] < encrypted["wire_bytes_per_op"]
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0


@pytest.mark.parametrize("workload", ["connect", "point-select"])
def test_connections_and_tables_of_our_own_go_by_the_socket_too(
    user_server: Own, tmp_path: Path, workload: str
) -> None:
    done = measured(*user_server.argv("--workload", workload, "--clients", "8", "--json", "out.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert cell["arms"]["plain"]["wire_bytes_per_op"] > 0
    with Agent() as agent:
        agent.connect("look", user_server.server.connection())
        assert "ciphercost_" not in str(agent.query("look", "SHOW DATABASES LIKE 'ciphercost\\_%'"))
    cleaned = ciphercost("clean", "--url", user_server.url(), "--ca", str(user_server.ca), cwd=tmp_path)
    assert (cleaned.returncode, "Nothing of ciphercost's" in cleaned.stdout) == (0, True), cleaned.stderr


def test_resumption_on_a_users_own_server_is_proven_before_it_is_measured(user_server: Own, tmp_path: Path) -> None:
    url = user_server.url("other", "127.0.0.1").partition("?")[0].removesuffix("shop")
    argv = user_server.argv("--workload", "connect", "--set", "resumption=on", "--json", "out.json", url=url)
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    by = "server and the client" if user_server.name == "mysql" else "client"
    (proof,) = (proof for proof in cell["proofs"] if (proof["arm"], proof["witness"]) == ("encrypted", "server"))
    assert f"session of the first, by the {by}" in proof["detail"]
    assert {warning["code"] for warning in cell["warnings"]}.isdisjoint({"not-resumed", "by-unix-socket"})


def test_a_client_certificate_is_for_tcp_alone(user_server: Own, tmp_path: Path) -> None:
    """An account with REQUIRE X509 can't log in unencrypted; that of the same name at localhost can, by the socket."""
    cert = user_server.clients.client("certified")["pem"]
    argv = user_server.argv(
        "--workload", "connect", "--json", "out.json", *cert.options, url=user_server.url("certified")
    )
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["status"], cell["arms"]["encrypted"]["errors"]) == ("ok", 0)
    assert "client_certificate" in cell["encryption"]
    without = measured(*user_server.argv("--workload", "connect", url=user_server.url("certified")), cwd=tmp_path)
    assert without.returncode == 1
    assert "--cert" in words(without.stderr + without.stdout)


def test_prove_has_the_socket_as_its_control(user_server: Own, tmp_path: Path) -> None:
    done = ciphercost("prove", user_server.url(host="127.0.0.1"), "--ca", str(user_server.ca), cwd=tmp_path)
    output = words(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ENCRYPTED, proven by every witness" in output
    assert "ok wire: by the Unix socket: " in output
    assert "visible in both directions" in output
    assert prove.BY_SOCKET in output
    assert "connect to 127.0.0.1 by TCP" in output
    assert prove.ALSO_CLEAR not in output
    local = ciphercost("prove", user_server.url(), "--ca", str(user_server.ca), cwd=tmp_path)
    assert (local.returncode, "NOT ENCRYPTED" in local.stdout) == (1, True)
    assert f"write 127.0.0.1:{user_server.server.connection().port} for the host and keep the socket" in words(
        local.stdout
    )


@pytest.mark.parametrize(("user", "account"), [("other", "'other'@'localhost'"), ("remote", "'remote'@'localhost'")])
def test_an_account_that_the_socket_does_not_let_in_is_named(
    user_server: Own, tmp_path: Path, user: str, account: str
) -> None:
    url = user_server.url(user).replace("/shop?", "/?")
    done = measured(*user_server.argv("--workload", "connect", url=url), cwd=tmp_path)
    output = words(done.stdout + done.stderr)
    assert done.returncode == 1, output
    assert f"an account that fits {account}" in output
    assert "by a Unix socket, by TCP" in output
    assert "refuses unencrypted connections" not in output
    proven = ciphercost("prove", url.replace("localhost", "127.0.0.1"), "--ca", str(user_server.ca), cwd=tmp_path)
    assert proven.returncode == 0, proven.stdout + proven.stderr
    assert "the server may have another account (USER@localhost)" in words(proven.stdout)
    assert "the wire witness had no control" in words(proven.stdout)


def test_a_socket_of_another_server_or_of_none_is_refused(user_server: Own, tmp_path: Path) -> None:
    with user_server.home.started({"socket": "s"}) as other:
        assert other.directory is not None
        place = other.directory / "data" / "s"
        done = ciphercost(*user_server.argv("--workload", "connect", url=user_server.url(socket=place)), cwd=tmp_path)
        assert (done.returncode, "are two servers" in done.stderr) == (2, True), done.stdout + done.stderr
    (tmp_path / "file").touch()
    for socket, why in (
        (tmp_path / "nobody", "No such file"),
        (tmp_path / "file", "refused"),
        (tmp_path / ("x" * 120), "path too long"),
    ):
        done = ciphercost(*user_server.argv("--workload", "connect", url=user_server.url(socket=socket)), cwd=tmp_path)
        assert (done.returncode, why in done.stderr) == (2, True), done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()[-1:]) == 1
