"""PostgreSQL: finding and starting it, its TLS, and the error messages."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines._network import PASSWORD_FILE
from ciphercost.engines.postgresql import (
    ENGINE,
    HBA,
    RunningServer,
    major,
    options,
    parse_version,
    password_for,
    version_of,
)
from ciphercost.host import canary_scan, run_ownership, supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.ports import address_of, free_port, listener
from ciphercost.host.procfs import tree
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.tls_names import GROUPS, POST_QUANTUM, SUITES_13, suite
from ciphercost.host.versions import matches
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.secret import reveal
from ciphercost.prove.client_witness import negotiation_mismatch
from conftest import Require, RequireServer
from enterable import enterable
from processes import opened

TLS = mechanisms.get("tls")
Start = Callable[..., Server]


@pytest.fixture(scope="module")
def run_supervisor() -> Iterator[Supervisor]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


@pytest.fixture(scope="module")
def scratch(run_supervisor: Supervisor) -> Path:
    return supervisor.scratch(run_supervisor.run_id, run_supervisor)


@pytest.fixture(scope="module")
def cluster(require_postgresql: Installation, run_supervisor: Supervisor, scratch: Path) -> Path:
    ENGINE.initialise(require_postgresql, scratch / "data", run_supervisor)
    return scratch / "data"


@pytest.fixture
def start(
    require_postgresql: Installation, cluster: Path, run_supervisor: Supervisor, scratch: Path, tmp_path: Path
) -> Iterator[Start]:
    started: list[Server] = []

    def start(settings: dict[str, str] | None = None, **factors: str) -> Server:
        if factors:
            settings = TLS.server_settings(ENGINE, TLS.check(factors), scratch / "secrets")
        started.append(
            ENGINE.start(
                StartRequest(require_postgresql, cluster, run_supervisor, settings=settings or {}, logs=tmp_path)
            )
        )
        return started[-1]

    yield start
    for server in started:
        server.stop()


def port_of(server: Server) -> int:
    port = server.connection().port
    assert isinstance(port, int)
    return port


def psql(server: Server, sql: str, **parameters: str) -> str:
    """Return what PostgreSQL's own client prints."""
    fields = server.connection()
    target = {"host": fields.host, "port": fields.port, "user": fields.user, "dbname": fields.database}
    words = " ".join(f"{name}={value}" for name, value in {**target, "gssencmode": "disable", **parameters}.items())
    done = subprocess.run(
        ["psql", "-XAtc", sql, words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PGPASSWORD": reveal(fields.password)},
    )
    if done.returncode:
        raise RunError(done.stderr)
    return done.stdout.strip()


# ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_runs_unprivileged_on_loopback_only_and_stops_on_request(start: Start) -> None:
    server = start()
    uid = (run_ownership.server_user() or (os.geteuid(), 0))[0]
    assert Path(f"/proc/{server.pid}").stat().st_uid == uid
    assert listener("127.0.0.1", port_of(server), ("postgres",)) == server.pid
    inodes = opened(server.pid)
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in inodes
    ]
    assert listening == [f"0100007F:{port_of(server):04X}"]
    assert [path for path in server.cgroups if str(server.pid) not in (path / "cgroup.procs").read_text().split()] == []
    server.stop()
    assert run_ownership.start_time(server.pid) == ""


def test_the_password_is_random_and_stored_only_in_the_cluster(start: Start, cluster: Path) -> None:
    server = start()
    password = reveal(server.connection().password)
    assert (cluster / PASSWORD_FILE).read_text() == password
    assert (cluster / PASSWORD_FILE).stat().st_mode & 0o777 == 0o600
    assert str(password) not in Path(f"/proc/{server.pid}/cmdline").read_text()
    assert [path for path in cluster.parent.iterdir() if path.name.endswith(".password")] == []


