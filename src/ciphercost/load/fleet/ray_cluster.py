"""ray_cluster: runs the members of a fleet as actors of a Ray cluster. Imports Ray only when it is used."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import msgspec

from ciphercost.load.fleet import addresses, shipped
from ciphercost.load.fleet.agent_pool import DESCRIBED_SECONDS, Cluster, Gone, NoRoom, Pending, Remote, Seat
from ciphercost.load.fleet.messages import Failure, NodeDescription
from ciphercost.load.fleet.remote_agent import RemoteAgent
from ciphercost.load.fleet.server_host import ServerHost
from ciphercost.model.errors import CiphercostError, RunError, UsageError
from ciphercost.model.fleet import Placement

INSTALL = "pip install 'ciphercost[ray]'"
MISSING = f"--cluster needs Ray, which is not installed: {INSTALL}"
PLACED_SECONDS = 60.0
"""Within these, nodes must have room for the actors."""
LIVENESS = "liveness"
"""Concurrency group of `ping`, which a member answers while it runs a slice."""
A_BIT = 0.01
"""Of a CPU, reserved for an actor. Not a whole one: cells that share their sessions have their agents side by side."""


def check_installed() -> None:
    """Raise UsageError if Ray is not installed. Importing it takes seconds, and what can be refused without it is refused first."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError(MISSING)


def ray_module() -> Any:
    """Ray. Raises UsageError if it is not installed."""
    # Before the import, which reads them.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UsageError(MISSING) from None
    return ray


def connect(address: str, runtime_env: Mapping[str, object] | None = None) -> Any:
    """Connect this process to a cluster (`auto`, HOST:PORT or ray://HOST:PORT), and return Ray.

    `runtime_env`: what the nodes get for this job. Raises UsageError without Ray, or if no cluster answers.
    """
    check_installed()
    place = addresses.resolved(address)
    addresses.check_guarded(place, address, metadata.version("ray"))
    addresses.check_listening(place, address)
    ray = ray_module()
    refused = f"--cluster {address}: Ray can't connect to it ({addresses.token_hint()})"
    with signals_kept(), raising(UsageError, refused):
        ray.init(
            address=place, log_to_driver=False, configure_logging=False, runtime_env=dict(runtime_env or {}) or None
        )
    return ray


class Node(msgspec.Struct, frozen=True):
    """A node of the cluster that can run actors."""

    id: str
    address: str
    host: str

    @property
    def name(self) -> str:
        return f"{self.address}/{self.id[:6]}"


class Actor:
    """A member on a node; see `Remote`."""

    def __init__(self, handle: Any, name: str) -> None:
        self.handle = handle
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def start(self, method: str, *arguments: Any) -> Any:
        call = getattr(self.handle, method)
        return (call.options(concurrency_group=LIVENESS) if method == "ping" else call).remote(*arguments)


