"""servers: finds or fetches each server of a run once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.hops import Hop
from ciphercost.host import run_ownership
from ciphercost.host.installation import Installation
from ciphercost.load.plaintext_guard import Refused
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.plan.planned import PlannedCell

Fits = Callable[[str], None]
"""Raises UsageError for a version of the server that can't do what is asked."""
Say = Callable[[str], None]


def any_version(version: str) -> None:
    """Every version fits."""


def silent(_: str) -> None:
    """Print nothing."""


def _does(fits: Fits, version: str) -> bool:
    try:
        fits(version)
    except UsageError:
        return False
    return True


class Servers:
    """Finds or fetches each server once for a run. A failed search is not repeated, and neither is its reason."""

    def __init__(self, cells: Sequence[PlannedCell] = ()) -> None:
        """`cells`: those of the whole run, including finished ones."""
        self.cells = cells
        self.tried: set[int] = set()
        """Numbers of the cells already tried on your own server, before another cell sends it anything unencrypted."""
        self._installations: dict[tuple[str, str, str, str], Installation | None] = {}
        self._hops: dict[str, Installation] = {}
        self.refused = Refused()

    def hop(self, hop: Hop) -> Installation:
        """Like `Hop.find`. Raises MissingServer."""
        if hop.name not in self._hops:
            self._hops[hop.name] = hop.find()
        return self._hops[hop.name]

    def find(
        self, engine: Engine, version: str, url: str, bindir: str, fits: Fits = any_version, say: Say = silent
    ) -> Installation:
        """Like `Engine.find`; if nobody named a server, the first that `fits`, which raises UsageError for a version that can't do the cell.

        `say` gets a line if that is another server than the first. Raises MissingServer, UsageError.
        """
        first = self._first(engine, version, url, bindir)
        try:
            fits(first.version)
        except UsageError as error:
            if version or url or bindir:
                raise
            other = self._other(engine, fits, error)
            say(f"{error}. So this cell runs on {engine.title} {other.version}")
            return other
        return first

    def _other(self, engine: Engine, fits: Fits, reason: UsageError) -> Installation:
        """An installation that fits: one on this machine, or else the newest that can be fetched. Raises `reason` if there is none."""
        for installation in engine.available():
            if _does(fits, installation.version) and not run_ownership.out_of_reach(Path(installation.location)):
                return installation
        try:
            fetched = engine.install()
        except MissingServer as error:
            raise MissingServer(f"{reason}. Fetching another version failed: {error}") from None
        if not _does(fits, fetched.version):
            raise reason
        return fetched

    def _first(self, engine: Engine, version: str, url: str, bindir: str) -> Installation:
        key = (engine.name, version, url, bindir)
        if key not in self._installations:
            self._installations[key] = None
            self._installations[key] = engine.find(version, url=url, bindir=bindir)
        if (installation := self._installations[key]) is None:
            title = f"{engine.title} {version}".strip()
            raise MissingServer(f"{title} was not found: the first cell that needs it gives the reason")
        return installation