def test_a_copy_of_a_cluster_can_be_started_beside_it(
    start: Start, require_postgresql: Installation, cluster: Path, run_supervisor: Supervisor, scratch: Path
) -> None:
    shutil.copytree(cluster, scratch / "copy", copy_function=shutil.copy2)
    run_ownership.hand_over(scratch / "copy")
    first = start()
    second = ENGINE.start(StartRequest(require_postgresql, scratch / "copy", run_supervisor, logs=scratch))
    assert port_of(first) != port_of(second)
    second.stop()


def test_nobody_can_log_in_without_the_password(start: Start, require: Require) -> None:
    require(shutil.which("psql"), "psql (Debian: apt-get install postgresql-client)")
    server = start()
    fields = server.connection()
    assert "trust" not in HBA
    done = subprocess.run(
        ["psql", "-w", f"host=127.0.0.1 port={fields.port} user={fields.user} dbname=postgres", "-c", "SELECT 1"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert "no password supplied" in done.stderr
    rules = psql(server, "SELECT type, auth_method FROM pg_hba_file_rules ORDER BY line_number")
    assert rules.splitlines() == ["hostgssenc|reject", "host|scram-sha-256", "host|scram-sha-256"]


def test_durability_is_the_servers_default(start: Start, require: Require) -> None:
    require(shutil.which("psql"), "psql (Debian: apt-get install postgresql-client)")
    server = start()
    for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
        assert psql(server, f"SHOW {name}") == "on"


def test_a_server_that_does_not_start_reports_the_reason(start: Start) -> None:
    with pytest.raises(RunError, match=r"(?s)did not start \(log: .*invalid value"):
        start({"shared_buffers": "many"})


def test_a_port_taken_in_the_meantime_leads_to_another_attempt(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offered = iter([taken.getsockname()[1], free_port()])
        monkeypatch.setattr("ciphercost.host.launch.free_port", lambda _: next(offered, None) or free_port())
        assert port_of(start()) != taken.getsockname()[1]


def test_variables_and_settings_are_told_apart(start: Start) -> None:
    server = start({"env:OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000", "work_mem": "8MB"})
    assert b"OPENSSL_ia32cap=~0x2" in Path(f"/proc/{server.pid}/environ").read_bytes()
    assert b"work_mem=8MB" in Path(f"/proc/{server.pid}/cmdline").read_bytes()


def test_the_cryptographic_library_is_known(start: Start) -> None:
    assert start(certificate="ecdsa-p256").library.startswith("OpenSSL ")


@pytest.mark.usefixtures("alone")  # whoever cleans as root ends what runs as nobody
def test_it_works_without_root(tmp_path: Path, require: Require, require_postgresql: Installation) -> None:
    require(os.geteuid() != 0 or shutil.which("setpriv"), "setpriv (Debian: apt-get install util-linux)")
    script = (
        "import sys; from pathlib import Path; from ciphercost import engines; from ciphercost.host import supervisor\n"
        "engine = engines.get('postgresql')\n"
        "with supervisor.Supervisor('unprivileged') as run_supervisor:\n"
        "    scratch = supervisor.scratch('unprivileged', run_supervisor)\n"
        "    assert scratch.stat().st_mode & 0o777 == 0o700\n"
        "    installation = engine.find(bindir=sys.argv[1])\n"
        "    engine.initialise(installation, scratch / 'data', run_supervisor)\n"
        "    server = engine.start(engines.StartRequest(installation, scratch / 'data', run_supervisor))\n"
        "    assert server.library, server\n"
        "    server.stop()\n"
        "print(run_supervisor.problems, scratch.exists())"
    )
    home = run_ownership.scratch_base() / f"home-{os.getpid()}"
    home.mkdir(parents=True)
    home.chmod(0o1777)
    # Only root may be able to read this Python, so the test keeps that one privilege.
    look = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    drop = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *look]
    before = drop if os.geteuid() == 0 else []
    try:
        packages = os.pathsep.join(path for path in sys.path if path)
        done = subprocess.run(
            [*before, sys.executable, "-c", script, require_postgresql.location],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "CIPHERCOST_SCRATCH": str(home / "s"),
                "HOME": "/",
                "PYTHONPATH": packages,
            },
        )
    finally:
        shutil.rmtree(home)
    assert (done.returncode, done.stdout.strip()) == (0, "[] False"), done.stderr


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def handshake(server: Server, context: ssl.SSLContext) -> tuple[str, str]:
    """Return protocol and cipher that Python's TLS negotiates with the server."""
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as plain:
        plain.sendall(struct.pack("!II", 8, 80877103))
        assert plain.recv(1) == b"S"
        with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
            name, protocol, _ = encrypted.cipher() or ("", "", 0)
            return encrypted.version() or protocol, name


def client_of(ca: Path, factors: dict[str, str]) -> ssl.SSLContext:
    """Python's TLS, pinned like the agent's.

    It can't choose a TLS 1.3 suite, so there it takes the server's preference.
    """
    full = TLS.check(factors)
    context = ssl.create_default_context(cafile=str(ca))
    context.minimum_version = context.maximum_version = ssl.TLSVersion[f"TLSv{full['version'].replace('.', '_')}"]
    if full["version"] == "1.2":
        context.set_ciphers(suite(full))
    return context


@pytest.mark.parametrize("certificate", ["rsa2048", "rsa4096", "ecdsa"])
def test_one_server_offers_every_version_and_suite_and_the_client_pins_them(
    start: Start, scratch: Path, certificate: str
) -> None:
    server = start(certificate=certificate)
    ca = Path(str(TLS.connection(ENGINE, "encrypted", {"certificate": certificate}, scratch / "secrets")["tls_ca"]))
    for cipher in SUITES_13:
        factors = {"version": "1.2", "cipher": cipher, "certificate": certificate}
        wanted = suite(TLS.check(factors))
        assert handshake(server, client_of(ca, factors)) == ("TLSv1.2", wanted)
    assert handshake(server, client_of(ca, {"version": "1.3"}))[0] == "TLSv1.3"


def test_cells_that_differ_in_version_or_suite_ask_for_the_same_server(scratch: Path) -> None:
    settings = [
        TLS.server_settings(ENGINE, TLS.check(factors), scratch / "secrets")
        for factors in ({}, {"version": "1.2"}, {"cipher": "chacha20"}, {"verify": "ca"})
    ]
    assert all(wanted == settings[0] for wanted in settings)
    assert TLS.server_settings(ENGINE, TLS.check({"certificate": "ecdsa"}), scratch / "secrets") != settings[0]
    assert TLS.server_settings(ENGINE, TLS.check({"group": "p384"}), scratch / "secrets") != settings[0]


def test_one_server_serves_both_arms_and_reports_which_is_encrypted(
    start: Start, scratch: Path, require: Require
) -> None:
    require(shutil.which("psql"), "psql (Debian: apt-get install postgresql-client)")
    server = start(certificate="ecdsa-p256")
    ca = str(scratch / "secrets" / "tls-ecdsa-p256" / "ca.pem")
    assert psql(server, ENGINE.tls_witness, sslmode="disable") == "f||"
    encrypted = psql(server, ENGINE.tls_witness, sslmode="verify-full", sslrootcert=ca, channel_binding="require")
    assert encrypted == "t|TLSv1.3|TLS_AES_256_GCM_SHA384"


def test_another_ca_is_refused(start: Start, tmp_path: Path) -> None:
    from ciphercost.host.pki import Pki

    server = start(certificate="ecdsa-p256")
    other = ssl.create_default_context(cafile=str(Pki(tmp_path / "other", "ecdsa-p256").ca))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, other)


