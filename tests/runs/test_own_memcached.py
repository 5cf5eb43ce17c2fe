"""A memcached that the user runs: own commands on own keys, by two ports, with and without logins; nothing is stored."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines.memcached import USER, Memcached
from ciphercost.host import pki, run_ownership, supervisor
from ciphercost.host.ports import free_port
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.secret import reveal
from conftest import RequireServer
from processes import listens
from test_real import SHORT, ciphercost, measured, result_of

KEYS = 20
OWN = f"\\set id random(1, {KEYS})\nGET mine-:id\n"


class Own(NamedTuple):
    """A running memcached with values of the user's."""

    fields: Connection
    tls_port: int
    place: Path
    """Directory of its authority and of the client's certificate."""
    password: str

    def urls(self, user: str = f"{USER}@") -> tuple[str, ...]:
        return (
            *("--url", f"memcached://{user}localhost:{self.fields.port}"),
            *("--url", f"memcacheds://{user}localhost:{self.tls_port}"),
        )

    @property
    def ca(self) -> tuple[str, str]:
        return "--ca", str(self.place / "ca.pem")

    def ask(self, *commands: str) -> list[list[str | None]]:
        """The last command's rows."""
        with Agent() as agent:
            agent.connect("look", self.fields)
            return [agent.query("look", command) for command in commands][-1]

    def state(self) -> dict[str, str]:
        """How many values it has, and how many were ever stored."""
        rows = (str(row[0]).split() for row in self.ask("STATS"))
        kept = ("curr_items", "total_items", "cmd_set", "cmd_flush", "cmd_touch")
        return {row[1]: row[2] for row in rows if row[1] in kept}

    def filled(self) -> Own:
        for n in range(1, KEYS + 1):
            self.ask(f"SET mine-{n} value-{n:04}")
        return self


@contextmanager
def started(directory: Path, **factors: str) -> Iterator[Own]:
    """With logins."""
    engine, tls = engines.get("memcached"), mechanisms.get("tls")
    asked = tls.check({"certificate": "ecdsa-p256", **factors})
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        installation = engine.find()
        engine.initialise(installation, scratch / "server", run_supervisor)
        settings = tls.server_settings(engine, asked, scratch / "secrets")
        request = StartRequest(installation, scratch / "server", run_supervisor, settings=settings, logs=directory)
        server = engine.start(request)
        try:
            (place,) = (scratch / "secrets").glob("tls-*")
            fields = server.connection()
            yield Own(fields, server.other_ports["tls"]["port"], place, reveal(fields.password)).filled()
        finally:
            server.stop()


