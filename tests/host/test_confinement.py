"""confinement: a server changes nothing outside of the run's directories, connects to nobody and gains no privileges."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import confinement
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.runs import doctor
from conftest import Require
from directories import let_through
from processes import PATIENCE

TRY = """
import os, signal, socket, sys
ours, foreign, port, pid = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def attempt(what, do):
    try:
        do()
        print(what, "done")
    except OSError as error:
        print(what, error.strerror)
attempt("write within", lambda: open(f"{ours}/new", "w").write("x"))
attempt("make within", lambda: os.mkdir(f"{ours}/inner"))
attempt("write to the null device", lambda: open("/dev/null", "w").write("x"))
attempt("read outside", lambda: open(f"{foreign}/theirs").read())
attempt("write outside", lambda: open(f"{foreign}/theirs", "w").write("x"))
attempt("make outside", lambda: open(f"{foreign}/new", "w").write("x"))
attempt("truncate outside", lambda: os.truncate(f"{foreign}/theirs", 0))
attempt("remove outside", lambda: os.unlink(f"{foreign}/theirs"))
attempt("move out", lambda: os.rename(f"{ours}/new", f"{foreign}/moved"))
attempt("listen", lambda: socket.create_server(("127.0.0.1", 0)))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", port)))
attempt("signal within", lambda: os.kill(os.getpid(), 0))
attempt("signal outside", lambda: os.kill(pid, 0))
print("no new privileges", [line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")][0])
"""


@pytest.fixture
def run_supervisor() -> Iterator[Supervisor]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


def attempts(run_supervisor: Supervisor, places: tuple[Path, Path], writable: list[Path] | None) -> dict[str, str]:
    """What a process could do: attempt -> "done" or the error."""
    with socket.create_server(("127.0.0.1", 0)) as listening, subprocess.Popen(["sleep", "1000"]) as other:
        port = listening.getsockname()[1]
        argv: list[str | Path] = [sys.executable, "-I", "-S", "-c", TRY, *places, str(port), str(other.pid)]
        process = run_supervisor.spawn(argv, writable=writable)
        assert process.wait(PATIENCE) == 0, process.output()
        other.kill()
    return dict(split(line) for line in process.output().splitlines())


def split(line: str) -> tuple[str, str]:
    for error in ("done", "Permission denied", "Operation not permitted", "Invalid cross-device link"):
        if line.endswith(error):
            return line.removesuffix(error).strip(), error
    name, _, value = line.rpartition(" ")
    return name, value


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    let_through(tmp_path)
    ours, foreign = tmp_path / "ours", tmp_path / "foreign"
    for place in (ours, foreign):
        place.mkdir()
    (foreign / "theirs").write_text("x")
    return ours, foreign


def test_a_confined_process_changes_nothing_outside_and_connects_to_nobody(
    run_supervisor: Supervisor, places: tuple[Path, Path], require: Require
) -> None:
    version = confinement.abi()
    require(version >= confinement.COMPLETE, f"Landlock is version {version}; 6 is needed")
    outcomes = attempts(run_supervisor, places, [places[0]])
    can = {"write within", "make within", "write to the null device", "read outside", "listen", "signal within"}
    assert {name for name, result in outcomes.items() if result == "done"} == can
    assert outcomes.pop("no new privileges") == "1"
    assert {outcomes[name] for name in outcomes.keys() - can} <= {
        "Permission denied",
        "Operation not permitted",
        "Invalid cross-device link",
    }
    assert (places[1] / "theirs").read_text() == "x"


def test_a_process_that_may_write_everywhere_still_connects_to_nobody(
    run_supervisor: Supervisor, places: tuple[Path, Path], require: Require
) -> None:
    """So are web servers confined, which open a file for each request."""
    version = confinement.abi()
    require(version >= confinement.COMPLETE, f"Landlock is version {version}; 6 is needed")
    outcomes = attempts(run_supervisor, places, [Path(confinement.EVERYWHERE)])
    assert outcomes.pop("no new privileges") == "1"
    assert {name for name, result in outcomes.items() if result != "done"} == {"connect", "signal outside"}


def test_an_agent_connects_and_still_signals_nobody(places: tuple[Path, Path], require: Require) -> None:
    version = confinement.abi()
    require(version >= confinement.COMPLETE, f"Landlock is version {version}; 6 is needed")
    rules = confinement.agents()
    with socket.create_server(("127.0.0.1", 0)) as listening, subprocess.Popen(["sleep", "1000"]) as other:
        paths = map(str, places)
        argv = [sys.executable, "-I", "-S", "-c", TRY, *paths, str(listening.getsockname()[1]), str(other.pid)]
        done = subprocess.run(
            argv, preexec_fn=lambda: confinement.enforce(rules), pass_fds=[rules], capture_output=True, text=True
        )
        other.kill()
    os.close(rules)
    assert done.returncode == 0, done.stderr
    outcomes = dict(split(line) for line in done.stdout.splitlines())
    assert outcomes.pop("no new privileges") == "1"
    assert {name for name, result in outcomes.items() if result != "done"} == {"signal outside"}


def test_agents_are_confined() -> None:
    with Agent() as agent:
        assert "NoNewPrivs:\t1" in Path(f"/proc/{agent.pid}/status").read_text()


def test_without_confinement_all_of_it_works(run_supervisor: Supervisor, places: tuple[Path, Path]) -> None:
    """Otherwise the test above could not fail."""
    outcomes = attempts(run_supervisor, places, None)
    assert outcomes.pop("no new privileges") == "0"
    # The earlier attempts remove the file.
    assert set(outcomes.values()) == {"done"}


def test_doctor_says_what_servers_are_kept_from(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, state in ((0, "warn"), (3, "warn"), (6, "ok"), (9, "ok")):
        monkeypatch.setattr(confinement, "abi", lambda version=version: version)
        name, status, text = doctor._sandbox()
        assert (name, status) == ("sandbox", state)
        assert "no new privileges" in text
        assert ("no Landlock" in text) == (version == 0)
        assert ("servers open no TCP connections" in text) == (version >= 4)
