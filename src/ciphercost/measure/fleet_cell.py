"""fleet_cell: the load of one cell from many agents, and what its facts hold about them."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from ciphercost.engines._network import RunningServer
from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.load.fleet.agent_pool import AgentPool, Cluster, NoRoom, Remote, Seat
from ciphercost.load.fleet.fleet import Fleet, described
from ciphercost.load.fleet.messages import ServerPlace, Start
from ciphercost.load.fleet.remote_agent import boot_id
from ciphercost.load.load_client import AgentsLost, LoadClient
from ciphercost.measure.recorded_facts import describe_arrivals, warn
from ciphercost.model.errors import RunError
from ciphercost.model.facts import CellFacts
from ciphercost.model.fleet import FleetFacts, FleetNode, LostAgent
from ciphercost.model.result import Warning_
from ciphercost.model.run_directory import Record
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

T = TypeVar("T")

LOST, LATE, DIFFERS = "agents-lost", "agents-late", "node-differs"
COMPARED = ("ciphercost", "agent", "tls_library", "agent_aes", "cpu", "cores", "aes", "vaes", "kernel", "ray", "python")
"""Properties in which nodes should not differ."""


@contextlib.contextmanager
def load_clients(
    session: int, bench: PreparedCell, pair: ServerPair, facts: CellFacts, record: Record, cluster: Cluster | None
) -> Iterator[tuple[Agent, LoadClient]]:
    """The agent that asks and proves, and what makes the load: the same one, unless the nodes of a cluster make it.

    Raises RunError if too few nodes are left.
    """
    if cluster is None:
        with bench.agent(pair) as agent:
            yield agent, agent
        return
    spec = record.facts.spec
    fleet_facts = facts.fleet = facts.fleet or FleetFacts(placement=spec.placement)
    describe_arrivals(facts, bench)
    nodes = cluster.count
    wanted = spec.agents or min(nodes, facts.clients)
    fleet_facts.agents, fleet_facts.least = wanted, spec.min_agents or max(1, wanted - 1)
    now = wanted if spec.placement == "near-server" else min(wanted, nodes)
    if now < fleet_facts.least:
        raise RunError(f"the cluster has {nodes} nodes left, and --min-agents is {fleet_facts.least}")

    def changed() -> None:
        warn(facts, LOST, [Warning_(LOST, lost_words(fleet_facts))] if fleet_facts.lost else [])
        warn(facts, LATE, [Warning_(LATE, late_words(fleet_facts))] if fleet_facts.late_slices else [])
        record.save_facts()

    server = next(iter(pair.connect.values())).host
    with contextlib.ExitStack() as stack:
        seats, failed = members(stack, cluster, now, fleet_facts.least, server)
        fleet_facts.lost = [*fleet_facts.lost, *(LostAgent(session, *failure) for failure in failed.items())]
        if len(seats) < fleet_facts.least:
            raise RunError(
                f"{len(seats)} of {wanted} agents started, and --min-agents is {fleet_facts.least}: "
                + "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            )
        fleet_facts.nodes = joined(fleet_facts.nodes, seats)
        warn(facts, DIFFERS, [Warning_(DIFFERS, text) for text in differences(fleet_facts.nodes)])
        changed()
        crew = AgentPool(cluster, seats, boot_id(), session, fleet_facts, changed)
        start = Start(
            cpus=tuple(sorted(pair.agent_cpus)) or None,
            environment=bench.mask,
            timeout=os.environ.get(deadlines.VARIABLE, ""),
        )
        with (
            on_those_left(lambda: Fleet(bench.agent(pair), crew, fleet_facts, start, record.logs, changed)) as fleet,
            unseen_server(pair, cluster) as (host, place),
        ):
            if host is not None:
                fleet.sample_server(host, place)
            yield fleet.local, fleet


@contextlib.contextmanager
def unseen_server(pair: ServerPair, cluster: Cluster) -> Iterator[tuple[Remote | None, ServerPlace]]:
    """What samples a server that can't be seen from here, if its machine is a node of the cluster, and how to find it there."""
    server = next(iter(pair.by_arm.values()))
    if pair.server is not None or not isinstance(server, RunningServer):
        yield None, ServerPlace(0, ())
        return
    with cluster.server_host(server.address) as host:
        yield host, ServerPlace(server.port, server.programs)


def members(
    stack: contextlib.ExitStack, cluster: Cluster, wanted: int, least: int, server: str
) -> tuple[list[Seat], dict[str, str]]:
    """Start members on as many nodes as have room, `least` of them at least: a node may die after it was counted. Raises RunError."""
    while True:
        try:
            return stack.enter_context(cluster.members(wanted, server))
        except NoRoom:
            if wanted <= least:
                raise
            wanted = max(least, min(wanted - 1, cluster.count))


def on_those_left(act: Callable[[], T]) -> T:
    """Do it again with the agents that are left whenever some are lost. Raises RunError once too few are."""
    while True:
        try:
            return act()
        except AgentsLost:
            continue


def joined(known: list[FleetNode], seats: list[Seat]) -> list[FleetNode]:
    """The nodes of earlier sessions, and those of this one. Pure."""
    by_name = {node.name: node for node in known}
    for node in described(seats, boot_id()):
        by_name.setdefault(node.name, node)
    return list(by_name.values())


def differences(nodes: list[FleetNode]) -> list[str]:
    """In what nodes differ from most others, a sentence for each. Pure."""
    usual = {
        name: Counter(str(node.machine.get(name, "")) for node in nodes).most_common(1)[0][0]
        for name in COMPARED
        if nodes
    }
    sentences = []
    for node in nodes:
        unlike = [
            f"{name.replace('_', ' ')} {value or 'unknown'} instead of {usual[name] or 'unknown'}"
            for name in COMPARED
            if (value := str(node.machine.get(name, ""))) != usual[name]
        ]
        if unlike:
            sentences.append(f"{node.name} differs from most nodes that made the load: {', '.join(unlike)}")
    return sentences


def late_words(facts: FleetFacts) -> str:
    """How many slices did not begin together, as the warning says it. Pure."""
    many = facts.late_slices
    return (
        f"in {many} slice{'s' * (many != 1)} the agents did not begin together, and {'these' if many != 1 else 'this'} and the blocks "
        "around them do not count: their nodes, or this machine, were busy with something else"
    )


def lost_words(facts: FleetFacts) -> str:
    """What was lost, as the warning says it. Pure."""
    where = "; ".join(f"{lost.node} in session {lost.session}: {lost.reason}" for lost in facts.lost)
    failed = facts.failed_slices - facts.late_slices
    slices = f"{failed} slice{'s' * (failed != 1)} failed, and their blocks do not count"
    many = f"{len(facts.lost)} agents were" if len(facts.lost) > 1 else "an agent was"
    return f"{many} lost ({where}); the others took over the connections; {slices if failed else 'no slice failed'}"
