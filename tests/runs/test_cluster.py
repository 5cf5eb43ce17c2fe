"""Whole runs whose load the nodes of a real Ray cluster make: measured, proven, without secrets, and with nodes that are killed."""

from __future__ import annotations

import contextlib
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ciphercost
import ray_nodes
import repetitions
import steady
import warm
from ciphercost.model import run_directory
from cluster_runs import FAST, PATIENCE, cell_of, started, wait_for_load
from conftest import Require, RequireServer
from processes import wait_for
from ray_nodes import RayNodes
from test_secrets import NEW_PASSWORD, forms
from userservers import user_server

pytestmark = pytest.mark.alone

CLI = Path(sys.executable).parent / "ciphercost"
SOURCES = Path(ciphercost.__file__).parents[1]
LARGEST = 200 << 20
NODES = 2 if repetitions.QUICK else 4
"""Each node takes about 8 s of CPU to start."""
LATE = re.compile(r"after the slice (was to begin|began to count)|orders in a row came too late")
"""Why a busy machine ends a run, or loses an agent."""


@pytest.fixture(scope="module")
def cluster(require: Require) -> Iterator[RayNodes]:
    require(ray_nodes.INSTALLED, "no Ray: pip install 'ciphercost[ray]'")
    with ray_nodes.nodes(NODES, {"PYTHONPATH": str(SOURCES)}) as nodes:
        yield nodes


