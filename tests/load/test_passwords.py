"""passwords: asked for once, at a terminal, if the user's server needs one and none was found; never without a
terminal.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.engines import Server, StartRequest
from ciphercost.host import supervisor
from ciphercost.model import run_directory
from ciphercost.model.secret import reveal
from conftest import RequireServer
from mysql_servers import OFF
from terminals import on_a_terminal
from userservers import ENGINES, user_server

CLI = str(Path(sys.executable).parent / "ciphercost")


@pytest.fixture(params=["postgresql", "mysql", "mariadb", "firebird"])
def server(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path: Path
) -> Iterator[tuple[Server, str]]:
    """A server without encryption, and its URL."""
    name = request.param
    installation, engine = require_server(name), engines.get(name)
    without = {**OFF, "firebird": {"WireCrypt": "Disabled"}}
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        started = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=without.get(name, {}), logs=tmp_path)
        )
        fields = started.connection()
        yield started, f"{name}://{fields.user}@localhost:{fields.port}/{fields.database}"
        started.stop()


def environment(tmp_path: Path) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PGPASSWORD", "PGPASSFILE", "MYSQL_PWD", "MYSQL_HOME", "ISC_PASSWORD")
    }
    return {**ours, "HOME": str(tmp_path)}


@pytest.mark.parametrize("name", ENGINES)
def test_on_a_terminal_the_password_is_asked_for_once_and_never_shown(
    require_server: RequireServer, tmp_path: Path, name: str
) -> None:
    require_server(name)
    with user_server(name, tmp_path) as server:
        password = reveal(server.fields.password)
        argv = [CLI, "prove", server.url, *server.by_ca]
        status, shown = on_a_terminal(argv, environment(tmp_path), asked="Password of", typed=password + "\n")
    assert shown.count("Password of ciphercost at 127.0.0.1:") == 1
    assert password not in shown
    assert "asks for a password" not in shown
    assert "Access denied" not in shown
    assert status == 0, shown


def test_a_server_without_encryption_does_not_get_the_password_asked_for(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    status, shown = on_a_terminal([CLI, "prove", server[1]], environment(tmp_path), asked="Password of", typed="x\n")
    assert status == 1
    assert "Password of" not in shown
    assert "the server reports: not encrypted" not in shown


def test_without_a_terminal_nothing_is_asked(server: tuple[Server, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [CLI, "prove", server[1]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path),
    )
    assert done.returncode == 1
    assert "Password of" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
