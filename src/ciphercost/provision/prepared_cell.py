"""One prepared cell: its servers' settings, how each arm connects, and which client makes the load."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec

from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.replication import Replicates
from ciphercost.engines.capabilities.settings import blamed
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import authorities, run_ownership
from ciphercost.host.installation import Installation
from ciphercost.host.launch import LISTEN
from ciphercost.host.ports import LOOPBACK
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import SYSTEM, ConnectionString
from ciphercost.load.drivers import Driver
from ciphercost.load.drivers._agent import LanguageAgent
from ciphercost.load.jdbc import jdbc_agent
from ciphercost.load.jdbc.options import DRIVERS_CHOICE
from ciphercost.load.program import Program
from ciphercost.load.two_agents import TwoAgents
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._rest import AtRest, AtRestContext
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import RunError
from ciphercost.model.own_tls import OwnTls
from ciphercost.model.spec import Arm, CellSpec
from ciphercost.plan import conditions, connection_strings
from ciphercost.plan.planned import Client, PlannedCell
from ciphercost.provision import cache, columns, scratch_schema
from ciphercost.provision.dataset import Dataset, arm_at, copy
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.server_pair import ServerPair
from ciphercost.provision.servers import Servers


def silent(_: str) -> None:
    """Prints nothing."""


def users_tls(server: Server, own_tls: OwnTls, directory: Path) -> Changes:
    """What an encrypted connection to your own server needs: what its connection string asks, its authorities, and the
    client's own certificate. `own_tls`: given beside the string; `directory`: for a file of authorities, if one must be made.
    """
    asked: ConnectionString | None = getattr(server, "asked", None)
    changes: Changes = asked.tls.copy() if asked else {}
    ca = own_tls.ca or (asked.ca if asked else "")
    if ca and ca != SYSTEM:
        changes["tls_ca"] = str(authorities.file_for(Path(ca), asked.crl if asked else (), directory))
    if identity := connection_strings.identity(own_tls, asked):
        changes["tls_identity"] = identity.pem
    if own_tls.server_name:
        changes["tls_server_name"] = own_tls.server_name
    return changes


def renamed(authority: str, name: str) -> str:
    """`10.0.0.5:8443`, `[::1]` -> `name:8443`, `name`: a web site is asked for by the name that its certificate has. Pure."""
    return name + (match[0] if (match := re.search(r":\d+$", authority)) else "")


class PreparedCell(msgspec.Struct):
    """One prepared cell: binaries found, data loaded."""

    planned: PlannedCell
    program: Program
    installation: Installation
    directory: Path
    shared: ExperimentResources
    supervisor: Supervisor
    logs: Path
    sealings: Mapping[Arm, columns.Secrets] = {}
    """How a column mechanism encrypts each arm's values, in a plain arm how it would."""
    own_schemas: dict[Arm, str] = {}
    """The scratch schema that holds an arm's tables. On your own server: for every mechanism that loads data. For a
    column mechanism: on every server, one per arm.
    """
    left: Callable[[str], None] = scratch_schema.say_left
    """Called with a sentence when a scratch schema could not be dropped."""
    say: Callable[[str], None] = silent
    """Prints a line of progress that stays."""
    show: Callable[[str], None] = silent
    """Shows a line of progress that the next one replaces."""
    tables: dict[str, dict[str, int]] = {}
    """Rows of the tables that a dump has, by place."""
    servers: Servers = msgspec.field(default_factory=Servers)
    """The servers of the whole run."""
    entered: bool = False
    apart: bool = False
    """Whether the arms need servers with different settings, although both are encrypted on the way."""
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
        return Dataset(self.planned, self.program, self.installation, self.shared, self.sealing is not None, self.apart)

    @property
    def sealing(self) -> columns.Secrets | None:
        """How a column mechanism encrypts the encrypted arm's values."""
        return self.sealings.get("encrypted")

    @property
    def rest(self) -> AtRestContext:
        """What a mechanism at rest may know about this cell's encrypted arm."""
        return self.rest_of("encrypted")

    def rest_of(self, arm: Arm) -> AtRestContext:
        """What a mechanism at rest may know about an arm."""
        return AtRestContext(
            self.engine, self.installation, self.planned.of(arm).factors, self.secrets_of(arm), self.supervisor
        )

    def secrets_of(self, arm: Arm) -> Path:
        """The directory of an arm's keys. Arms that both encrypt data have their own."""
        planned = self.planned.of(arm)
        if planned is self.planned or planned.mechanism.layer == "transit":
            return self.shared.secrets
        directory = self.shared.secrets / "reference"
        directory.mkdir(mode=0o700, exist_ok=True)
        run_ownership.hand_over(directory)
        return directory

    def side(self, arm: Arm) -> Arm:
        """What the mechanism has to do for an arm."""
        return self.planned.side(arm)

    @property
    def replicated(self) -> bool:
        """Whether each arm has a replica, and encryption is that of the link between the two servers."""
        return bool(self.program.replication)

    def clients_side(self, arm: Arm) -> Arm:
        """What the mechanism has to do for an arm's clients: nothing if only the link between two servers is encrypted."""
        return "plain" if self.replicated else self.side(arm)

    def link_ca(self, arm: Arm) -> str:
        """PEM file of the authority of an arm's server."""
        planned = self.planned.of(arm)
        changes = planned.mechanism.connection(self.engine, "encrypted", planned.factors, self.secrets_of(arm))
        return changes.get("tls_ca") or ""

    @property
    def mask(self) -> dict[str, str]:
        """Environment variables that hide the CPU's crypto instructions from server and agent. Empty: nothing is
        hidden.
        """
        return conditions.mask() if self.planned.conditions.hides_aes else {}

    def agent(self, pair: ServerPair) -> Agent:
        """Start the client that makes the cell's load. Raises MissingServer."""
        other = self.planned.reference
        # Where Java's own options decide how H2's driver encrypts, each arm needs a virtual machine of its own.
        if other is None or (other.client == self.planned.client and not self.engine.by_jdbc):
            return self._client(pair, "encrypted")
        compared = self._client(pair, "encrypted")
        try:
            return TwoAgents(self._client(pair, "plain"), compared)
        except BaseException:
            compared.close()
            raise

    def _client(self, pair: ServerPair, arm: Arm) -> Agent:
        client, cpus, netns = self.planned.of(arm).client, pair.agent_cpus or None, pair.netns
        if client is None:
            return Agent(cpus=cpus, log=self.agent_log, env=self.mask, netns=netns)
        return self._by_driver(client, pair.connect[arm], cpus, netns)

    def helper(self, connection: Connection) -> Agent:
        """Start an agent that makes no load: it loads data or asks the server. `connection`: as it will connect.

        Raises MissingServer.
        """
        if self.planned.client is None or not self.engine.by_jdbc:
            return Agent(log=self.agent_log, env=self.mask)
        return self._by_driver(msgspec.structs.replace(self.planned.client, options={}), connection)

    def _by_driver(
        self, client: Client, like: Connection, cpus: set[int] | None = None, netns: Path | None = None
    ) -> Agent:
        engine = EncryptsConnections.of(self.engine)
        if isinstance(client.driver, Driver):
            return LanguageAgent(
                client.driver,
                engine,
                client.options,
                like,
                mask=self.mask,
                cpus=cpus,
                log=self.agent_log,
                netns=netns,
                supervisor=self.supervisor,
            )
        return jdbc_agent.JdbcAgent(
            client.driver,
            engine,
            client.options,
            like,
            aes=not self.mask,
            cpus=cpus,
            log=self.agent_log,
            netns=netns,
            supervisor=self.supervisor,
        )

    @property
    def agent_log(self) -> Path:
        """What agents print for people."""
        return self.logs / "agent.log"

    @contextmanager
    def volume(self, place: str, directory: Path) -> Iterator[Volume]:
        """The volume that holds a session's copy of the data."""
        directory.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        if isinstance(self.mechanism, AtRest):
            arm = arm_at(place)
            with self.mechanism.volume(self.side(arm), directory, self.rest_of(arm), self.dataset.bytes) as volume:
                yield volume
        else:
            yield Volume(directory, (directory,))

    def fetch(self, place: str, volume: Volume) -> None:
        """Copy the loaded data onto the volume. Raises RunError."""
        copy(self.dataset.template(place), volume.path)

    def start(
        self,
        place: str,
        volume: Volume,
        cpus: set[int] | None = None,
        once: Mapping[str, str] | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Server:
        """Start the server on a volume. Its `opening` is the time it took to answer, in seconds.

        `once`: settings for loading the user's data, below the user's own; nobody keeps the output of such a server. `more`: those that
        this one needs instead of another's.
        """
        began = time.monotonic()
        try:
            server = self.engine.start(
                StartRequest(
                    self.installation,
                    volume.path,
                    self.supervisor,
                    cpus=sorted(cpus) if cpus else None,
                    settings={**(once or {}), **self.settings(place), **more},
                    logs=self.logs if once is None else None,
                    connects=self.replicated,
                )
            )
        except RunError as error:
            user_settings = self.planned.conditions.settings
            if user_settings and (words := blamed(user_settings, str(error).splitlines()[1:])):
                title = " ".join(filter(None, (self.engine.title, self.installation.version)))
                raise RunError(f"{words} ({title} did not start with it)") from None
            if hint := self.mechanism.if_not_started(self.planned.of(arm_at(place)).factors):
                raise RunError(f"{error}\n{hint}") from None
            raise
        server.opening = time.monotonic() - began
        server.volume = volume
        return server

    def settings(self, place: str) -> dict[str, str]:
        """Settings that the user and the mechanism require of a server that ciphercost starts."""
        arm = arm_at(place)
        if isinstance(self.mechanism, AtRest):
            rest_settings = self.mechanism.settings(self.side(arm), self.rest_of(arm))
            wanted = {**StoresData.of(self.engine).on_disk, **rest_settings}
        else:
            wanted = self.server_settings(arm)
        if isinstance(self.engine, Replicates) and self.replicated:
            wanted = wanted | self.engine.replication_settings(1)
        masks = {f"env:{name}": value for name, value in self.mask.items()}
        if isinstance(self.mechanism, AtRest) or cache.empties(self.cell):
            wanted = wanted | cache.settings(self.engine, self.cell, self.dataset.bytes, self.direct_io)
        wanted = wanted | self.engine.workload_settings(self.program.parameters)
        if self.program.holds_values:
            wanted = wanted | dict(self.engine.quiet_settings)
        ours = wanted | self.engine.settings_for(self.shared.clients) | masks | self.listening
        return conditions.merged(self.planned.conditions.settings, ours)

    def server_settings(self, arm: Arm) -> dict[str, str]:
        """What the mechanism requires of the server of an arm, unless it encrypts at rest."""
        planned, address = self.planned.of(arm), self.planned.conditions.listen
        return planned.mechanism.server_settings(self.engine, planned.factors, self.shared.secrets, address)

    @property
    def listening(self) -> dict[str, str]:
        """The setting that decides where the cell's servers listen; {} for the default, and where no server is started."""
        address = self.planned.conditions.listen
        return {} if address == LOOPBACK else {LISTEN: address}

    @property
    def rows_to_compare(self) -> Program:
        """The program whose check query runs on both arms of a session. It has none where the query would fill a cache
        that must stay cold.

        At rest, the destructive test has already run the query once.
        """
        if isinstance(self.mechanism, AtRest) and cache.empties(self.cell):
            return msgspec.structs.replace(self.program, check="", read_only=False)
        return self.program

    @property
    def direct_io(self) -> bool:
        """Whether both arms bypass the operating system's page cache: the cell or the engine asks for it, and the
        mechanism allows it.
        """
        able = not isinstance(self.mechanism, AtRest) or self.mechanism.direct_io
        by_itself = isinstance(self.engine, StoresData) and self.engine.direct_by_default
        return able and (cache.empties(self.cell) or by_itself)

    def connection(self, arm: Arm, servers: Mapping[str, Server], threads: int = 1) -> Connection:
        """An arm's connections: the server's own settings, what the mechanism adds for this arm, and the load level.
        `threads`: cores of the agent.
        """
        server = servers[self.dataset.place(arm)]
        factors, side = self.asked_for(arm), self.clients_side(arm)
        changes = self.planned.of(arm).mechanism.connection(self.engine, side, factors, self.secrets_of(arm))
        connection = cache.joined(server.connection(), changes)
        if side == "encrypted":
            host, port, authority = connection.host, connection.port, connection.authority
            connection |= server.other_ports.get(self.mechanism.name, {})
            if factors.get("share", "all") != "all":
                connection |= {"clear_host": host, "clear_port": port, "clear_authority": authority}
        if self.cell.url and connection.by_tls:
            connection |= users_tls(server, self.cell.own_tls, self.shared.secrets)
        if self.cell.server_name and connection.authority:
            connection |= {"authority": renamed(connection.authority, self.cell.server_name)}
        if (given := self.planned.headers) and (side == "encrypted" or server.takes_headers_in_clear):
            connection |= {"headers": given}
        version, parameters = self.installation.version, self.program.parameters
        connection |= self.engine.workload_fields(version, parameters, encrypted=connection.by_tls)
        if connection.http == "2" and not connection.by_tls:
            connection |= server.other_ports.get("http2-in-clear", {})
        connection = cache.joined(connection, cache.connection(self.engine, self.cell, self.dataset.bytes))
        if self.cell.per_request or self.program.per_request:
            connection |= {"per_request": True}
        elif self.program.lengths and self.engine.language == "http":
            lengths = " ".join(f"{each.value:.0f}:{each.count}" for each in self.program.lengths)
            connection |= {"lengths": lengths}
        name = self.own_schemas.get(arm, "")
        if name in self.shared.schemas:
            connection |= OwnSchema.of(self.engine).in_schema(name)
        elif name and not self.cell.url and self.dataset.loaded:
            connection |= OwnSchema.of(self.engine).in_own_schema(name)
        return connection | {"connections": self.clients, "threads": max(1, min(self.clients, threads))}

    def asked_for(self, arm: Arm) -> dict[str, str]:
        """The mechanism's factors for an arm. On your own server: only those that you gave, without ciphercost's defaults; what the arms
        differ in counts as given for both.
        """
        factors = self.planned.of(arm).factors
        given = {**self.cell.factors, **self.cell.versus} if self.cell.url else factors
        return {name: factors[name] for name in given if name in factors}

    def promised(self, arm: Arm) -> dict[str, str]:
        """What was requested for an arm and must be negotiated, without what a JDBC driver decides itself."""
        planned = self.planned.of(arm)
        chosen = DRIVERS_CHOICE.get(planned.mechanism.name) if planned.client else None
        promised = planned.mechanism.promises(self.asked_for(arm))
        return {name: value for name, value in promised.items() if name != chosen}

    @property
    def encrypts_way(self) -> bool:
        """Whether the arms differ in how they reach the server. If not, both connect alike."""
        return self.mechanism.layer == "transit"

    def of_arm(self, arm: Arm) -> Changes:
        """For a column mechanism: what this arm's connections need beside the server's own settings, also while loading."""
        if not self.sealings:
            return {}
        planned = self.planned.of(arm)
        return planned.mechanism.connection(self.engine, self.side(arm), planned.factors, self.secrets_of(arm))
