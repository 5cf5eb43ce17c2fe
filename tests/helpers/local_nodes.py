"""Machines to measure on that are processes of this machine: what `runs.ray_tasks` is without Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ciphercost.model.errors import CiphercostError
from ciphercost.runs import node_run
from ciphercost.runs.node_run import Part
from ciphercost.runs.spread import Lost, Node

Measure = Callable[[str, Part], bytes]
"""(node, its part) -> a packed record."""


class LocalNodes:
    """`count` nodes, each on a host of its own unless `host` is given. `measure` may replace or break what a node does."""

    def __init__(self, count: int, measure: Measure = lambda _, part: node_run.measure(part), host: str = "") -> None:
        self.nodes = [Node(f"local-{number}", host or f"host {number}") for number in range(1, count + 1)]
        self.measure_part = measure
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
                    yield node, self.measure_part(node, part)
                except CiphercostError as error:
                    yield node, Lost(str(error).strip().splitlines()[-1])
        finally:
            self.closed += 1
