"""Whole runs of workloads that were made from access logs, on a server that ciphercost starts and on one of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ciphercost.engines import Server
from ciphercost.load.due_times import due_us
from ciphercost.model.traffic import Arrived
from ciphercost.plan import schedule
from conftest import RequireServer
from test_real import ciphercost, measured, result_of
from test_real_web import QUICK, site_and_server, urls
from web_servers import Site

__all__ = ["site_and_server"]
RUN_SEED = "5"
LINE = '192.0.2.{} - - [01/Jan/2026:00:00:{:02} +0000] "{} {} HTTP/1.1" {} {} "-" "test" 0.002 {} {}\n'


def log(path: Path) -> Path:
    """300 connections with one request, 100 with seven: 1,000 requests; of ten, seven GETs of two sizes, one of 304, one 404 and one POST."""
    lines = []
    number = 0
    for connection in range(400):
        for nth in range(1, 8 if connection % 4 == 3 else 2):
            kind = number % 10
            asked = [("GET", "/a", 200, 1000)] * 6 + [("GET", "/index.html", 200, 50_000), ("GET", "/a", 304, 0)]
            method, place, status, size = [*asked, ("GET", "/none", 404, 150), ("POST", "/form", 200, 20)][kind]
            lines.append(LINE.format(connection % 200, number % 60, method, place, status, size, connection, nth))
            number += 1
    path.write_text("".join(lines))
    return path


def test_the_mix_of_a_log_is_measured_with_its_connections(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    log(tmp_path / "access.log")
    made = ciphercost("workload", "access.log", "-o", "mine.toml", "--html", "found.html", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "1,000 of 1,000 lines are requests (combined)" in made.stdout
    assert "ciphercost run nginx:tls --workload mine.toml" in made.stderr
    assert "read 1,000 lines of 1 file" in made.stderr
    assert "<html" in (tmp_path / "found.html").read_text()
    done = measured("run", "nginx:tls", "--workload", "mine.toml", *QUICK, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["status"], cell["workload"]) == ("ok", "mine")
    for arm in ("plain", "encrypted"):
        figures = cell["arms"][arm]
        assert figures["errors"] == 0
        assert figures["connects"] / figures["operations"] == pytest.approx(400 / 1000, rel=0.25)
    assert cell["handshakes"]["full"] > 0
    assert "server-closes" not in {warning["code"] for warning in cell["warnings"]}
    plan = json.loads(next((tmp_path / "runs").iterdir()).joinpath("plan.json").read_text())
    assert (plan["cells"][0]["draw"], plan["cells"][0]["arrivals"]) == ("even", "logged")


def test_requests_come_as_they_came_in_the_log(tmp_path: Path, require_server: RequireServer) -> None:
    """One second of the log had ten times as many as the other. Neighbouring slices of the two arms replay the same stretch of it."""
    require_server("nginx")
    counts = [30, 300] * 15
    lines = [
        LINE.format(number % 9, second, "GET", "/a", 200, 1000, number % 9, number)
        for second, count in enumerate(counts)
        for number in range(1, count + 1)
    ]
    (tmp_path / "access.log").write_text("".join(lines))
    made = ciphercost("workload", "access.log", "-o", "mine.toml", "--speed", "10", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    argv = ("--workload", "mine.toml", "--regime", "latency", "-o", "run", "--seed", RUN_SEED)
    done = measured("run", "nginx:tls", *argv, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    slices = [json.loads(line) for line in (tmp_path / "run" / "slices.jsonl").read_text().splitlines()]
    open_loop = [each for each in slices if each["phase"] == "latency" and each.get("position", 0) > 0]
    assert {each["rate"] for each in open_loop} == {1650.0}
    arrived, seed = Arrived(1000, tuple(counts)), int(RUN_SEED)
    due, done_in = [], []
    for each in open_loop:
        drawn = schedule.slice_seed(
            seed, 0, each["session"], each["block"], schedule.draws(each["position"], even=True)
        )
        due.append(len(due_us(arrived, 1650.0, each["length"], drawn)))
        done_in.append(each["agent"]["operations"] if "agent" in each else 0)
        assert done_in[-1] <= due[-1], "a machine that is delayed does fewer, and none does more"
    assert sum(done_in) > 0
    assert max(due) > 1.5 * min(due)


def test_the_paths_of_a_log_are_requested_from_a_site_of_the_users(
    tmp_path: Path, site_and_server: tuple[Site, Server]
) -> None:
    log(tmp_path / "access.log")
    text = (tmp_path / "access.log").read_text().replace("/a ", "/index.html ")
    (tmp_path / "access.log").write_text(text)
    made = ciphercost("workload", "access.log", "-o", "paths.toml", "--keep-paths", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    plain, encrypted = urls(site_and_server[1])
    argv = ("--url", plain, "--url", encrypted, "--ca", "ca.pem", *QUICK, "--json", "out.json")
    done = measured("run", "url:tls", "--workload", "paths.toml", *argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert cell["arms"]["plain"]["errors"] == cell["arms"]["encrypted"]["errors"] == 0
