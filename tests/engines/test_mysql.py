"""MySQL and MariaDB: finding and starting them, their TLS, and the error messages."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from ciphercost import engines
from ciphercost.engines import Server, StartRequest
from ciphercost.engines._mysql.family import CERTIFIED, DEFAULT_CONNECTIONS, USER
from ciphercost.engines._mysql.greeting import greeting, parse
from ciphercost.engines._mysql.running import RunningServer
from ciphercost.engines._network import PASSWORD_FILE
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import run_ownership
from ciphercost.host.ports import listener
from ciphercost.host.tls_names import SUITES_12, suite
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string.mysql import password_found
from ciphercost.load.connection_string.option_files import GROUPS, parse_options, read
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.secret import reveal
from conftest import RequireServer
from enterable import enterable
from mysql_servers import SERVERS, TLS, ServerCopies, server_copies
from processes import opened


@pytest.fixture(scope="module", params=SERVERS)
def home(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerCopies]:
    name, _, version = request.param.partition("@")
    with server_copies(require_server(name, version), tmp_path_factory.mktemp("logs")) as home:
        yield home


@pytest.fixture(scope="module")
def plain_server(home: ServerCopies) -> Iterator[Server]:
    with home.started() as server:
        yield server


@pytest.fixture(scope="module")
def secured(home: ServerCopies) -> Iterator[Server]:
    with home.started(certificate="ecdsa-p256") as server:
        yield server


def port_of(server: Server) -> int:
    port = server.connection().port
    assert isinstance(port, int)
    return port


# ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_runs_unprivileged_on_loopback_only(home: ServerCopies, plain_server: Server) -> None:
    server = plain_server
    uid = (run_ownership.server_user() or (os.geteuid(), 0))[0]
    assert Path(f"/proc/{server.pid}").stat().st_uid == uid
    assert listener("127.0.0.1", port_of(server), ("mysqld", "mariadbd")) == server.pid
    inodes = opened(server.pid)
    tcp = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in inodes
    ]
    assert tcp == [f"0100007F:{port_of(server):04X}"]
    bound = [line for line in Path("/proc/net/unix").read_text().splitlines() if len(line.split()) > 7]
    assert not [line for line in bound if f"socket:[{line.split()[6]}]" in inodes]
    assert [path for path in server.cgroups if str(server.pid) not in (path / "cgroup.procs").read_text().split()] == []
    assert server.library.startswith("OpenSSL 3.")


def test_the_password_is_random_and_stored_only_beside_the_data(plain_server: Server) -> None:
    assert plain_server.directory is not None
    path = plain_server.directory / PASSWORD_FILE
    password = path.read_text()
    assert reveal(plain_server.connection().password) == password
    assert path.stat().st_mode & 0o777 == 0o600
    assert password not in Path(f"/proc/{plain_server.pid}/cmdline").read_text()
    assert {entry.name for entry in plain_server.directory.iterdir()} == {"data", "tmp", PASSWORD_FILE, "server.pid"}


def test_only_our_user_can_log_in(home: ServerCopies, plain_server: Server) -> None:
    accounts = "SELECT user, host FROM mysql.user ORDER BY user"
    allowed = home.client(plain_server, accounts, *home.clear())
    assert allowed.returncode == 0, allowed.stderr
    names = {line.split("\t")[0] for line in allowed.stdout.splitlines()}
    assert names - {"mysql.infoschema", "mysql.session", "mysql.sys", "mariadb.sys", "root"} == {USER, CERTIFIED}
    for user in (CERTIFIED, "root", "mariadb.sys", "mysql.sys", ""):
        refused = home.client(plain_server, "SELECT 1", *home.clear(), f"-u{user}", "--password=")
        assert refused.returncode == 1, user
        assert "Access denied" in refused.stderr or "locked" in refused.stderr


def test_durability_is_the_servers_default(home: ServerCopies, plain_server: Server) -> None:
    binary_log = "1" if home.engine.name == "mysql" else "0"
    asked = "SELECT @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin"
    values = home.client(plain_server, asked, *home.clear()).stdout.split()
    assert values in (["1", "ON", binary_log], ["1", "1", binary_log])


def test_a_server_that_does_not_start_reports_the_reason(home: ServerCopies) -> None:
    with (
        pytest.raises(RunError, match=r"(?s)did not start \(log: .*no-such-setting"),
        home.started({"no-such-setting": "1"}),
    ):
        pass


def test_variables_and_settings_are_told_apart_and_it_stops_on_request(home: ServerCopies) -> None:
    with home.started({"env:OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000", "max-connections": "300"}) as server:
        assert b"OPENSSL_ia32cap=~0x2" in Path(f"/proc/{server.pid}/environ").read_bytes()
        assert home.client(server, "SELECT @@max_connections", *home.clear()).stdout.strip() == "300"
    assert run_ownership.start_time(server.pid) == ""


def test_a_server_without_a_certificate_makes_none(home: ServerCopies, plain_server: Server, secured: Server) -> None:
    """MariaDB would make a key of 4096 bits at every start; MySQL has made its own with its system tables."""
    if home.engine.name == "mariadb":
        offered = [greeting("127.0.0.1", port_of(server)).tls for server in (plain_server, secured)]
        assert offered == [False, True]


def test_there_are_enough_connections_for_both_arms(home: ServerCopies) -> None:
    assert home.engine.settings_for(8) == {}
    assert home.engine.settings_for(DEFAULT_CONNECTIONS) == {"max-connections": str(2 * DEFAULT_CONNECTIONS + 20)}


def test_the_scratch_directory_may_have_a_long_path(home: ServerCopies, tmp_path: Path) -> None:
    """The path of a unix socket is limited to 107 bytes, so the server has no socket."""
    assert "--socket=" in home.engine.base_command(home.installation, tmp_path / ("x" * 120))  # type: ignore[attr-defined]


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def options(home: ServerCopies, ca: object, version: str, name: str) -> list[str]:
    """Options of the server's own client: verify everything, and offer one version and one suite."""
    pinned = [f"--ssl-ca={ca}", f"--tls-version=TLSv{version}"]
    if home.engine.name == "mariadb":
        return [*pinned, "--ssl-verify-server-cert", f"--ssl-cipher={name}"]
    return [
        *pinned,
        "--ssl-mode=VERIFY_IDENTITY",
        f"--{'tls-ciphersuites' if version == '1.3' else 'ssl-cipher'}={name}",
    ]


