"""What the cells of an experiment share: secrets, templates, schemas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar, cast

from ciphercost.engines import Server
from ciphercost.host import run_ownership
from ciphercost.host.canary_scan import canary
from ciphercost.provision import scratch_schema

T = TypeVar("T")


class ExperimentResources:
    """What the cells of one experiment share: keys, canary, loaded data and, within a session, identical servers."""

    def __init__(self, secrets_: Path, clients: int = 0) -> None:
        self.secrets = secrets_
        self.clients = clients
        """Connections of one arm over all cells, because one server may serve them all."""
        secrets_.mkdir(mode=0o700)
        run_ownership.hand_over(secrets_)
        self.canary = canary()
        self.templates: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}
        """Bytes of the loaded data, with the same keys as `templates`."""
        self.servers: dict[str, Server] = {}
        self._once: dict[str, object] = {}
        self.schemas: set[str] = set()
        """Schemas that exist on your own server."""
        self._loads: list[str] = []
        self._stack = ExitStack()
        self.notes: set[str] = set()
        """What was already said about dumps."""

    def schema_for(self, data: str, run_id: str) -> str:
        """Name of the schema for these tables. Cells that load the same tables share one."""
        if data not in self._loads:
            self._loads.append(data)
        number = self._loads.index(data)
        return scratch_schema.name_for(run_id, number)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep servers alive until the end of a session, though several cells use them."""
        self.servers, self._once = {}, {}
        with ExitStack() as self._stack:
            yield

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within this context, servers are new ones, which end with it, beside those of the session."""
        session = self.servers, self._once, self._stack
        try:
            with self.session():
                yield
        finally:
            self.servers, self._once, self._stack = session

    def enter(self, what: AbstractContextManager[T]) -> T:
        """Enter a context that stays open until the end of the session."""
        return self._stack.enter_context(what)

    def server(self, like: str, make: AbstractContextManager[Server]) -> Server:
        """The session's server with this description. The first caller makes it."""
        if like not in self.servers:
            self.servers[like] = self.enter(make)
        return self.servers[like]

    def once(self, like: str, make: AbstractContextManager[T]) -> T:
        """What the session has under this description. The first caller makes it."""
        if like not in self._once:
            self._once[like] = self.enter(make)
        return cast("T", self._once[like])
