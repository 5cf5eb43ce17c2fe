"""Runs over the nodes of a real Ray cluster on this machine. Its nodes share this machine's cores, so they measure one after the other."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ciphercost.estimate import results
from ciphercost.model.errors import Interrupted
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import conditions, specs
from ciphercost.report import machines_formats
from ciphercost.runs import ray_tasks, spread
from conftest import Require, RequireServer
from processes import wait_for

HIDDEN = {"OPENSSL_ia32cap": conditions.X86_MASK}
"""Hides AES instructions from OpenSSL: on this node encryption costs more."""


class Cluster:
    """A cluster with three nodes that measure, the second of which hides AES instructions from OpenSSL."""

    def __init__(self, ray_cluster: Any) -> None:
        self.ray_cluster = ray_cluster
        self.workers = [ray_cluster.add_node(num_cpus=1, env_vars=env) for env in ({}, HIDDEN, {})]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for the cluster and its runs, which others may pass through. Short, because a socket's name has at most 107 letters."""
    path = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    path.chmod(0o711)
    monkeypatch.setenv("RAY_TMPDIR", str(path))
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(path / "scratch"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def scratch(place: Path) -> Path:
    """Where the runs of the nodes keep everything until they end."""
    return place / "scratch"


def left(scratch: Path) -> list[str]:
    """What runs have in their scratch, and their processes."""
    mark = f"CIPHERCOST_SCRATCH={scratch}".encode()
    remains = [path.name for path in scratch.glob("*")] if scratch.is_dir() else []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            command = (path.parent / "cmdline").read_bytes()
            if mark in path.read_bytes().split(b"\0") and (b"node_run" in command or b"ciphercost-agent" in command):
                remains.append(command.decode())
    return remains


@pytest.fixture
def cluster(require: Require, monkeypatch: pytest.MonkeyPatch, place: Path) -> Iterator[Cluster]:
    assert place.is_dir()  # the nodes inherit the variables that name it
    try:
        import ray
        from ray import cluster_utils
    except ImportError:
        require(False, "no Ray: pip install 'ciphercost[ray]'")
        raise
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with started(cluster_utils) as ray_cluster:
        monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
        yield Cluster(ray_cluster)
        ray.shutdown()


@contextlib.contextmanager
def started(cluster_utils: Any) -> Iterator[Any]:
    """The head of a cluster. Ray gives its processes 15 s to start, which is too short on a busy machine, so it is tried again."""
    ray_cluster = None
    try:
        for last in (False, False, True):
            try:
                ray_cluster = cluster_utils.Cluster(
                    initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
                )
                break
            except Exception:
                if last:
                    raise
        yield ray_cluster
    finally:
        if ray_cluster is not None:
            ray_cluster.shutdown()


def quick(*cells: CellSpec, seconds: float = 6.0, machines: int = 0) -> Spec:
    return Spec(list(cells), 11, "quick", 1, seconds, latency=False, cluster="auto", spread=True, machines=machines)


def test_a_grid_over_three_nodes_of_which_one_is_slower_shows_it(
    cluster: Cluster, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server("postgresql")
    cells = (
        CellSpec("sqlite", "sqlcipher", workload="point-select", regime="one-core"),
        CellSpec("postgresql", "tls", workload="bulk-read", regime="one-core"),
    )
    nodes, printed = ray_tasks.RayNodes("auto"), list[str]()
    directory = spread.begin(specs.plan(quick(*cells, seconds=10.0)), nodes, tmp_path / "run")
    concluded = spread.run_remaining(directory, nodes, printed.append)
    print(machines_formats.get("terminal")(concluded))
    assert any("nodes of 1 host;" in line and "one after the other" in line for line in printed)
    assert [machine.state for machine in concluded.run.machines] == ["measured"] * 3
    hidden = {
        machine.name
        for machine in concluded.run.machines
        if any(
            one.code == "aes-hidden"
            for by_machine in concluded.on_machines
            for one in by_machine[machine.name].warnings
        )
    }
    assert len(hidden) == 1
    for cell in concluded.run.cells:
        assert (cell.machines, cell.hosts) == (3, 1)
        over = cell.overhead[cell.metric]
        costs = {machine.machine: machine.estimate for machine in over.machines}
        (slow,) = (costs.pop(name) for name in hidden)
        assert all(slow.low > cost.high for cost in costs.values())
        assert over.between is not None
        assert over.between.p_value < 0.025
        assert over.between.low > 0
        assert over.covers.startswith("3 nodes of one host,")
    starts = [results.conclude(directory / "machines" / machine.name) for machine in concluded.run.machines]
    spans = sorted((result.started, result.ended) for result in starts)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans)), "one after the other"


def test_a_node_that_is_killed_costs_its_cells_and_a_new_one_measures_them(
    cluster: Cluster, scratch: Path, tmp_path: Path
) -> None:
    cells = (CellSpec("null", "busy", regime="one-core", factors={"effect": "20%"}),)
    nodes, printed = ray_tasks.RayNodes("auto"), list[str]()
    directory = spread.begin(specs.plan(quick(*cells)), nodes, tmp_path / "run")
    first = spread.read(directory).machines[0]
    victim = next(worker for worker in cluster.workers if worker.node_id == first.node)

    def kill() -> None:
        wait_for("the first node's run", lambda: bool(left(scratch)), 60)
        time.sleep(1)
        cluster.ray_cluster.remove_node(victim, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    concluded = spread.run_remaining(directory, nodes, printed.append)
    killer.join()
    assert [machine.state for machine in concluded.run.machines] == ["lost", "measured", "measured"]
    assert "the node was lost" in concluded.run.machines[0].reason
    assert concluded.run.cells[0].machines == 2
    cluster.ray_cluster.add_node(num_cpus=1)
    again = spread.run_remaining(directory, nodes, printed.append)
    assert again.run.cells[0].machines == 3
    wait_for("nothing is left", lambda: not left(scratch))


def test_ctrl_c_ends_the_tasks_and_leaves_nothing_behind(cluster: Cluster, scratch: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ciphercost",
        "run",
        "null:busy",
        "--quick",
        "--time",
        "60s",
        "--no-latency",
        "--cluster",
        "auto",
        "--spread",
    ]
    running = subprocess.Popen(
        [*command, "-o", tmp_path / "run"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    wait_for("a node's run", lambda: bool(left(scratch)), 60)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "interrupted; everything measured so far" in errors
    assert str(Interrupted(tmp_path / "run")).partition(";")[0] in errors
    wait_for("nothing is left", lambda: not left(scratch))
    assert spread.conclude(tmp_path / "run").run.cells[0].machines == 0