@pytest.mark.parametrize("version", ["15", "17", "18"])
def test_the_whole_tls_matrix_on_every_version(
    require_server: RequireServer, run_supervisor: Supervisor, scratch: Path, tmp_path: Path, version: str
) -> None:
    """One server per certificate; the client alone varies version, suite and verification. Then every offered group."""
    installation = require_server("postgresql", version)
    data = scratch / f"matrix-{version}"
    ENGINE.initialise(installation, data, run_supervisor)
    with Agent() as agent:

        def seen(server: Server, factors: dict[str, str]) -> Connected:
            fields = TLS.connection(ENGINE, "encrypted", factors, scratch / "secrets")
            connection = server.connection() | fields
            answer = agent.connect("a", connection)
            rows = agent.query("a", ENGINE.tls_witness)
            assert rows == [["t", answer.protocol, answer.cipher]]
            assert negotiation_mismatch(answer, connection) == ""
            return answer

        def started(**factors: str) -> Server:
            settings = TLS.server_settings(ENGINE, TLS.check(factors), scratch / "secrets")
            return ENGINE.start(StartRequest(installation, data, run_supervisor, settings=settings, logs=tmp_path))

        for certificate, key in (("rsa2048", "RSA 2048"), ("rsa4096", "RSA 4096"), ("ecdsa-p256", "P-256")):
            server = started(certificate=certificate)
            for protocol in ("1.2", "1.3"):
                for cipher in SUITES_13:
                    factors = {"version": protocol, "cipher": cipher, "certificate": certificate}
                    answer = seen(server, factors)
                    assert answer.cipher == suite(TLS.check(factors))
                    assert key in str(answer.peer_key)
            for verify, verified in (("full", True), ("ca", True), ("require", False)):
                assert seen(server, {"verify": verify, "certificate": certificate}).verified is verified
            server.stop()
        for group in GROUPS:
            try:
                ENGINE.check_factors("tls", {"group": group}, installation.version)
            except UsageError:
                assert major(installation.version) < 18
                continue
            if group in POST_QUANTUM and "1.1.1" in server.library:
                continue  # the builds from Maven lack ML-KEM
            server = started(group=group)
            assert seen(server, {"group": group}).group == GROUPS[group]
            server.stop()