@pytest.mark.parametrize("certificate", ["rsa2048", "rsa4096", "ecdsa-p256"])
def test_one_server_offers_every_version_and_suite_and_the_client_pins_them(
    home: ServerCopies, secured: Server, certificate: str
) -> None:
    wanted = TLS.server_settings(home.engine, TLS.check({"certificate": certificate}), home.secrets)
    with home.altered(secured, wanted, certificate="ecdsa-p256") as server:
        assert home.client(server, EncryptsConnections.of(home.engine).tls_witness, *home.clear()).stdout.strip() == "f"
        for version in ("1.2", "1.3"):
            for cipher in SUITES_12:
                name = suite(TLS.check({"version": version, "cipher": cipher, "certificate": certificate}))
                ca = home.fields(server, "encrypted", certificate=certificate).tls_ca
                done = home.client(
                    server, EncryptsConnections.of(home.engine).tls_witness, *options(home, ca, version, name)
                )
                assert done.stdout.split() == ["t", f"TLSv{version}", name], done.stderr


def test_cells_that_differ_in_version_or_suite_ask_for_the_same_server(home: ServerCopies) -> None:
    settings = [
        TLS.server_settings(home.engine, TLS.check(factors), home.secrets)
        for factors in ({}, {"version": "1.2"}, {"cipher": "chacha20"}, {"resumption": "on"})
    ]
    assert all(wanted == settings[0] for wanted in settings)


def handshake(server: Server, ca: object, group: str) -> str:
    """Return the cipher that Python's TLS negotiates over this curve. Raises SSLError."""
    context = ssl.create_default_context(cafile=str(ca))
    context.set_ecdh_curve(group)
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as plain:
        head = plain.recv(4)
        plain.recv(int.from_bytes(head[:3], "little"))
        # Long passwords, protocol 4.1, TLS, secure authentication; 16 MB packets; utf8mb4.
        request = (0x8A01 | 0x80000).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + b"\x2d" + bytes(23)
        plain.sendall(len(request).to_bytes(3, "little") + b"\x01" + request)
        with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
            return (encrypted.cipher() or ("",))[0]


