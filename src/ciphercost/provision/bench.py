"""bench: one cell made ready: its servers' settings, how each arm connects, and who makes the load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from ciphercost.engines import Engine, Server
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import jdbc_agent
from ciphercost.load.jdbc.options import DRIVERS_CHOICE
from ciphercost.load.program import Program
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._rest import AtRest, Rest
from ciphercost.model.spec import Arm, CellSpec
from ciphercost.plan import conditions
from ciphercost.plan.planned import PlannedCell
from ciphercost.provision import cache, columns, scratch_schema
from ciphercost.provision.dataset import Dataset, arm_at, copy
from ciphercost.provision.servers import Servers
from ciphercost.provision.shared import Shared
from ciphercost.provision.twins import Twins


class Bench(msgspec.Struct):
    """One cell made ready: binaries found, data loaded."""

    planned: PlannedCell
    program: Program
    installation: Installation
    directory: Path
    shared: Shared
    guard: supervisor.Guard
    logs: Path
    sealing: columns.Secrets | None = None
    """How values are encrypted, by a mechanism in columns."""
    own_schemas: dict[Arm, str] = {}
    """On a server that is the user's: the schema of our own that an arm's tables are made in. In columns on every server, one an arm."""
    left: Callable[[str], None] = scratch_schema.say_left
    """Told of a schema of ours that could not be dropped."""
    servers: Servers = msgspec.field(default_factory=Servers)
    """The run's."""
    entered: bool = False
    at_end: ExitStack = msgspec.field(default_factory=ExitStack)

    @property
    def cell(self) -> CellSpec:
        return self.planned.spec

    @property
    def engine(self) -> Engine:
        return self.planned.engine

    @property
    def mechanism(self) -> Mechanism:
        return self.planned.mechanism

    @property
    def factors(self) -> dict[str, str]:
        return self.planned.factors

    @property
    def clients(self) -> int:
        return self.planned.clients

    @property
    def dataset(self) -> Dataset:
        """What the cell loads, and where."""
        return Dataset(self.planned, self.program, self.installation, self.shared, self.sealing is not None)

    @property
    def rest(self) -> Rest:
        """What a mechanism at rest may know of this cell."""
        return Rest(self.engine, self.installation, self.factors, self.shared.secrets, self.guard)

    @property
    def mask(self) -> dict[str, str]:
        """What the environment of server and agent says to hide the CPU's crypto instructions; empty: nothing."""
        return conditions.mask() if self.planned.conditions.hides_aes else {}

    def agent(self, twins: Twins) -> Agent:
        """Who makes the cell's load. Raises MissingServer."""
        log, netns = self.logs / "agent.log", twins.netns
        cpus = twins.agent_cpus or None
        if (client := self.planned.client) is None:
            return Agent(cpus=cpus, log=log, env=self.mask, netns=netns)
        return jdbc_agent.JdbcAgent(
            client.driver,
            EncryptsConnections.of(self.engine),
            client.options,
            twins.connect["encrypted"],
            aes=not self.mask,
            cpus=cpus,
            log=log,
            netns=netns,
            guard=self.guard,
        )

    @contextmanager
    def volume(self, place: str, directory: Path) -> Iterator[Volume]:
        """Where a session's copy of the data lies."""
        directory.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        if isinstance(self.mechanism, AtRest):
            with self.mechanism.volume(arm_at(place), directory, self.rest, self.dataset.bytes) as volume:
                yield volume
        else:
            yield Volume(directory, (directory,))

    def fetch(self, place: str, volume: Volume) -> None:
        """A copy of the loaded data, made where the volume says. Raises RunError."""
        copy(self.dataset.template(place), volume.path)

    def start(self, place: str, volume: Volume, cpus: set[int] | None = None) -> Server:
        """The server of what lies there; how long it took to answer is in its `opening`."""
        began = time.monotonic()
        server = self.engine.start(
            self.installation,
            volume.path,
            self.guard,
            cpus=sorted(cpus) if cpus else None,
            settings=self.settings(place),
            logs=self.logs,
        )
        server.opening = time.monotonic() - began
        server.volume = volume
        return server

    def settings(self, place: str) -> dict[str, str]:
        """What the user and the mechanism ask of a server of ours."""
        if isinstance(self.mechanism, AtRest):
            wanted = self.mechanism.settings(arm_at(place), self.rest)
        else:
            wanted = self.mechanism.server_settings(self.engine, self.factors, self.shared.secrets)
        masks = {f"env:{name}": value for name, value in self.mask.items()}
        if isinstance(self.mechanism, AtRest) or cache.empties(self.cell):
            wanted = wanted | cache.settings(self.engine, self.cell, self.dataset.bytes, self.direct_io)
        ours = wanted | self.engine.settings_for(self.shared.clients) | masks
        return conditions.merged(self.planned.conditions.settings, ours)

    @property
    def rows_to_compare(self) -> Program:
        """The program whose check query is put to both arms of a session: not where it would fill a cache that is to be cold.

        At rest the ordeal has asked it once.
        """
        if isinstance(self.mechanism, AtRest) and cache.empties(self.cell):
            return msgspec.structs.replace(self.program, check="", read_only=False)
        return self.program

    @property
    def direct_io(self) -> bool:
        """Whether both arms go past the system's page cache: where that is what is asked for, and the mechanism allows it."""
        able = not isinstance(self.mechanism, AtRest) or self.mechanism.direct_io
        by_itself = isinstance(self.engine, StoresData) and self.engine.direct_by_default
        return able and (cache.empties(self.cell) or by_itself)

    def connection(self, arm: Arm, servers: Mapping[str, Server], threads: int = 1) -> dict[str, object]:
        """The server's own fields, what the mechanism adds for this arm, and the load level. `threads`: cores of the agent."""
        server = servers[self.dataset.place(arm)]
        factors = self.asked_for
        fields = server.connection() | self.mechanism.connection(self.engine, arm, factors, self.shared.secrets)
        if arm == "encrypted":
            clear = fields
            fields = {**fields, **server.ways.get(self.mechanism.name, {})}
            if factors.get("share", "all") != "all":
                fields |= {f"clear_{name}": clear[name] for name in ("host", "port", "authority")}
        if self.cell.url and (ca := self.cell.ca or getattr(server, "ca", "")) and fields.get("tls", "off") != "off":
            fields["tls_ca"] = str(Path(ca).absolute())
        fields |= self.engine.way(self.installation.version, self.program.parameters)
        if fields.get("http") == "2" and fields.get("tls", "off") == "off":
            fields |= server.ways.get("http2-in-clear", {})
        fields = cache.joined(fields, cache.connection(self.engine, self.cell, self.dataset.bytes))
        if self.cell.per_request or self.program.per_request:
            fields["per_request"] = True
        name = self.own_schemas.get(arm, "")
        if name in self.shared.schemas:
            fields |= OwnSchema.of(self.engine).in_schema(name)
        elif name and not self.cell.url and self.dataset.loaded:
            fields |= OwnSchema.of(self.engine).in_own_schema(name)
        return fields | {"connections": self.clients, "threads": max(1, min(self.clients, threads))}

    @property
    def asked_for(self) -> dict[str, str]:
        """The mechanism's factors. A server of the user's is met with those that were given, and none of our defaults."""
        given = self.cell.factors if self.cell.url else self.factors
        return {name: self.factors[name] for name in given if name in self.factors}

    @property
    def promised(self) -> dict[str, str]:
        """What was asked for and must be negotiated; of what a JDBC driver decides itself nothing was asked for."""
        chosen = DRIVERS_CHOICE.get(self.mechanism.name) if self.planned.client else None
        promised = self.mechanism.promises(self.asked_for)
        return {name: value for name, value in promised.items() if name != chosen}

    @property
    def encrypts_way(self) -> bool:
        """Whether the arms differ in how they reach the server. Else both connect alike."""
        return self.mechanism.layer == "transit"

    def of_arm(self, arm: Arm) -> dict[str, object]:
        """In columns: what this arm's sessions have beside the server's own fields, while it is loaded too."""
        return self.mechanism.connection(self.engine, arm, self.factors, self.shared.secrets) if self.sealing else {}
