"""launch: if another program takes the chosen port before the server does, that program is not mistaken for the server."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.engines import Server, StartRequest
from ciphercost.engines._network import StartedServer
from ciphercost.engines._web.family import Web
from ciphercost.host import launch, ports, run_ownership, supervisor
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError
from conftest import RequireServer

SERVERS = ["postgresql", "mysql", "mariadb", "firebird", "nginx", "apache"]
SHARING = """
import socket, sys, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("up", flush=True)
time.sleep(1000)
"""


@contextlib.contextmanager
def foreign(
    host: str = "127.0.0.1", family: socket.AddressFamily = socket.AF_INET
) -> Iterator[tuple[int, socket.socket]]:
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, 0))
        listener.listen()
        listener.settimeout(0.1)
        yield listener.getsockname()[1], listener


@pytest.fixture
def as_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs as our own user, because nobody may not be able to reach this Python."""
    monkeypatch.setattr(launch, "server_user", lambda: None)


def answers(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
        return True
    return False


def choose_ports(monkeypatch: pytest.MonkeyPatch, *first: int) -> list[int]:
    """Choose these ports first, then free ones. The returned list collects the chosen ports."""
    chosen: list[int] = []
    free = ports.free_port

    def choose(address: str) -> int:
        chosen.append(first[len(chosen)] if len(chosen) < len(first) else free(address))
        return chosen[-1]

    monkeypatch.setattr(launch, "free_port", choose)
    return chosen


def sharing(
    run_supervisor: supervisor.Supervisor, directory: Path, logs: Path, also: Callable[[], list[int]] = list
) -> launch.Launch:
    """Start a server that shares its port with others."""
    argv: list[str | Path] = [sys.executable, "-I", "-S", "-c", SHARING]
    return launch.launch(
        run_supervisor,
        "Sharing 1",
        lambda number: [*argv, str(number)],
        answers,
        directory=directory,
        logs=logs,
        env={},
        cpus=None,
        also=also,
    )


@pytest.mark.parametrize("name", SERVERS)
def test_another_server_of_the_same_kind_on_the_port_is_not_mistaken_for_it(
    require_server: RequireServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    installation, engine = require_server(name), engines.get(name)

    def started(run_supervisor: supervisor.Supervisor, where: str) -> Server:
        directory = run_ownership.scratch_base() / run_supervisor.run_id / where
        engine.initialise(installation, directory, run_supervisor)
        if isinstance(engine, Web):
            engine.lay_out(directory, directory.with_name(f"{where}-documents"), {}, "canary")
        return engine.start(StartRequest(installation, directory, run_supervisor, logs=tmp_path))

    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        supervisor.scratch(run_supervisor.run_id, run_supervisor)
        first = started(run_supervisor, "first")
        assert isinstance(first, StartedServer)
        chosen = choose_ports(monkeypatch, first.port)
        second = started(run_supervisor, "second")
        assert isinstance(second, StartedServer)
        assert second.port != first.port
        assert (chosen[0], chosen[-1]) == (first.port, second.port)
        held = ports.port_owner(second.port, second.pid, (run_ownership.server_user() or (os.geteuid(), 0))[0])
        assert held == ports.PortOwner(ours=True)
        second.stop()
        first.stop()


@pytest.mark.usefixtures("as_us")
@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)]
)
def test_nothing_is_sent_to_a_stranger_who_took_the_port(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, family: socket.AddressFamily
) -> None:
    """With SO_REUSEPORT both may listen; a connection then goes to either."""
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, foreign(host, family) as (port, stranger):
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        chosen = choose_ports(monkeypatch, port)
        launched = sharing(run_supervisor, scratch, tmp_path)
        assert (chosen[0], chosen[-1]) == (port, launched.port)
        with pytest.raises(TimeoutError):
            stranger.accept()
        launched.process.stop()


@pytest.mark.usefixtures("as_us")
def test_if_every_port_is_taken_the_error_names_the_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, foreign() as (port, _):
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        choose_ports(monkeypatch, *[port] * launch.ATTEMPTS)
        with pytest.raises(
            RunError, match=rf"Sharing 1 did not start.*(?s:.*)port {port} was taken.*process {os.getpid()}"
        ):
            sharing(run_supervisor, scratch, tmp_path)


@pytest.mark.usefixtures("as_us")
def test_a_second_port_of_a_web_server_is_checked_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, foreign() as (port, _):
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        others = [port]
        launched = sharing(run_supervisor, scratch, tmp_path, lambda: [others.pop()] if others else [])
        assert not others
        launched.process.stop()


def test_a_child_of_the_started_process_counts_as_the_server() -> None:
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHARING!r}, sys.argv[1]])"
    port = ports.free_port()
    with subprocess.Popen(
        [sys.executable, "-c", script, str(port)], stdout=subprocess.PIPE, process_group=0
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert ports.port_owner(port, process.pid, os.geteuid()) == ports.PortOwner(ours=True)
            other = ports.port_owner(port, os.getpid() + 1_000_000, os.geteuid())
            assert not other.ours
            assert "(process " in other.others
        finally:
            os.killpg(process.pid, 9)
