"""A real server of the user's gets no more connections and load than allowed, and a banner says so first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.model import run_directory
from test_grants import asked, grant, role, url_for
from test_user_server import run, server, target, unchanged
from userservers import UserServer

__all__ = ["role", "server", "unchanged"]
LIMITED = {
    "postgresql": "ALTER ROLE {user} CONNECTION LIMIT {most}",
    "mysql": "ALTER USER {user} WITH MAX_USER_CONNECTIONS {most}",
    "mariadb": "ALTER USER {user} WITH MAX_USER_CONNECTIONS {most}",
}
"""Firebird has no limit of one user's connections."""
CLIENTS, MOST = 3, 8


def test_the_server_sees_no_more_connections_than_the_plan_says(tmp_path: Path, server: UserServer, role: str) -> None:
    if server.engine.name not in LIMITED:
        pytest.skip("it has no limit of one user's connections")
    grant(server, role)
    server.ask(LIMITED[server.engine.name].format(user=role, most=MOST))
    argv = ("run", target(server), "--url", url_for(server, role), "--clients", str(CLIENTS), "--quick", "--time", "4s")
    more = ("--no-latency", "--no-progress", "--workload", "tpcb", "--max-connections")
    status, output = asked(server, role, tmp_path, *argv, *more, str(MOST))
    assert status == 0, output
    assert f"- at most {MOST} connections at once" in output
    status, output = asked(server, role, tmp_path, *argv, *more, str(MOST - 1))
    assert status == 2
    assert "write --clients 2, or allow 8" in output
    # The limit is in force: with one connection fewer, the server refuses what the plan needs.
    server.ask(LIMITED[server.engine.name].format(user=role, most=2 * CLIENTS - 1))
    status, output = asked(server, role, tmp_path, *argv, *more, str(MOST))
    assert status == 1
    assert "connection" in output


@pytest.mark.usefixtures("unchanged")
def test_no_phase_makes_more_operations_than_the_limit(tmp_path: Path, server: UserServer) -> None:
    limit, directory = 150.0, tmp_path / "run"
    argv = ("--quick", "--time", "10s", "--no-progress", "--max-rate", f"{limit:g}", "-o", str(directory))
    done = run(server, *argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"- at most {limit:g} operations per second" in done.stderr
    slices = list(run_directory.read_slices(directory))
    (facts,) = run_directory.read_facts(directory).cells
    assert {record.phase for record in slices} == {"pilot", "warmup", "latency"}
    for record in slices:
        assert record.agent is not None
        # An open loop never makes an operation before it is due.
        assert record.agent.operations <= limit * record.length + facts.clients


@pytest.mark.usefixtures("unchanged")
def test_a_slow_answer_stops_the_load_and_the_other_cells_of_that_server(tmp_path: Path, server: UserServer) -> None:
    directory = tmp_path / "run"
    cells = "cipher=chacha,arc4" if server.engine.name == "firebird" else "version=1.2,1.3"
    argv = ("--quick", "--time", "6s", "--no-latency", "--no-progress", "-o", str(directory))
    done = run(server, *argv, "--max-latency", "0.001ms", "--matrix", cells, cwd=tmp_path)
    assert done.returncode == 1
    facts = run_directory.read_facts(directory)
    assert [cell.status for cell in facts.cells] == ["failed", "failed"]
    # Which of the cells has the first turn is drawn.
    reasons = sorted((cell.reason for cell in facts.cells), key=lambda reason: reason.startswith("not measured"))
    assert "--max-latency is 0.001 ms" in reasons[0]
    assert reasons[1].startswith("not measured: ")
    assert reasons[1].endswith("stopped the load on this server")
    loaded = {record.cell for record in run_directory.read_slices(directory)}
    assert len(loaded) == 1, "the other cell made no load"
