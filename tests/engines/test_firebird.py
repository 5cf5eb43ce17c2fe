"""Firebird: finding and starting it, our own database on a server you already run, and the error messages."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import firebird
from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines._network import PASSWORD_FILE
from ciphercost.engines.firebird import (
    ENGINE,
    FILE,
    FirebirdServer,
    RunningServer,
    answers,
    home_of,
)
from ciphercost.host import run_ownership, supervisor
from ciphercost.host.installation import Installation
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, MissingServer, RunError, UsageError
from ciphercost.model.secret import Secret, reveal
from enterable import enterable
from processes import opened, wait_for

WIRE_CRYPT = mechanisms.get("wire-crypt")


@pytest.fixture(scope="module")
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("firebird")


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[FirebirdServer]:
    with firebird.started(installation) as server:
        yield server


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_installed_server_is_found_in_place(installation: Installation) -> None:
    assert ENGINE.find(installation.version[:3]).location == installation.location
    assert ENGINE.find(bindir=installation.location).version == installation.version
    home = home_of(Path(installation.location))
    assert home is not None
    assert (home / "firebird.msg").exists()


def test_a_directory_without_a_server_is_named(tmp_path: Path, installation: Installation) -> None:
    with pytest.raises(MissingServer, match=f"--bindir {tmp_path}"):
        ENGINE.find(bindir=str(tmp_path))
    with pytest.raises(MissingServer, match=f"this is Firebird {installation.version}, not 3"):
        ENGINE.find("3", bindir=installation.location)


def test_an_unknown_version_or_source_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(enterable(tmp_path)))
    with pytest.raises(MissingServer, match=r"(?s)no Firebird 9\.9 .*known: 4\.0.*--bindir"):
        ENGINE.install("9.9")
    with pytest.raises(UsageError, match="can't be fetched from 'maven'"):
        ENGINE.install("4.0", "maven")


def test_only_firebird_has_the_mechanism(tmp_path: Path) -> None:
    assert "wire-crypt" in mechanisms.of(ENGINE)
    assert "wire-crypt" not in mechanisms.of(engines.get("postgresql"))
    assert WIRE_CRYPT.connection(ENGINE, "plain", {}, tmp_path) == {"wire_crypt": "off"}
    given = WIRE_CRYPT.connection(ENGINE, "encrypted", {"cipher": "arc4"}, tmp_path)
    assert given == {"wire_crypt": "require", "wire_crypt_plugins": "Arc4"}
    assert WIRE_CRYPT.connection(ENGINE, "encrypted", {}, tmp_path)["wire_crypt_plugins"] == "ChaCha64,ChaCha,Arc4"


# ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_listens_on_loopback_only_and_runs_without_privileges(server: FirebirdServer) -> None:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if ":" in line
    )
    user = run_ownership.server_user()
    assert status["Uid"].split()[0] == str(user[0] if user else os.getuid())
    tables = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    held = opened(server.pid)
    listening = [line.split() for line in tables.splitlines() if line.split()[3] == "0A"]
    assert [fields[1] for fields in listening if f"socket:[{fields[9]}]" in held] == [f"0100007F:{server.port:04X}"]


def test_its_own_user_has_a_random_password_that_only_its_owner_can_read(server: FirebirdServer) -> None:
    assert server.directory is not None
    path = server.directory / PASSWORD_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text()) == 32
    assert not list(server.directory.glob("*.sql")), "the script that holds the password must be gone"
    with Agent() as agent, pytest.raises(AgentError, match="user name or password is wrong") as caught:
        agent.connect("wrong", server.connection() | {"password": Secret("guessed")})
    assert caught.value.code == "28000"
    with Agent() as agent:
        connected = agent.connect("right", server.connection())
    assert connected.auth == "Srp256"
    assert connected.server_version.startswith("4.")


def test_the_cryptographic_library_is_known_before_it_is_loaded(server: FirebirdServer) -> None:
    assert server.library.startswith("LibTomCrypt 1.") or server.library == ""


def test_a_copy_serves_its_own_data_and_stops_in_order(installation: Installation) -> None:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        ENGINE.initialise(installation, scratch / "first", run_supervisor)
        shutil.copytree(scratch / "first", scratch / "second", symlinks=True)
        run_ownership.hand_over(scratch / "second")
        servers = [
            ENGINE.start(StartRequest(installation, scratch / name, run_supervisor)) for name in ("first", "second")
        ]
        with Agent() as agent:
            for number, server in enumerate(servers):
                agent.connect(str(number), server.connection())
            agent.query("0", "CREATE TABLE t (n integer); INSERT INTO t VALUES (1)")
            with pytest.raises(AgentError, match="table unknown T"):
                agent.query("1", "SELECT * FROM t")
            rows = [agent.query(str(number), "SELECT MON$DATABASE_NAME FROM MON$DATABASE") for number in range(2)]
            assert rows == [[[str(scratch / name / FILE)]] for name in ("first", "second")]
        for server in servers:
            server.stop()
            assert run_ownership.start_time(server.pid) == ""


def test_it_dies_with_its_run(installation: Installation) -> None:
    run_supervisor = supervisor.Supervisor(run_directory.new_id())
    directory = supervisor.scratch(run_supervisor.run_id, run_supervisor) / "data"
    ENGINE.initialise(installation, directory, run_supervisor)
    server = ENGINE.start(StartRequest(installation, directory, run_supervisor))
    run_supervisor.close()
    wait_for("the server's end", lambda: run_ownership.start_time(server.pid) == "")
    assert not directory.exists()


def test_a_server_that_can_not_start_reports_the_reason(installation: Installation, tmp_path: Path) -> None:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        directory = supervisor.scratch(run_supervisor.run_id, run_supervisor) / "data"
        ENGINE.initialise(installation, directory, run_supervisor)
        (directory / "firebird.log").write_text("Address already in use, said an earlier start\n")
        with pytest.raises(RunError, match=r"Firebird 4\.\S+ did not start \(log: ") as caught:
            ENGINE.start(
                StartRequest(installation, directory, run_supervisor, settings={"RemoteBindAddress": "192.0.2.1"})
            )
        assert "Cannot assign requested address" in str(caught.value)
        assert "an earlier start" not in str(caught.value)


def test_another_program_on_its_port_is_not_mistaken_for_it(server: FirebirdServer) -> None:
    assert answers(server.address, server.port)
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert not answers(*other.getsockname())


# ── a server you already run ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("firebird://me:secret@localhost/db", "set ISC_PASSWORD"),
        ("firebird://localhost/db?password=secret", "set ISC_PASSWORD"),
        ("postgresql://localhost/db", "must begin with firebird://"),
        ("firebird://localhost:many/db", "not a valid URL"),
        ("firebird://localhost/db?wire=x", "parameter 'wire'"),
        ("firebird://localhost", "names no database"),
        ("firebird://localhost/", "names no database"),
    ],
)
def test_an_unusable_url_is_refused_before_anything_else(url: str, words: str) -> None:
    for refuse in (ENGINE.check_url, lambda url: ENGINE.find(url=url)):
        with pytest.raises(UsageError) as caught:
            refuse(url)
        assert words in str(caught.value)
        assert "secret" not in str(caught.value)


def test_a_url_names_an_alias_or_a_path() -> None:
    assert ENGINE.connection_string("firebird://h/employee").database == "employee"
    assert ENGINE.connection_string("firebird://h//data/a%20b.fdb").database == "/data/a b.fdb"


def test_a_running_server_is_found_but_not_changed(
    server: FirebirdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = server.connection()
    monkeypatch.setenv("ISC_PASSWORD", reveal(fields.password))
    installation = ENGINE.find(url=firebird.url(server, "ciphercost"))
    assert installation.source == "running"
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        running = ENGINE.start(StartRequest(installation, tmp_path, run_supervisor))
        assert isinstance(running, RunningServer)
        assert running.pid == server.pid
        assert running.connection() == fields
        running.stop()
    assert run_ownership.start_time(server.pid) != ""


@pytest.mark.parametrize("database", ["ciphercost", ""], ids=["alias", "path"])
def test_our_own_database_is_created_marked_and_dropped(
    server: FirebirdServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.directory is not None
    fields = server.connection() | {"database": database or str(server.directory / FILE)}
    file = server.directory / "ciphercost_run_1.fdb"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path / "none"))
    (tmp_path / "runs" / "run-1").mkdir(parents=True)
    with Agent() as agent:
        assert ENGINE.schemas(agent, fields) == {}
        ENGINE.make_schema(agent, fields, "ciphercost_run_1", "run-1")
        assert file.exists()
        with pytest.raises(AgentError, match="exists already"):
            ENGINE.make_schema(agent, fields, "ciphercost_run_1", "run-1")
        assert ENGINE.schemas(agent, fields) == {"ciphercost_run_1": "run-1"}
        agent.connect("inside", fields | ENGINE.in_schema("ciphercost_run_1"))
        agent.query("inside", "CREATE TABLE t (n integer)")
        agent.disconnect("inside")
        ENGINE.drop_schema(agent, fields, "ciphercost_run_1")
    wait_for("the file's end", lambda: not file.exists())


def test_a_database_without_our_mark_is_not_dropped_unless_told_so(server: FirebirdServer) -> None:
    assert server.directory is not None
    path = str(server.directory / "ciphercost_theirs.fdb")
    fields = server.connection()
    with Agent() as agent:
        agent.connect("own", fields | {"database": path, "create": True})
        agent.disconnect("own")
        with pytest.raises(AgentError, match="leaves it alone"):
            ENGINE.drop_schema(agent, fields, "ciphercost_theirs")
        assert Path(path).exists()
        ENGINE.drop_schema(agent, fields, "ciphercost_theirs", unmarked=True)
    wait_for("the file's end", lambda: not Path(path).exists())


def test_an_existing_file_is_left_alone(server: FirebirdServer) -> None:
    assert server.directory is not None
    (server.directory / "ciphercost_taken.fdb").write_bytes(b"theirs")
    with Agent() as agent, pytest.raises(AgentError, match="exists already on that server"):
        ENGINE.make_schema(agent, server.connection(), "ciphercost_taken", "run")
    assert (server.directory / "ciphercost_taken.fdb").read_bytes() == b"theirs"


def test_the_error_names_the_missing_right_to_create_a_database(installation: Installation) -> None:
    with firebird.started(installation, DatabaseAccess="None") as server, Agent() as agent:
        with pytest.raises(AgentError, match=r"configuration denies access.*DatabaseAccess in firebird\.conf"):
            ENGINE.make_schema(agent, server.connection(), "ciphercost_free", "run")
        assert server.directory is not None
        assert not (server.directory / "ciphercost_free.fdb").exists()


def test_the_agent_refuses_a_port_where_no_firebird_listens() -> None:
    with socket.socket() as silent, Agent() as agent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with pytest.raises(AgentError, match="cannot connect"):
            agent.connect(
                "x",
                Connection(
                    driver="firebird", host="127.0.0.1", port=port, user="u", password=Secret("p"), database="d"
                ),
            )
