"""shared: What the cells of an experiment have in common: secrets, templates, schemas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from ciphercost.engines import Server
from ciphercost.host import marks
from ciphercost.host.canary_scan import canary
from ciphercost.provision import scratch_schema

T = TypeVar("T")


class Shared:
    """What the cells of one experiment have in common: keys, canary, loaded data and, in a session, servers that would be alike."""

    def __init__(self, secrets_: Path, clients: int = 0) -> None:
        self.secrets = secrets_
        self.clients = clients
        """Connections of an arm of all cells together, which may be those of one server."""
        secrets_.mkdir(mode=0o700)
        marks.hand_over(secrets_)
        self.canary = canary()
        self.templates: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}
        """Bytes of the loaded data, by the same description as `templates`."""
        self.servers: dict[str, Server] = {}
        self.schemas: set[str] = set()
        """Those that are there, on a server that is the user's."""
        self._loads: list[str] = []

    def schema_for(self, data: str, run_id: str) -> str:
        """Name of the schema that holds these tables: cells that load the same have one between them."""
        if data not in self._loads:
            self._loads.append(data)
        number = self._loads.index(data)
        return scratch_schema.name_for(run_id, number)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Servers live to the end of a session, though several cells use them."""
        self.servers = {}
        with ExitStack() as self._stack:
            yield

    def enter(self, what: AbstractContextManager[T]) -> T:
        """Something that is there to the end of the session."""
        return self._stack.enter_context(what)

    def server(self, like: str, make: AbstractContextManager[Server]) -> Server:
        """The session's server of this description, made by the first that asks for it."""
        if like not in self.servers:
            self.servers[like] = self.enter(make)
        return self.servers[like]