def test_a_group_that_the_server_can_not_choose_is_refused_before_anything_starts(
    home: ServerCopies, secured: Server
) -> None:
    known = {"p256": "prime256v1", "p384": "secp384r1", "x25519": "X25519"}
    if home.engine.name == "mysql":
        for group in ("x25519", "x25519mlkem768"):
            with pytest.raises(UsageError, match=f"mysql can't use the group {group}"):
                home.engine.check_factors("tls", {"group": group}, "")
        ca = home.fields(secured, "encrypted", certificate="ecdsa-p256").tls_ca
        assert handshake(secured, ca, "prime256v1")
        assert handshake(secured, ca, "secp384r1")
        with pytest.raises(ssl.SSLError):
            handshake(secured, ca, "X25519")
        return
    with home.started(certificate="ecdsa-p256", group="p384") as server:
        ca = home.fields(server, "encrypted", certificate="ecdsa-p256").tls_ca
        for group, curve in known.items():
            if group == "p384":
                assert handshake(server, ca, curve)
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    handshake(server, ca, curve)


def test_a_group_that_the_servers_openssl_does_not_know_is_refused(home: ServerCopies, secured: Server) -> None:
    if home.engine.name == "mysql":
        pytest.skip("check_factors refuses it earlier")
    knows = [int(part) for part in secured.library.split()[1].split(".")[:2]] >= [3, 5]
    factors = {"group": "x25519mlkem768", "certificate": "ecdsa-p256"}
    if knows:
        with home.started(None, **factors) as server, Agent() as agent:
            answer = agent.connect("a", home.fields(server, "encrypted", **factors))
            assert answer.group == "X25519MLKEM768"
        return
    with pytest.raises(UsageError, match="lacks post-quantum groups"), home.started(None, **factors):
        pass


# ── workloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [name for name in workloads.names() if "sql" in workloads.get(name).languages])
def test_every_workload_can_be_loaded_and_its_check_answers(
    home: ServerCopies, plain_server: Server, name: str
) -> None:
    sizes = {"rows": "2500", "scale": "1", "size": "150KB"}
    workload = workloads.get(name)
    given = {key: value for key, value in sizes.items() if key in workload.parameters}
    program = workloads.prepare(workload, home.engine.dialect, given)
    database = "w_" + name.replace("-", "_")
    check = f"{program.check};" if program.check else ""
    script = "".join(f"{step.sql};\n" for step in program.load) + check
    done = home.client(plain_server, f"CREATE DATABASE {database}; USE {database}; {script}", *home.clear())
    assert done.returncode == 0, done.stderr
    if name == "bulk-read":
        pieces, size = program.parameters["chunks"], program.parameters["chunk_bytes"]
        assert done.stdout.splitlines()[-1].split() == [str(pieces), str(int(pieces) * int(size))]
    elif name == "hospital-client":  # its check opens only the first names
        assert [line.split()[0] for line in done.stdout.splitlines()[-100:]] == [str(n + 1) for n in range(100)]
    elif "rows" in given:
        assert done.stdout.splitlines()[-1].split()[0] == str(program.parameters["rows"])


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_a_directory_without_a_server_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingServer, match=f"--bindir {tmp_path}"):
        engines.get(name).find(bindir=str(tmp_path))


def test_another_version_in_the_directory_is_named(home: ServerCopies) -> None:
    where = home.installation.location
    with pytest.raises(MissingServer, match=f"this is {home.engine.title} {home.installation.version}, not 5.1"):
        home.engine.find("5.1", bindir=where)
    installation = home.engine.find(bindir=where)
    assert (installation.version, installation.source) == (home.installation.version, "path")


def test_mysql_and_mariadb_are_told_apart(home: ServerCopies) -> None:
    other = engines.get("mariadb" if home.engine.name == "mysql" else "mysql")
    with pytest.raises(MissingServer, match=other.title):
        other.find(bindir=home.installation.location)


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_an_unavailable_version_is_an_error_with_reasons(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(enterable(tmp_path)))
    with pytest.raises(MissingServer, match=r"(?s)debian: .*no such version.*apt: .*--bindir"):
        engines.get(name).install("4.1")
    with pytest.raises(UsageError, match="did you mean 'debian'"):
        engines.get(name).install("", "debain")


