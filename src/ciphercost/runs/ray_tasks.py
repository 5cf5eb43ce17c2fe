"""The nodes of a Ray cluster as machines to measure on: one task at a time on each host, which takes all CPUs of its node.

Imports Ray only when it connects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ciphercost.load.fleet import ray_cluster
from ciphercost.model.errors import CiphercostError, UsageError
from ciphercost.runs import node_run
from ciphercost.runs.node_run import Part
from ciphercost.runs.spread import Lost, Node

PROBE_SECONDS = 60.0
"""How long a node may take to start a task that asks for its host."""
CANCEL_SECONDS = 20.0
"""How long a cancelled task may take to end its run before it is killed."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def host() -> str:
    """What all nodes on this host have in common: the kernel's boot id, which containers share."""
    return BOOT_ID.read_text().strip() if BOOT_ID.is_file() else ""


class RayNodes:
    """The nodes of the cluster that this process is connected to."""

    def __init__(self, address: str) -> None:
        self._ray: Any = ray_cluster.connect(address)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._affinity: Any = NodeAffinitySchedulingStrategy

    def listed(self) -> list[Node]:
        """Every living node that has CPUs. One that does not answer is listed too, so that the result says that it was lost."""
        alive = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]
        if not alive:
            raise UsageError("--spread: the cluster has no node with a CPU to measure on")
        asked = {self._on(host, node["NodeID"], 0).remote(): node for node in alive}
        self._ray.wait(list(asked), num_returns=len(asked), timeout=PROBE_SECONDS)
        return [Node(node["NodeID"], self._answer(ref), node["Resources"]["CPU"]) for ref, node in asked.items()]

    def _answer(self, ref: Any) -> str:
        try:
            answer: str = self._ray.get(ref, timeout=0)
        except self._ray.exceptions.RayError:
            return ""
        return answer

    def measure(self, parts: Mapping[str, Part], known: Mapping[str, Node]) -> Iterator[tuple[str, bytes | Lost]]:
        """See `spread.Nodes`. Each host has a queue of its own, because nodes on one host would disturb each other."""
        queues: dict[str, list[str]] = {}
        for node in parts:
            queues.setdefault(known[node].host or node, []).append(node)
        running: dict[Any, tuple[str, str]] = {}
        try:
            for name in queues:
                self._start(queues[name], name, parts, known, running)
            while running:
                # A short wait, so that Ctrl-C is noticed at once.
                done, _ = self._ray.wait(list(running), num_returns=1, timeout=1.0)
                for ref in done:
                    node, name = running.pop(ref)
                    yield node, self._result(ref)
                    self._start(queues[name], name, parts, known, running)
        finally:
            self._cancel(list(running))

    def _start(
        self,
        queue: list[str],
        name: str,
        parts: Mapping[str, Part],
        known: Mapping[str, Node],
        running: dict[Any, tuple[str, str]],
    ) -> None:
        """Start the next part of a host's queue."""
        if queue:
            node = queue.pop(0)
            running[self._on(node_run.measure, node, known[node].cpus).remote(parts[node])] = node, name

    def _on(self, function: Any, node: str, cpus: float) -> Any:
        """The function as a task on that node, and on no other if that one is lost."""
        where = self._affinity(node_id=node, soft=False)
        return self._ray.remote(function).options(num_cpus=cpus, max_retries=0, scheduling_strategy=where)

    def _result(self, ref: Any) -> bytes | Lost:
        try:
            packed: bytes = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            text = str(cause) if isinstance(cause, CiphercostError) else f"{type(cause).__name__}: {cause}"
            return Lost(_last(text))
        except self._ray.exceptions.RayError as error:
            return Lost(f"the node was lost ({type(error).__name__})")
        return packed

    def _cancel(self, refs: list[Any]) -> None:
        """End tasks: first as Ctrl-C would, so that each run removes what it made, then by force."""
        if not refs:
            return
        for ref in refs:
            self._ray.cancel(ref)
        _, left = self._ray.wait(refs, num_returns=len(refs), timeout=CANCEL_SECONDS)
        for ref in left:
            self._ray.cancel(ref, force=True)


def _last(text: str) -> str:
    """The last line of an error, which says what is wrong. Pure."""
    return (text.strip().splitlines() or ["no reason given"])[-1]
