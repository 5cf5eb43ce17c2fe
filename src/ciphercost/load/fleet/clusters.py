"""clusters: joins the cluster that a spec names. Imports Ray only then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ciphercost.load.fleet.agent_pool import Cluster
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Spec


@contextmanager
def joined(spec: Spec) -> Iterator[Cluster | None]:
    """The spec's cluster; None if this machine makes the load. Raises UsageError if the cluster can't be used."""
    if not spec.cluster:
        yield None
        return
    from ciphercost.load.fleet.ray_cluster import RayCluster

    with RayCluster(spec.cluster, spec.placement) as cluster:
        nodes = cluster.count
        if not nodes:
            raise UsageError(
                f"--cluster {spec.cluster}: no node of the cluster offers a CPU; add nodes, or restart one with --num-cpus"
            )
        if spec.placement == "spread" and nodes < max(spec.agents, spec.min_agents):
            raise UsageError(
                f"--agents {max(spec.agents, spec.min_agents)}: the cluster has {nodes} node{'s' * (nodes != 1)} with a CPU, and each runs "
                f"one agent; write --agents {nodes}, add nodes, or use --placement near-server"
            )
        yield cluster