class RayCluster(Cluster):
    """A connection to a Ray cluster. Use as a context manager: leaving it ends what the run has started there."""

    def __init__(self, address: str, placement: Placement = "spread") -> None:
        """`address`: `auto`, HOST:PORT or ray://HOST:PORT. Raises UsageError if no cluster answers there."""
        self._ray = connect(address)
        self._placement = placement
        self._address = address

    def _connect_again(self, runtime_env: dict[str, object]) -> None:
        with signals_kept():
            self._ray.shutdown()
        connect(self._address, runtime_env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception), signals_kept():
            self._ray.shutdown()

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are alive and offer CPUs."""
        with raising(RunError, "the cluster does not answer any more"):
            known = self._ray.nodes()
        return [
            Node(node["NodeID"], node["NodeManagerAddress"], node.get("NodeManagerHostname", ""))
            for node in known
            if node["Alive"] and node["Resources"].get("CPU", 0) > 0
        ]

    def work_in(self, directory: Path) -> None:
        """See `Cluster`. If a node lacks this version of ciphercost or of the agent, all of this run's actors get both."""
        if self._lacking(self.nodes):
            # Ray uploads local files for a whole job only, so this run's job begins anew.
            self._connect_again({"py_modules": [str(wheel) for wheel in shipped.wheels(directory)]})

    @property
    def count(self) -> int:
        """See `Cluster`."""
        return len(self.nodes)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def collect(self, calls: Sequence[Any], timeout: float) -> list[Any]:
        """See `Carrier`."""
        ray = self._ray
        with raising(RunError, "the cluster does not answer any more"):
            ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=max(0.0, timeout))
        there = set(ready)
        return [self._result(call) if call in there else Pending() for call in calls]

    def _result(self, call: Any) -> Any:
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            return Gone(f"it failed: {first_line(error.cause or error)}")
        except self._ray.exceptions.RayError as error:
            return Gone(reason_of(error))

    def dismiss(self, remote: Remote) -> None:
        """See `Carrier`."""
        assert isinstance(remote, Actor)
        with contextlib.suppress(Exception):
            self._ray.kill(remote.handle, no_restart=True)

    # ── members ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def members(self, wanted: int, server: str = "") -> Iterator[tuple[list[Seat], dict[str, str]]]:
        """Start a member on each of `wanted` nodes (near the server: all on its node, whose address is `server`).

        Yields (the members, reasons by node of those that did not start). Raises NoRoom.
        """
        from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        near = self._placement == "near-server"
        bundle = {"CPU": A_BIT} | ({f"node:{self._near(server)}": 0.001} if near else {})
        group = placement_group([bundle] * wanted, strategy="STRICT_PACK" if near else "STRICT_SPREAD")
        actors: list[Actor] = []
        try:
            with raising(RunError, "the cluster can't place the agents"):
                placed = group.wait(PLACED_SECONDS)
            if not placed:
                raise NoRoom(
                    f"the cluster has no room for {wanted} agents: {len(self.nodes)} nodes are alive; use fewer --agents, or add "
                    "nodes"
                )
            places = placement_group_table(group)["bundles_to_node_id"]
            nodes = {node.id: node for node in self.nodes}
            remote_class = self._ray.remote(
                num_cpus=A_BIT, max_restarts=0, max_task_retries=0, concurrency_groups={LIVENESS: 1}
            )(RemoteAgent)
            for number in range(wanted):
                node = nodes.get(places[number]) or Node(places[number], "?", "")
                strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)
                handle = remote_class.options(scheduling_strategy=strategy).remote()
                name = f"{node.name}.{number + 1}" if near else node.name
                actors.append(Actor(handle, name))
            yield self._described(actors)
        finally:
            for actor in actors:
                self.dismiss(actor)
            with contextlib.suppress(Exception):
                remove_placement_group(group)

    @contextlib.contextmanager
    def server_host(self, address: str) -> Iterator[Actor | None]:
        """Start a `ServerHost` on the node with this address. None: it is no node of the cluster."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = next((node for node in self.nodes if node.address == address), None)
        if node is None:
            yield None
            return
        remote_class = self._ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={LIVENESS: 1})(ServerHost)
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        actor = Actor(remote_class.options(scheduling_strategy=strategy).remote(), node.name)
        try:
            yield actor
        finally:
            self.dismiss(actor)

    def _described(self, actors: Sequence[Actor]) -> tuple[list[Seat], dict[str, str]]:
        answers = self.collect([actor.start("describe") for actor in actors], DESCRIBED_SECONDS)
        seats: list[Seat] = []
        failed: dict[str, str] = {}
        for actor, answer in zip(actors, answers, strict=True):
            if isinstance(answer, NodeDescription):
                machine = answer.machine | {"ray": self._ray.__version__, "host": answer.host}
                seats.append(Seat(actor, msgspec.structs.replace(answer, machine=machine)))
                continue
            self.dismiss(actor)
            if isinstance(answer, Gone):
                failed[actor.name] = answer.reason
            elif isinstance(answer, Failure):
                failed[actor.name] = answer.text
            else:
                failed[actor.name] = f"it did not start within {DESCRIBED_SECONDS:.0f} s"
        return seats, failed

    def _near(self, server: str) -> str:
        """The address of the server's node. Raises UsageError if it is none of the cluster's."""
        addresses = {node.address for node in self.nodes}
        address = server if server in addresses else self._own_address()
        if address not in addresses:
            raise UsageError(
                f"--placement near-server: the server's machine ({server or address}) is no node of the cluster; use --placement "
                "spread"
            )
        return address

    def _own_address(self) -> str:
        address: str = self._ray.util.get_node_ip_address()
        return address

    def _lacking(self, nodes: Sequence[Node]) -> list[str]:
        """Names of the nodes that lack this version of ciphercost or of the agent."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        probe = self._ray.remote(num_cpus=0, max_retries=0)(shipped.probe())
        calls = [
            probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote()
            for node in nodes
        ]
        needed, installed = shipped.versions(), self.collect(calls, DESCRIBED_SECONDS)
        # A node that has gone is found when its actor does not start.
        return [
            node.name
            for node, has in zip(nodes, installed, strict=True)
            if not isinstance(has, Gone | Pending) and has != needed
        ]


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind. Pure."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def reason_of(error: BaseException) -> str:
    """Why a member is gone, in a few words: Ray's own text is a page long. Pure."""
    kind, text = type(error).__name__, str(error)
    if "node" in text.lower() and ("died" in text.lower() or "dead" in text.lower() or "terminated" in text.lower()):
        return "its node has died"
    return {
        "ActorDiedError": "its process has ended",
        "ActorUnavailableError": "its node can't be reached",
        "WorkerCrashedError": "its process has ended",
        "RuntimeEnvSetupError": f"ciphercost could not be installed there: {first_line(error)}",
        "ActorUnschedulableError": "its node has no room",
    }.get(kind, f"{kind}: {first_line(error)}")


@contextlib.contextmanager
def raising(kind: type[CiphercostError], words: str) -> Iterator[None]:
    """Turn an error of Ray, which raises many kinds, into one of ours."""
    try:
        yield
    except CiphercostError:
        raise
    except Exception as error:
        raise kind(f"{words}: {first_line(error)}") from None


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Keep this process's own signal handlers: Ray installs others."""
    before = {}
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before[signal_number] = signal.getsignal(signal_number)
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            if handler is not None:
                with contextlib.suppress(ValueError):  # not the main thread
                    signal.signal(signal_number, handler)