def run(
    cluster: RayNodes, *argv: str, cwd: Path, address: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """`ciphercost run … --cluster`, with a result in out.json."""
    words = ("run", *argv, "--no-progress", "--json", "out.json", "--cluster", address or cluster.address)
    env = {**cluster.environment, **environment}
    for _ in range(steady.TRIES):
        done = warm.run(words, cwd=cwd, env=env, timeout=400)
        assert "Traceback" not in done.stderr, done.stderr
        if not LATE.search(" ".join(done.stdout.split())):
            break
        shutil.rmtree(cwd / "runs")
    return done


def members(cluster: RayNodes) -> list[int]:
    """Agents, and the actors that hold them, on all nodes of a cluster."""
    mark = f"XDG_DATA_HOME={cluster.directory}".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (path / "cmdline").read_bytes()
            ours = b"ciphercost-agent" in command.partition(b"\0")[0] or command.startswith(b"ray::RemoteAgent")
            if ours and mark in (path / "environ").read_bytes().split(b"\0"):
                pids.append(int(path.name))
    return pids


@pytest.fixture
def nothing_left(cluster: RayNodes) -> Iterator[None]:
    yield
    wait_for("all agents and actors to end", lambda: not members(cluster))


SHORT = ("--quick", "--time", "4s", "--no-latency", "--clients", "8")


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_all_nodes_make_the_load_of_one_server_and_every_session_is_proven(cluster: RayNodes, tmp_path: Path) -> None:
    done = run(cluster, "postgresql:tls", *SHORT, "--agents", str(NODES), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "start skew p99 " in done.stdout
    print(" ".join(done.stdout.split("load from ")[1].splitlines()[:2]))
    assert f"over {NODES} agents" in " ".join(done.stdout.split())
    cell = cell_of(tmp_path)
    fleet = cell["fleet"]
    assert (fleet["agents"], fleet["least"], len(fleet["nodes"]), fleet["lost"]) == (NODES, NODES - 1, NODES, [])
    assert fleet["start_skew"]["slices"] > 0
    assert all(node["slices"] > 0 and node["machine"]["tls_library"] for node in fleet["nodes"])
    # All nodes are on this machine, and so is the controller: one clock.
    assert [(clock["offset_s"], clock["error_s"]) for clock in fleet["clocks"]] == [(0.0, 0.0)] * NODES
    assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]} == {
        (arm, witness) for arm in ("plain", "encrypted") for witness in ("client", "server", "wire")
    }
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    record = next((tmp_path / "runs").iterdir())
    slices = [
        slice_record
        for slice_record in run_directory.read_slices(record)
        if slice_record.phase == "capacity" and slice_record.agent
    ]
    assert slices
    assert all(slice_record.start_skew is not None for slice_record in slices)
    assert all(slice_record.agent and slice_record.agent.threads == NODES for slice_record in slices)
    assert all(slice_record.counters and slice_record.counters.server_cpu_ns for slice_record in slices)


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_an_open_loop_in_two_sessions_is_dealt_out(cluster: RayNodes, tmp_path: Path) -> None:
    argv = ("postgresql:tls", "--sessions", "2", "--time", "14s", "--clients", "4", "--agents", "2")
    done = run(cluster, *argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = cell_of(tmp_path)
    assert "latency_p50" in cell["overhead"]
    assert {clock["session"] for clock in cell["fleet"]["clocks"]} == {1, 2}


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_a_cluster_is_reached_from_outside(cluster: RayNodes, tmp_path: Path) -> None:
    done = run(cluster, "postgresql:none", *SHORT, "--agents", "2", cwd=tmp_path, address=cluster.client)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cell_of(tmp_path)["fleet"]["agents"] == 2


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_agents_near_the_server_share_its_node(cluster: RayNodes, tmp_path: Path) -> None:
    argv = ("postgresql:tls", *SHORT, "--agents", "3", "--placement", "near-server")
    done = run(cluster, *argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 agents near the server" in " ".join(done.stdout.split())


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("nothing_left")
def test_no_password_is_in_any_file_argument_or_environment_of_the_cluster(
    cluster: RayNodes, tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server:
        password = secrets.token_hex(16)
        server.ask(NEW_PASSWORD["postgresql"].format(password))
        argv = ("postgresql:tls", "--url", server.url, *server.by_ca, *SHORT, "--agents", "2")
        done = run(cluster, *argv, cwd=tmp_path, **dict.fromkeys(server.environment, password))
    assert done.returncode == 0, done.stdout + done.stderr
    needles = forms(password.encode())
    places = [cluster.sessions, *(tmp_path / "runs").iterdir(), Path("/dev/shm")]
    searched, leaks = 0, []
    for place in places:
        for path in place.rglob("*"):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGEST:
                    searched += 1
                    content = path.read_bytes()
                    leaks += [f"{path}: {how}" for how, needle in needles.items() if needle in content]
    assert searched > 20, "Ray's logs were not there to be searched"
    assert not leaks
    assert all(needle.decode() not in done.stdout + done.stderr for needle in needles.values())


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
@pytest.mark.parametrize("seed", range(20))
def test_a_node_that_is_killed_costs_its_block_and_not_the_run(cluster: RayNodes, tmp_path: Path, seed: int) -> None:
    # By how much was recorded, not by the clock: a busy machine takes longer. Below 0: before any load, while agents start.
    moment = random.Random(seed).uniform(-30_000, 120_000)
    number = cluster.add(PYTHONPATH=str(SOURCES))
    killed = False
    try:
        with started(cluster, tmp_path, "--time", "8s", "--clients", "10", "--agents", "5") as process:
            if moment < 0:
                wait_for("an agent", lambda: len(members(cluster)) > 1 or process.poll() is not None, PATIENCE)
            else:
                wait_for_load(tmp_path, process, moment)
            early = process.poll() is None
            cluster.kill(number)
            killed = True
            printed, complained = process.communicate(timeout=PATIENCE)
    finally:
        if not killed:
            cluster.kill(number)
    assert "Traceback" not in complained, complained
    cell = cell_of(tmp_path)
    assert cell["status"] == "ok", printed
    assert process.returncode == 0
    fleet = cell["fleet"]
    print(f"seed {seed}, at {moment:.0f} bytes, early {early}: lost {fleet['lost']}, failed {fleet['failed_slices']}")
    # It may die after the last slice, when nobody asks it for anything.
    if early and len(fleet["nodes"]) == 5 and fleet["lost"]:
        assert "an agent was lost (" in " ".join(printed.split())
        assert [warning["code"] for warning in cell["warnings"]].count("agents-lost") == 1
    # Every connection was made again by those that are left.
    used = {
        slice_record.start_skew is not None
        for slice_record in run_directory.read_slices(tmp_path / "run")
        if slice_record.agent
    }
    assert used == {True}


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_an_agents_process_that_freezes_is_lost(cluster: RayNodes, tmp_path: Path) -> None:
    with started(cluster, tmp_path, "--time", "10s", "--clients", "8", "--agents", "4") as process:
        wait_for_load(tmp_path, process)
        actors = [
            pid for pid in members(cluster) if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::RemoteAgent")
        ]
        os.kill(actors[0], signal.SIGSTOP)
        printed, _ = process.communicate(timeout=PATIENCE)
    cell = cell_of(tmp_path)
    assert cell["status"] == "ok", printed
    assert [agent["reason"] for agent in cell["fleet"]["lost"]] == ["it did not answer for 3 s"]
    with contextlib.suppress(ProcessLookupError):
        os.kill(actors[0], signal.SIGKILL)


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_with_fewer_than_min_agents_the_cell_ends_with_a_reason(cluster: RayNodes, tmp_path: Path) -> None:
    argv = ("--time", "20s", "--clients", "8", "--agents", "4", "--min-agents", "4")
    with started(cluster, tmp_path, *argv) as process:
        wait_for_load(tmp_path, process)
        actors = [
            pid for pid in members(cluster) if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::RemoteAgent")
        ]
        os.kill(actors[0], signal.SIGKILL)
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, printed
    reason = cell_of(tmp_path)["reason"]
    assert "3 of 4 agents are left" in reason
    assert "--min-agents is 4" in reason


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_a_controller_that_ends_leaves_no_agent_behind(
    cluster: RayNodes, tmp_path: Path, number: signal.Signals
) -> None:
    with started(cluster, tmp_path, "--time", "60s", "--clients", "8") as process:
        # Its first slice: on a busy machine, a run may end because too many slices come late.
        wait_for_load(tmp_path, process, 1)
        assert len(members(cluster)) >= 2 * NODES
        process.send_signal(number)
        _, complained = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in complained
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130), complained
    wait_for("all agents and actors to end", lambda: not members(cluster))


# ── nodes that lack ciphercost ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_a_node_with_another_ciphercost_gets_this_one(cluster: RayNodes, tmp_path: Path) -> None:
    other = tmp_path / "other" / "ciphercost"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise ImportError('an old one')\n")
    number = cluster.add(PYTHONPATH=str(other.parent))
    try:
        done = run(cluster, "postgresql:tls", *SHORT, "--clients", "5", "--agents", "5", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(cell_of(tmp_path)["fleet"]["nodes"]) == 5
        assert not cell_of(tmp_path)["fleet"]["lost"]
    finally:
        cluster.kill(number)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("require_postgresql")
def test_more_agents_than_nodes_are_refused_before_anything_starts(cluster: RayNodes, tmp_path: Path) -> None:
    done = run(cluster, "postgresql:tls", *SHORT, "--agents", "8", cwd=tmp_path)
    assert done.returncode == 2
    # A node that an earlier test has killed may still be counted.
    words = r"--agents 8: the cluster has ([2-7]) nodes with a CPU, and each runs one agent; write --agents \1, "
    assert re.search(words, done.stderr), done.stderr
    assert not list((tmp_path / "runs").glob("*/slices.jsonl"))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "auto"])
@pytest.mark.usefixtures("require_postgresql")
def test_an_address_without_a_cluster_is_refused(cluster: RayNodes, tmp_path: Path, address: str) -> None:
    done = run(cluster, "postgresql:tls", *SHORT, cwd=tmp_path, address=address, RAY_TMPDIR=str(tmp_path))
    assert done.returncode == 2
    assert f"--cluster {address}: " in done.stderr
    assert "ray start --head" in done.stderr


@pytest.mark.usefixtures("require_postgresql")
def test_a_cluster_that_wants_a_token_is_used_with_it_alone(require: Require, tmp_path: Path) -> None:
    require(ray_nodes.INSTALLED, "no Ray: pip install 'ciphercost[ray]'")
    for name in ("token", "wrong"):
        (tmp_path / name).write_text(secrets.token_hex(32))
    by_token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    with ray_nodes.nodes(2, {"PYTHONPATH": str(SOURCES), **by_token}) as guarded:
        done = run(guarded, "postgresql:none", *SHORT, "--agents", "2", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert cell_of(tmp_path)["fleet"]["agents"] == 2
        wrong = str(tmp_path / "wrong")
        done = run(guarded, "postgresql:none", *SHORT, cwd=tmp_path, RAY_AUTH_TOKEN_PATH=wrong)
        assert done.returncode == 2
        assert "by token: " in done.stderr
        assert "RAY_AUTH_TOKEN_PATH" in done.stderr
        done = run(guarded, "postgresql:none", *SHORT, cwd=tmp_path, RAY_AUTH_MODE="disabled")
        assert done.returncode == 2
        assert "without a token: " in done.stderr
        assert "RAY_AUTH_MODE=token" in done.stderr


# ── beside a single agent ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("require_postgresql", "nothing_left")
def test_the_servers_cpu_per_operation_is_that_of_a_single_agent(cluster: RayNodes, tmp_path: Path) -> None:
    argv = ("postgresql:tls", "--quick", "--time", "20s", "--no-latency", "--clients", "8", "--seed", "5")
    costs = []
    for where, more in (("one", ()), ("four", ("--cluster", cluster.address, "--agents", "4"))):
        (tmp_path / where).mkdir()
        words = ("run", *argv, "--no-progress", "--json", "out.json", *more)
        done = warm.run(words, cwd=tmp_path / where, env={**cluster.environment, **FAST}, timeout=400)
        assert done.returncode == 0, done.stdout + done.stderr
        costs.append(cell_of(tmp_path / where)["overhead"]["server_cpu_per_op"])
    one, four = costs
    print(
        *(
            f"{name}: {cost['ratio']:.4f} ({cost['low']:.4f} to {cost['high']:.4f})"
            for name, cost in zip(("one", "four"), costs, strict=True)
        )
    )
    assert max(one["low"], four["low"]) <= min(one["high"], four["high"]), f"{one} and {four} have nothing in common"