@pytest.fixture(scope="module")
def user_server(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    require_server("memcached")
    with started(tmp_path_factory.mktemp("memcached")) as running:
        yield running


@pytest.fixture
def open_to_all(require_server: RequireServer, tmp_path: Path) -> Iterator[Own]:
    """Without logins."""
    engine, installation = engines.get("memcached"), require_server("memcached")
    assert isinstance(engine, Memcached)
    server_pki = pki.Pki(tmp_path / "secrets", certificate="ecdsa-p256")
    if os.geteuid() == 0:
        run_ownership.hand_over(tmp_path / "secrets")
    tls_options = f"ssl_chain_cert={server_pki.certificate},ssl_key={server_pki.key}"
    for _ in range(3):  # another process may take a port before the server does
        port, tls_port = free_port(), free_port()
        listen = f"notls:127.0.0.1:{port},127.0.0.1:{tls_port}"
        argv: list[str | Path] = [engine.program(installation), "-l", listen, "-U", "0", "-Z", "-o", tls_options]
        process = subprocess.Popen([*argv, *(["-u", "root"] if os.geteuid() == 0 else [])], env=dict(os.environ))
        if listens(process, port) and listens(process, tls_port):
            break
    try:
        fields = Connection(driver="memcached", host="127.0.0.1", port=port, user="")
        yield Own(fields, tls_port, server_pki.ca.parent, "").filled()
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    known = request.getfixturevalue("user_server").password if "user_server" in request.fixturenames else "a password"
    monkeypatch.setenv("MEMCACHED_PASSWORD", known)


def test_own_commands_and_connections_are_measured_and_nothing_is_stored(user_server: Own, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    before = user_server.state()
    done = measured("run", "memcached:tls", *user_server.urls(), *user_server.ca, "--sql", "own.txt", *SHORT,
                    "--json", "out.json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert heard == {(arm, witness) for arm in ("plain", "encrypted") for witness in ("wire", "client")}
    assert cell["version"].startswith("1.6")
    done = measured(
        "run", "memcached:tls", *user_server.urls(), *user_server.ca, "--workload", "connect", *SHORT, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A login is a `set`, and stores nothing.
    assert {**user_server.state(), "cmd_set": ""} == {**before, "cmd_set": ""}
    assert user_server.password not in done.stdout + done.stderr


def test_both_ports_are_proven_or_the_one_with_tls_alone(user_server: Own, tmp_path: Path) -> None:
    clear, encrypted = user_server.urls()[1::2]
    before = user_server.state()
    done = ciphercost("prove", clear, encrypted, *user_server.ca, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ENCRYPTED, proven by every witness" in " ".join(done.stdout.split())
    alone = ciphercost("prove", encrypted, *user_server.ca, cwd=tmp_path)
    assert (alone.returncode, "so there is no unencrypted control" in " ".join(alone.stdout.split())) == (0, True)
    unencrypted = ciphercost("prove", clear, cwd=tmp_path)
    assert unencrypted.returncode == 1
    assert "NOT ENCRYPTED: " in unencrypted.stdout
    assert "no encryption (memcached://)" in unencrypted.stdout
    assert user_server.state()["curr_items"] == before["curr_items"]


def test_what_can_not_be_honoured_is_refused_in_one_line(user_server: Own, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    clear, encrypted = user_server.urls()[1::2]
    run = ("run", "memcached:tls", "--sql", "own.txt", "--url")
    for argv, text in (
        ((*run, clear), "--url memcacheds://HOST:PORT is missing"),
        ((*run, clear, "--url", clear), "two URLs without TLS; give one with memcached://"),
        (("run", "memcached:tls", *user_server.urls()), "ciphercost makes none on your server"),
        ((*run, f"{clear}/1", "--url", encrypted), "memcached has no databases"),
        ((*run, f"{clear}?tls=1", "--url", encrypted), "memcached's URLs have none here"),
        ((*run, "memcached://me:word@h", "--url", encrypted), "--url holds a password"),
        ((*run, clear, "--url", "memcacheds://somebody@localhost"), "name two users"),
        (("clean", "--url", f"{clear}?password=x"), "--url holds a password"),
    ):
        done = ciphercost(*argv, cwd=tmp_path)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(("given", "text"), [("wrong", "does MEMCACHED_PASSWORD hold the password?"), ("", "No password was found")])  # fmt: skip
def test_a_login_without_the_right_password_says_what_to_do(
    user_server: Own, tmp_path: Path, given: str, text: str
) -> None:
    done = ciphercost("prove", user_server.urls()[3], *user_server.ca, cwd=tmp_path, MEMCACHED_PASSWORD=given)
    assert done.returncode == 1
    assert text in " ".join((done.stdout + done.stderr).split())


def test_a_server_without_logins_gets_no_password_to_keep(open_to_all: Own, tmp_path: Path) -> None:
    """It would take the login for a value, and answer everybody who asks for the key `login` with user and password."""
    (tmp_path / "own.txt").write_text(OWN)
    before = open_to_all.state()
    argv = ("run", "memcached:tls", *open_to_all.urls(), *open_to_all.ca, "--sql", "own.txt", *SHORT)
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert open_to_all.ask("GET login") == [[None]]
    assert open_to_all.state() == before


def test_a_client_certificate_is_presented_under_load_too(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("memcached")
    (tmp_path / "own.txt").write_text(OWN)
    with started(tmp_path, **{"client-cert": "on"}) as mutual:
        cert, key = tmp_path / "me.pem", tmp_path / "me.key"
        for name, path in (("client.pem", cert), ("client.key", key)):
            path.touch(0o600)
            path.write_bytes((mutual.place / name).read_bytes())
        argv = ("run", "memcached:tls", *mutual.urls(), *mutual.ca, "--sql", "own.txt", *SHORT)
        given = {"MEMCACHED_PASSWORD": mutual.password}
        done = measured(*argv, "--cert", str(cert), "--key", str(key), "--json", "out.json", cwd=tmp_path, **given)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "client_certificate" in result_of(tmp_path)["cells"][0]["encryption"]
        without = measured(*argv, cwd=tmp_path, **given)
        assert without.returncode == 1
        assert "--cert FILE" in " ".join((without.stdout + without.stderr).split())
