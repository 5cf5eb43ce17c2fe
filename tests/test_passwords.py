"""passwords: asked for once, on a terminal, where the user's server wants one and none was found; never without a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost import engines, guard, record
from ciphercost.engines import Installation, Server

CLI = str(Path(sys.executable).parent / "ciphercost")


@pytest.fixture
def server(require_postgresql: Installation, tmp_path: Path) -> Iterator[Server]:
    engine = engines.get("postgresql")
    with guard.Guard(record.new_id()) as run_guard:
        scratch = guard.scratch(run_guard.run_id, run_guard)
        engine.initialise(require_postgresql, scratch / "data", run_guard)
        started = engine.start(require_postgresql, scratch / "data", run_guard, logs=tmp_path)
        yield started
        started.stop()


def url_of(server: Server) -> str:
    fields = server.connection()
    return f"postgresql://{fields['user']}@localhost:{fields['port']}/{fields['database']}"


def environment(tmp_path: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name not in ("PGPASSWORD", "PGPASSFILE")}
    return {**ours, "HOME": str(tmp_path)}


def on_a_terminal(argv: list[str], typed: str, env: dict[str, str]) -> tuple[int, str]:
    """Run a command whose terminal is ours; type the line when it asks. Returns its status and all that the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, env)
    shown, answered = "", False
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the terminal's other end is closed
            break
        if not data:
            break
        shown += data.decode(errors="replace")
        if not answered and "Password of" in shown:
            os.write(terminal, typed.encode() + b"\n")
            answered = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_on_a_terminal_the_password_is_asked_for_once_and_never_shown(server: Server, tmp_path: Path) -> None:
    password = str(server.connection()["password"])
    status, shown = on_a_terminal([CLI, "prove", url_of(server)], password, environment(tmp_path))
    assert shown.count("Password of ciphercost at 127.0.0.1:") == 1
    assert password not in shown
    # This server has no TLS: it is the log-in in clear that shows that the password served.
    assert "the server says: not encrypted" in shown
    assert "asks for a password" not in shown
    assert status == 1


def test_without_a_terminal_nothing_is_asked(server: Server, tmp_path: Path) -> None:
    done = subprocess.run(
        [CLI, "prove", url_of(server)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path),
    )
    assert done.returncode == 1
    assert "Password of" not in done.stdout + done.stderr
    assert "the server asks for a password and none was given" in done.stdout
    assert "Traceback" not in done.stderr