def test_settings_are_translated_for_each_version() -> None:
    settings = {"ssl_groups": "P-256", "ssl": "on"}
    assert options("18.4", settings) == settings
    assert options("17.5", settings) == {"ssl": "on", "ssl_ecdh_curve": "prime256v1"}


def test_a_group_that_the_version_can_not_offer_is_refused_before_anything_is_started() -> None:
    for version in ("", "18.4"):
        ENGINE.check_factors("tls", {"group": "x25519"}, version)
    ENGINE.check_factors("tls", {"group": "p384"}, "15.18")
    with pytest.raises(UsageError, match=r"before version 18 .*p256 and p384"):
        ENGINE.check_factors("tls", {"group": "x25519"}, "17.5")


def test_resumption_is_refused_for_a_server_that_has_none() -> None:
    with pytest.raises(UsageError, match="never resumes"):
        TLS.fits(ENGINE, TLS.check({"resumption": "on"}))


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_version_is_a_major_number_or_complete() -> None:
    assert matches("17.5", "")
    assert matches("17.5", "17")
    assert matches("17.5", "17.5")
    assert not matches("17.5", "17.50")
    assert not matches("17.5", "1")
    assert not matches("17.5", "18")
    assert matches("18beta1", "18")


def test_a_directory_without_a_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingServer, match=f"--bindir {tmp_path}"):
        ENGINE.find(bindir=str(tmp_path))


def test_another_version_in_the_directory_is_named(require_postgresql: Installation) -> None:
    with pytest.raises(MissingServer, match=f"this is PostgreSQL {require_postgresql.version}, not 9"):
        ENGINE.find("9", bindir=require_postgresql.location)


def test_if_no_source_has_it_each_gives_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(enterable(tmp_path)))
    with pytest.raises(MissingServer, match=r"(?s)debian: .*PostgreSQL 9\b.*apt: .*maven: .*PostgreSQL 9\b.*--bindir"):
        ENGINE.find("9")
    with pytest.raises(UsageError, match="did you mean 'debian'"):
        ENGINE.install("17", "debain")