# ── a server you already run ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://me:secret@localhost/db", "set MYSQL_PWD"),
        ("mysql://localhost/db?password=secret", "set MYSQL_PWD"),
        ("mariadb://localhost/db", "must begin with mysql://"),
        ("mysql://localhost:many/db", "not a valid URL"),
        ("mysql://localhost/db?sslca=x", "did you mean 'ssl-ca'"),
    ],
)
def test_an_unusable_url_is_refused_before_anything_else(url: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        engines.get("mysql").find(url=url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_running_server_is_found_but_not_changed(
    home: ServerCopies, plain_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = plain_server.connection()
    monkeypatch.setenv("MYSQL_PWD", reveal(fields.password))
    monkeypatch.setenv("HOME", str(tmp_path))
    url = f"{home.engine.name}://{quote(USER)}@localhost:{fields.port}/{fields.database}?ssl-ca=/ca.pem"
    server = home.engine.start(StartRequest(home.engine.find(url=url), tmp_path, home.supervisor))
    assert isinstance(server, RunningServer)
    assert (server.pid, server.ca) == (plain_server.pid, "/ca.pem")
    assert server.connection() == (fields | {"tls_server_name": "localhost"})
    server.stop()
    assert run_ownership.start_time(plain_server.pid) != ""


def test_a_url_of_the_other_kind_is_noticed_by_the_servers_greeting(
    home: ServerCopies, plain_server: Server, tmp_path: Path
) -> None:
    other = engines.get("mariadb" if home.engine.name == "mysql" else "mysql")
    url = f"{other.name}://me@127.0.0.1:{port_of(plain_server)}/"
    with pytest.raises(UsageError, match=f"is {home.engine.title} .* name the engine {home.engine.name}"):
        other.start(StartRequest(other.find(url=url), tmp_path, home.supervisor))


def test_a_greeting_is_a_version_or_a_refusal(plain_server: Server, home: ServerCopies) -> None:
    assert greeting("127.0.0.1", port_of(plain_server)).version.startswith(home.installation.version)
    assert parse(b"\x0a5.5.5-10.11.18-MariaDB\0rest").version == "10.11.18-MariaDB"
    assert parse(b"\xff\x6a\x04Host 'x' is not allowed").refusal == "Host 'x' is not allowed [1130]"
    assert parse(b"SSH-2.0") == parse(b"")


def test_option_files_are_read_as_the_servers_own_client_reads_them(
    home: ServerCopies, plain_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = "a#b\\c d'e"
    statement = f"CREATE USER 'me too'@'127.0.0.1' IDENTIFIED BY \"{password.replace(chr(92), chr(92) * 2)}\""
    assert home.client(plain_server, statement, *home.clear()).returncode == 0
    file = tmp_path / ".my.cnf"
    file.write_text(
        "# password = no\n[mysqld]\npassword=no\n[client]\nuser = 'me too'\n"
        'password = "a#b\\\\c\\sd\'e"\n'
        f"host=127.0.0.1\nport = {port_of(plain_server)} # the second\n;port=1\n[mysqldump]\npassword=no\n"
    )
    file.chmod(0o600)
    program = Path(home.installation.location).parent / "bin" / home.engine.name
    done = subprocess.run(
        [program, f"--defaults-file={file}", *home.clear(), "-BNe", "SELECT current_user()"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/nonexistent"},
    )
    assert done.stdout.strip() == "me too@127.0.0.1", done.stderr

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_HOME", raising=False)
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    port = str(port_of(plain_server))
    options = {name: value for name, (value, where) in read(home.engine.name).items() if where == str(file)}
    assert options == {"user": "me too", "password": password, "host": "127.0.0.1", "port": port}
    server = RunningServer(home.engine.name, f"{home.engine.name}://", ("mysqld", "mariadbd"))
    assert (server.pid, server.connection().user) == (plain_server.pid, "me too")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        password_found()
    monkeypatch.setenv("MYSQL_PWD", "first")
    assert reveal(password_found()) == "first"


def test_the_later_option_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("server", "[client]\nuser=a\nport=1\n"), ("home", "[client]\nuser=b\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / (".my.cnf" if name == "home" else "my.cnf")).write_text(text)
    monkeypatch.setenv("MYSQL_HOME", str(tmp_path / "server"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    options = {name: value for name, (value, where) in read("mysql").items() if where.startswith(str(tmp_path))}
    assert options == {"user": "b", "port": "1"}


def test_only_the_clients_groups_count() -> None:
    text = "password=x\n[client-mariadb]\npassword=y\n[mysqldump]\npassword=z\n"
    assert parse_options(text, GROUPS["mysql"]) == {}
    assert parse_options(text, GROUPS["mariadb"]) == {"password": "y"}
