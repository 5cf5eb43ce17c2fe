"""Load from nodes with addresses of their own, in network namespaces: none of them shares a loopback with the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ciphercost
import namespaced_nodes
import ray_nodes
from ciphercost.host import link
from ciphercost.model import run_directory
from cluster_runs import PATIENCE, cell_of, started, wait_for_load
from conftest import Require, RequirePossible
from namespaced_nodes import Namespaced

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def cluster(require: Require, require_possible: RequirePossible) -> Iterator[Namespaced]:
    require(ray_nodes.INSTALLED, "no Ray: pip install 'ciphercost[ray]'")
    require_possible(link.check_rights)
    with namespaced_nodes.nodes(4, {"PYTHONPATH": str(Path(ciphercost.__file__).parents[1])}) as nodes:
        yield nodes


def listening(cluster: Namespaced) -> list[str]:
    """Options of a run whose server listens on this machine's address on the bridge."""
    return ["--listen", cluster.here, "--no-latency", "--clients", "8", "--agents", "4"]


@pytest.mark.usefixtures("require_postgresql")
def test_four_nodes_reach_the_server_over_their_own_addresses(cluster: Namespaced, tmp_path: Path) -> None:
    with started(cluster, tmp_path, *listening(cluster), "--time", "8s") as process:
        printed, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, printed + complained
    cell = cell_of(tmp_path)
    addresses = {node["name"].partition("/")[0] for node in cell["fleet"]["nodes"]}
    assert addresses == set(cluster.there), "each agent is on a node with an address of its own"
    witnesses = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert {(arm, "wire") for arm in ("plain", "encrypted")} <= witnesses, "packets were seen on the bridge"
    assert cell["fleet"]["lost"] == []
    print(" ".join(printed.split("load from ")[1].splitlines()[:2]))


@pytest.mark.usefixtures("require_postgresql")
def test_a_node_that_can_no_longer_be_reached_is_lost_and_the_run_goes_on(cluster: Namespaced, tmp_path: Path) -> None:
    gone = list(cluster.there)[-1]
    with started(cluster, tmp_path, *listening(cluster), "--time", "12s") as process:
        wait_for_load(tmp_path, process)
        cluster.cut(gone)
        printed, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, printed + complained
    cell = cell_of(tmp_path)
    assert [agent["node"].partition("/")[0] for agent in cell["fleet"]["lost"]] == [gone], printed
    assert [warning["code"] for warning in cell["warnings"]].count("agents-lost") == 1
    left = [record for record in run_directory.read_slices(tmp_path / "run") if record.agent]
    assert left[-1].agent is not None
    assert left[-1].agent.threads == 3
