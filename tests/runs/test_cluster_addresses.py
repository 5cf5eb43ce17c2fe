"""Load from nodes with addresses of their own, in network namespaces: none of them shares a loopback with the server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ciphercost
import namespaced_nodes
import ray_nodes
import result_schema
from ciphercost.host import link
from ciphercost.model import run_directory
from conftest import Require, RequirePossible
from namespaced_nodes import Namespaced
from processes import wait_for

CLI = Path(sys.executable).parent / "ciphercost"
PATIENCE = 400.0
"""Seconds in which a run must make load, also on a busy machine."""


@pytest.fixture(scope="module")
def cluster(require: Require, require_possible: RequirePossible) -> Iterator[Namespaced]:
    require(ray_nodes.INSTALLED, "no Ray: pip install 'ciphercost[ray]'")
    require_possible(link.check_rights)
    with namespaced_nodes.nodes(4, {"PYTHONPATH": str(Path(ciphercost.__file__).parents[1])}) as made:
        yield made


def start(cluster: Namespaced, directory: Path, *more: str) -> subprocess.Popen[str]:
    """`ciphercost run postgresql:tls` with a server that listens on this machine's address on the bridge."""
    words = [
        "run",
        "postgresql:tls",
        "--quick",
        "--no-latency",
        "--clients",
        "8",
        "--agents",
        "4",
        "--no-progress",
        *more,
    ]
    where = ["--cluster", cluster.address, "--listen", cluster.here, "-o", "run", "--json", "out.json"]
    return subprocess.Popen(
        [CLI, *words, *where], cwd=directory, env={**cluster.environment, "CIPHERCOST_TIMEOUT": "9"}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def cell_of(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "out.json").read_text())
    result_schema.validate(found)
    cell: dict[str, Any] = found["cells"][0]
    return cell


@pytest.mark.usefixtures("require_postgresql")
def test_four_nodes_reach_the_server_over_their_own_addresses(cluster: Namespaced, tmp_path: Path) -> None:
    with start(cluster, tmp_path, "--time", "8s") as process:
        said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said + complained
    cell = cell_of(tmp_path)
    addresses = {each["name"].partition("/")[0] for each in cell["fleet"]["nodes"]}
    assert addresses == set(cluster.there), "each agent is on a node with an address of its own"
    witnesses = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert {(arm, "wire") for arm in ("plain", "encrypted")} <= witnesses, "packets were seen on the bridge"
    assert cell["fleet"]["lost"] == []
    print(" ".join(said.split("load from ")[1].splitlines()[:2]))


@pytest.mark.usefixtures("require_postgresql")
def test_a_node_that_can_no_longer_be_reached_is_lost_and_the_run_goes_on(cluster: Namespaced, tmp_path: Path) -> None:
    slices, gone = tmp_path / "run" / "slices.jsonl", list(cluster.there)[-1]
    with start(cluster, tmp_path, "--time", "12s") as process:
        wait_for(
            "load", lambda: process.poll() is not None or (slices.exists() and slices.stat().st_size > 30_000), PATIENCE
        )
        cluster.cut(gone)
        said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said + complained
    cell = cell_of(tmp_path)
    assert [each["node"].partition("/")[0] for each in cell["fleet"]["lost"]] == [gone], said
    assert [each["code"] for each in cell["warnings"]].count("agents-lost") == 1
    left = [each for each in run_directory.read_slices(tmp_path / "run") if each.agent]
    assert left[-1].agent is not None
    assert left[-1].agent.threads == 3
