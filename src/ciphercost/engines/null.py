"""No server at all: measures the agent's own overhead, and takes a known effect to check that ciphercost detects it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.host.installation import Installation
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.version import VERSION

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor


class NoServer(Server):
    """Stands for the server that doesn't exist."""

    def connection(self) -> Connection:
        return Connection(driver="null")

    def stop(self) -> None:
        """Nothing to stop."""


class Null(Engine):
    name = "null"
    title = "no server: the agent's own overhead"
    driver = "null"
    dialect = "null"
    embedded = True
    most_openers = 0
    loads = False

    def available(self) -> Iterable[Installation]:
        return [Installation(self.name, VERSION, "library", "inside the agent")]

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if version or url or bindir:
            raise UsageError("null has no server, so it takes no version, --url or --bindir: leave them out")
        return Installation(self.name, VERSION, "library", "inside the agent")

    def install(self, version: str = "", source: str = "") -> Installation:  # noqa: ARG002
        return self.find(version)

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing to create."""

    def start(self, request: StartRequest) -> Server:  # noqa: ARG002
        return NoServer()


ENGINE = Null()