def test_versions_of_vendors_are_read() -> None:
    assert parse_version("postgres (PostgreSQL) 17.11 (Debian 17.11-1)\n") == "17.11"
    assert parse_version("postgres (PostgreSQL) 18beta1\n") == "18beta1"
    assert parse_version("postgres (PostgreSQL) 17.5 - Percona Server for PostgreSQL 17.5.2\n") == "17.5"
    assert parse_version("initdb (PostgreSQL) 17.5\n") == ""


def test_a_server_under_a_vendors_own_name_is_found_and_started(
    require_postgresql: Installation, run_supervisor: Supervisor, scratch: Path, cluster: Path, tmp_path: Path
) -> None:
    bindir = scratch / "edb"
    bindir.mkdir(mode=0o755)
    for name, program in (("edb-postgres", "postgres"), ("initdb", "initdb")):
        (bindir / name).symlink_to(Path(require_postgresql.location) / program)
    assert version_of(bindir) == require_postgresql.version
    ENGINE.start(StartRequest(ENGINE.find(bindir=str(bindir)), cluster, run_supervisor, logs=tmp_path)).stop()


# ── at rest ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["15", "17", "18"])
def test_queries_for_encryption_at_rest_work_on_every_version(
    require_server: RequireServer, run_supervisor: Supervisor, scratch: Path, tmp_path: Path, version: str
) -> None:
    """One cluster: its directory, its settings, its temporary files, its buffers, and whether reads bypass the page
    cache."""
    installation = require_server("postgresql", version)
    data = scratch / f"rest-{version}"
    ENGINE.initialise(installation, data, run_supervisor)
    settings = ENGINE.cache_settings(5 << 20, direct=True)
    server = ENGINE.start(StartRequest(installation, data, run_supervisor, settings=settings, logs=tmp_path))
    with Agent() as agent:
        fields = server.connection() | ENGINE.plaintext_fields() | {"connections": 1}
        agent.connect("a", fields)
        assert agent.query("a", ENGINE.home) == [[str(data)]]
        variables = {str(name): value for name, value in agent.query("a", ENGINE.variables)}
        assert variables["shared_buffers"] == str((5 << 20) // 8192)
        assert variables["fsync"] == "on"
        assert {name for name, value in variables.items() if str(data) in str(value)} <= set(ENGINE.unlike)
        direct = major(installation.version) >= 16
        assert variables.get("debug_io_direct") == ("data" if direct else None)
        agent.query("a", "CREATE TABLE filled AS SELECT 1 FROM generate_series(1, 1000)")
        assert opened_directly(server, "/base/") is direct
        assert opened_directly(server, "/pg_wal/") is False
        for spill in ENGINE.spills(word := f"canary{version}"):
            agent.connect("spill", fields)
            for statement in spill.statements:
                agent.query("spill", statement)
            hits = canary_scan.search(canary_scan.below([data]), word).hits
            assert hits, spill
            assert [name for name in hits if not any(fnmatch(name, pattern) for pattern in ENGINE.temporary)] == []
            agent.disconnect("spill")
    server.stop()


def opened_directly(server: Server, part: str) -> bool:
    """Whether the server's open files whose path has this part bypass the page cache. There must be some."""
    flags: list[bool] = []
    for pid in tree(server.pid):
        flags.extend(bool(bits & os.O_DIRECT) for name, bits in opened(pid).items() if part in name)
    assert flags
    assert len(set(flags)) == 1
    return flags[0]


def test_a_cache_is_never_too_small_for_the_clients_and_may_keep_the_servers_default() -> None:
    assert ENGINE.cache_settings(0, direct=False) == {}
    assert ENGINE.cache_settings(1, direct=False) == {"shared_buffers": "2048kB"}
    assert ENGINE.cache_settings((100 << 20) + 1, direct=False) == {"shared_buffers": "102400kB"}
    assert ENGINE.cache_settings(0, direct=True) == {"debug_io_direct": "data"}
    assert options("15.18", {"debug_io_direct": "data"}) == {}
    assert options("16.1", {"debug_io_direct": "data"}) == {"debug_io_direct": "data"}


# ── a server you already run ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:secret@localhost/db", "set PGPASSWORD"),
        ("postgresql://localhost/db?password=secret", "set PGPASSWORD"),
        ("mysql://localhost/db", "must begin with postgresql://"),
        ("postgresql://localhost:many/db", "not a valid URL"),
        ("postgresql://me:secret/db", "not a valid URL"),
        ("postgresql://me:secret@h\u2100st/db", "not a valid URL"),
        ("postgresql://me:s]ecret@host/db", "not a valid URL"),
        ("postgresql://localhost/db?sslrootcrt=x", "did you mean 'sslrootcert'"),
    ],
)
def test_an_unusable_url_is_refused_before_anything_else(url: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        ENGINE.find(url=url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_running_server_is_found_but_not_changed(
    start: Start, run_supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start()
    fields = started.connection()
    monkeypatch.setenv("PGPASSWORD", reveal(fields.password))
    url = f"postgresql://{fields.user}@localhost:{fields.port}/postgres?sslrootcert=/ca.pem"
    installation = ENGINE.find(url=url)
    assert installation.source == "running"
    server = ENGINE.start(StartRequest(installation, tmp_path, run_supervisor))
    assert isinstance(server, RunningServer)
    assert server.pid == started.pid
    assert server.ca == "/ca.pem"
    assert server.connection() == (fields | {"tls_server_name": "localhost"})
    server.stop()
    assert run_ownership.start_time(started.pid) != ""


def test_the_password_of_a_running_server_is_found_as_libpq_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    passes = tmp_path / "pgpass"
    monkeypatch.setenv("PGPASSFILE", str(passes))
    assert reveal(password_for("h", 5432, "d", "u")) == ""
    passes.write_text("# a comment\nother:*:*:*:no\nh:5432:*:u:a\\:b\\\\c\n*:*:*:*:last\n")
    passes.chmod(0o600)
    assert reveal(password_for("h", 5432, "d", "u")) == "a:b\\c"
    assert reveal(password_for("h", 5433, "d", "u")) == "last"
    passes.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        password_for("h", 5432, "d", "u")
    monkeypatch.setenv("PGPASSWORD", "first")
    assert reveal(password_for("h", 5432, "d", "u")) == "first"


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(UsageError, match=r"no-such-host\.invalid"):
        address_of("no-such-host.invalid", 5432)


def test_sqlite_is_a_directory_and_no_server(tmp_path: Path, run_supervisor: Supervisor) -> None:
    sqlite = engines.get("sqlite")
    installation = Installation("sqlite", "", "library", "agent")
    sqlite.initialise(installation, tmp_path / "db", run_supervisor)
    server = sqlite.start(StartRequest(installation, tmp_path / "db", run_supervisor))
    assert server.connection() == Connection(driver="sqlite", path=str(tmp_path / "db" / "database.sqlite"))
    assert (server.pid, server.cgroups) == (0, ())
    with pytest.raises(UsageError, match="neither --url nor --bindir"):
        sqlite.find(url="postgresql://localhost")


def test_sqlcipher_arms_differ_only_in_the_key(tmp_path: Path) -> None:
    mechanism, sqlite = mechanisms.get("sqlcipher"), engines.get("sqlite")
    plain = mechanism.connection(sqlite, "plain", {}, tmp_path)
    encrypted = mechanism.connection(sqlite, "encrypted", {}, tmp_path)
    assert "key" not in plain
    assert plain["reserve"] == 80
    assert len(bytes.fromhex(reveal(encrypted["key"]))) == 32
    assert encrypted == mechanism.connection(sqlite, "encrypted", {}, tmp_path), "the whole run has one key"
    assert (tmp_path / "sqlcipher.key").stat().st_mode & 0o777 == 0o600
    ours = {pragma for pragma in str(plain["pragmas"]).split(";") if "page_size" not in pragma}
    theirs = {pragma for pragma in str(encrypted["pragmas"]).split(";") if "cipher" not in pragma}
    assert ours == theirs >= {"PRAGMA temp_store=2", "PRAGMA journal_mode=WAL"}
    assert not mechanism.serves(ENGINE)
