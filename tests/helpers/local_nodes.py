"""Machines to measure on that are processes of this machine: what `runs.ray_tasks` is without Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ciphercost.model.errors import CiphercostError
from ciphercost.runs import node_run
from ciphercost.runs.node_run import Part
from ciphercost.runs.spread import Lost, Node


class LocalNodes:
    """`count` nodes of one host. `before`: called with the number of the node before each part, e.g. to raise an error."""

    def __init__(self, count: int, before: Callable[[str], None] = lambda _: None) -> None:
        self.nodes = [Node(f"local-{number}", "this host") for number in range(1, count + 1)]
        self.before = before
        self.parts: dict[str, Part] = {}
        self.closed = 0

    def listed(self) -> list[Node]:
        return self.nodes

    def measure(self, parts: Mapping[str, Part], known: Mapping[str, Node]) -> Iterator[tuple[str, bytes | Lost]]:
        assert parts.keys() == known.keys()
        self.parts = dict(parts)
        try:
            for node, part in parts.items():
                try:
                    self.before(node)
                    yield node, node_run.measure(part)
                except CiphercostError as error:
                    yield node, Lost(str(error).strip().splitlines()[-1])
        finally:
            self.closed += 1
