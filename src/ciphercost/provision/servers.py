"""servers: finds or fetches each server of a run once."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.engines import Engine
from ciphercost.hops import Hop
from ciphercost.host.installation import Installation
from ciphercost.load.plaintext_guard import Refused
from ciphercost.model.errors import MissingServer
from ciphercost.plan.planned import PlannedCell


class Servers:
    """Finds or fetches each server once for a run. A failed search is not repeated, and neither is its reason."""

    def __init__(self, cells: Sequence[PlannedCell] = ()) -> None:
        """`cells`: those of the whole run, including finished ones."""
        self.cells = cells
        self.tried: set[int] = set()
        """Numbers of the cells already tried on your own server, before another cell sends it anything unencrypted."""
        self._found: dict[tuple[str, str, str, str], Installation | None] = {}
        self._hops: dict[str, Installation] = {}
        self.refused = Refused()

    def hop(self, hop: Hop) -> Installation:
        """Like `Hop.find`. Raises MissingServer."""
        if hop.name not in self._hops:
            self._hops[hop.name] = hop.find()
        return self._hops[hop.name]

    def find(self, engine: Engine, version: str, url: str, bindir: str) -> Installation:
        """Like `Engine.find`. Raises MissingServer."""
        key = (engine.name, version, url, bindir)
        if key not in self._found:
            self._found[key] = None
            self._found[key] = engine.find(version, url=url, bindir=bindir)
        if (found := self._found[key]) is None:
            title = f"{engine.title} {version}".strip()
            raise MissingServer(f"{title} was not found: the first cell that needs it gives the reason")
        return found
