"""server_pairs: CellSpec -> twins that are up, loaded and reachable. Data is loaded once a cell; every session gets a fresh copy of it.

In transit both arms use one server and differ in the connection alone; in columns they use one server, and each has a schema of its own;
at rest (and in an embedded engine) each arm has a directory of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, Server
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.payload import Payload
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import deadlines, marks, supervisor
from ciphercost.host.environment import child_environment
from ciphercost.host.installation import Installation
from ciphercost.host.link import Link, check_rights, linked
from ciphercost.host.volumes.volume import Volume
from ciphercost.load import passwords, redact
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import jdbc_agent
from ciphercost.load.jdbc.options import DRIVERS_CHOICE, asked, driver_of
from ciphercost.load.program import Program
from ciphercost.load.trust import Place, Refused, encrypted_first, place_of, words
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._column import Columns
from ciphercost.mechanisms._rest import AtRest, Look, Rest
from ciphercost.model.errors import AgentError, MissingServer, RunError, Unproven
from ciphercost.model.spec import ARMS, Arm, CellSpec
from ciphercost.model.terms import CANARY_TABLE
from ciphercost.plan import conditions, resolve
from ciphercost.provision import cache, columns, scratch_schema
from ciphercost.provision.delay import delayed
from ciphercost.provision.shared import Shared
from ciphercost.provision.twins import Twins

SECRET_FIELDS = frozenset({"password", "key", "tls_certificate"})
"""Fields that are reported as set or none: secrets, and the file of a client's certificate."""
STATEMENT_SHOWN = 120
"""Letters of a statement that failed."""


class Servers:
    """Finds, or fetches, each server once for a run. What could not be had isn't asked for again, and its reason isn't repeated."""

    def __init__(self, cells: Sequence[CellSpec] = ()) -> None:
        """`cells`: of the whole run, also those that are done already."""
        self._found: dict[tuple[str, str, str, str], Installation | None] = {}
        self.refused = Refused(cells)

    def find(self, engine: Engine, version: str, url: str, bindir: str) -> Installation:
        """As `Engine.find`. Raises MissingServer."""
        key = (engine.name, version, url, bindir)
        if key not in self._found:
            self._found[key] = None
            self._found[key] = engine.find(version, url=url, bindir=bindir)
        if (found := self._found[key]) is None:
            title = f"{engine.title} {version}".strip()
            raise MissingServer(f"there is no {title} here: the first cell that needs it gives the reason")
        return found


class Bench(msgspec.Struct):
    """One cell made ready: binaries found, data loaded."""

    cell: CellSpec
    engine: Engine
    mechanism: Mechanism
    factors: dict[str, str]
    program: Program
    installation: Installation
    directory: Path
    shared: Shared
    guard: supervisor.Guard
    logs: Path
    clients: int
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

    def agent(self, twins: Twins) -> Agent:
        """Who makes the cell's load. Raises MissingServer."""
        log, netns = self.logs / "agent.log", twins.netns
        cpus = twins.agent_cpus or None
        if not asked(self.cell):
            return Agent(cpus=cpus, log=log, env=self.mask, netns=netns)
        options, like = resolve.client_options(self.cell), twins.connect["encrypted"]
        driver = driver_of(self.cell)
        return jdbc_agent.JdbcAgent(
            driver,
            EncryptsConnections.of(self.engine),
            options,
            like,
            aes=not self.mask,
            cpus=cpus,
            log=log,
            netns=netns,
            guard=self.guard,
        )

    @property
    def separate(self) -> bool:
        """Whether each arm has data of its own."""
        return isinstance(self.mechanism, AtRest) or self.engine.embedded

    @property
    def rest(self) -> Rest:
        """What a mechanism at rest may know of this cell."""
        return Rest(self.engine, self.installation, self.factors, self.shared.secrets, self.guard)

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the data directories: one an arm, or one for both."""
        return ARMS if self.separate else ("both",)

    def _place(self, arm: Arm) -> str:
        return arm if self.separate else "both"

    def twins(self, number: int, server_cpus: set[int], agent_cpus: set[int], arms: tuple[Arm, ...] = ARMS) -> Twins:
        """Fresh twins: data copied, servers started, nothing connected yet. All of it is gone at the end of the shared session.

        `arms`: in which order, now and in all that is done to both before the load.
        """
        work = self.directory / f"session-{number}"
        servers = {
            place: self.shared.server(self._like(place), self._server(place, work / place, server_cpus))
            for place in (arms if self.separate else self.places)
        }
        if self.cell.url:
            self.enter(servers)
        connect = direct = {arm: self.connection(arm, servers, len(agent_cpus)) for arm in arms}
        relay = 0
        if self.cell.delay:
            seconds, others = conditions.round_trip(self.cell.delay), usable_cpus() - server_cpus - agent_cpus
            connect, relay = self.shared.enter(delayed(self.guard, direct, seconds, others))
        way = self.shared.enter(self._link()) if conditions.shaped(self.cell) else None
        by_arm: dict[Arm, Server] = {arm: servers[self._place(arm)] for arm in ARMS}
        return Twins(
            connect=connect,
            by_arm=by_arm,
            rest=self.rest if isinstance(self.mechanism, AtRest) else None,
            sealing=self.sealing,
            promised=self._promised,
            openings={arm: each.opening for arm, each in by_arm.items()} if self.separate else {},
            relay=relay,
            netns=way.path if way else None,
            device=way.device if way else "",
            direct=direct,
            place=self.place if self.cell.url else None,
            refused=self.servers.refused if self.cell.url else None,
            servers=list(servers.values()),
            canary=self.shared.canary,
            server_cpus=server_cpus,
            agent_cpus=agent_cpus,
            embedded=self.engine.embedded,
        )

    @contextmanager
    def _link(self) -> Iterator[Link]:
        """The way of --bandwidth and --mtu, which the load must have taken."""
        bits = conditions.bits_per_second(self.cell.bandwidth) if self.cell.bandwidth else 0.0
        with linked(self.guard, bits, self.cell.mtu) as way:
            yield way
            if not way.crossed():
                raise RunError("not a byte crossed the link of --bandwidth or --mtu: the load took another way")

    def _like(self, place: str) -> str:
        """What a server of this cell is made of: two cells of which this is the same can have one between them."""
        settings = "" if self.cell.url else sorted(self.settings(place).items())
        own = (place, self.mechanism.name, sorted(self.factors.items())) if isinstance(self.mechanism, AtRest) else ()
        return repr((self.installation, self.cell.url, str(self._template(place)), settings, own))

    def connection(self, arm: Arm, servers: Mapping[str, Server], threads: int = 1) -> dict[str, object]:
        """The server's own fields, what the mechanism adds for this arm, and the load level. `threads`: cores of the agent."""
        server = servers[self._place(arm)]
        factors = self._asked_for
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
        fields = cache.joined(fields, cache.connection(self.engine, self.cell, self.loaded_bytes))
        if self.cell.per_request or self.program.per_request:
            fields["per_request"] = True
        name = self.own_schemas.get(arm, "")
        if name in self.shared.schemas:
            fields |= OwnSchema.of(self.engine).in_schema(name)
        elif name and not self.cell.url and self.data in self.shared.templates:
            fields |= OwnSchema.of(self.engine).in_own_schema(name)
        return fields | {"connections": self.clients, "threads": max(1, min(self.clients, threads))}

    @property
    def _asked_for(self) -> dict[str, str]:
        """The mechanism's factors. A server of the user's is met with those that were given, and none of our defaults."""
        given = self.cell.factors if self.cell.url else self.factors
        return {name: self.factors[name] for name in given if name in self.factors}

    @property
    def _promised(self) -> dict[str, str]:
        """What was asked for and must be negotiated; of what a JDBC driver decides itself nothing was asked for."""
        chosen = DRIVERS_CHOICE.get(self.mechanism.name) if asked(self.cell) else None
        promised = self.mechanism.promises(self._asked_for)
        return {name: value for name, value in promised.items() if name != chosen}

    @property
    def encrypts_way(self) -> bool:
        """Whether the arms differ in how they reach the server. Else both connect alike."""
        return self.mechanism.layer == "transit"

    def reached(self) -> dict[str, Server]:
        """The user's server, for whichever arm."""
        return dict.fromkeys((*ARMS, "both"), self.engine.start(self.installation, self.directory, self.guard))

    @property
    def place(self) -> Place:
        """Where the user's server is."""
        return place_of(self.reached()["both"].connection())

    def enter(self, servers: Mapping[str, Server]) -> None:
        """Log in at the user's server, in each session only if nothing that the run knows speaks against it.

        Raises RunError where encryption is not the reason why nobody gets in; that reason is for the witnesses to tell.
        """
        if error := self.refusal(servers):
            raise self._kept_out(error, encrypted=True)
        if self.entered:
            return
        self.entered = True
        arms: list[Arm] = ["encrypted"] if self.encrypts_way else encrypted_first(ARMS)
        refusals = []
        with Agent(log=self.logs / "agent.log") as agent:
            for arm in arms:
                if not (error := self.try_arm(agent, arm, servers)):
                    return
                refusals.append(error)
                if error.code == deadlines.TIMEOUT:
                    break  # another try would be held as long
        if len({each.code for each in refusals}) == 1 and refusals[-1].code != "tls":
            raise self._kept_out(refusals[-1], encrypted=self.encrypts_way)

    def refusal(self, servers: Mapping[str, Server]) -> AgentError | None:
        """Why this cell may send nothing to the user's server: an encrypted connection that demands more of it has failed."""
        return self.servers.refused.reason(self.place, self.connection("encrypted", servers))

    def try_arm(self, agent: Agent, arm: Arm, servers: Mapping[str, Server]) -> AgentError | None:
        """Log in once at the user's server, and note it where an encrypted arm can't."""
        fields = self.connection(arm, servers) | {"connections": 1, "threads": 1, "per_request": False}
        try:
            agent.connect("enter", **fields)
            self.engine.greet(agent, "enter")
            agent.disconnect("enter")
        except AgentError as error:
            if arm == "encrypted":
                self.servers.refused.note(self.place, fields, error)
            return error
        return None

    def _kept_out(self, error: AgentError, *, encrypted: bool) -> RunError:
        arm = ", encrypted arm" if encrypted else ""
        what = words(str(error), error.code) if error.code == "tls" else TakesUrl.of(self.engine).mend(error.code)
        return RunError(f"can't get in at your {self.engine.title}{arm}: {error} [{error.code}]. {what}")

    @contextmanager
    def _server(self, place: str, directory: Path, cpus: set[int] | None) -> Iterator[Server]:
        if self.cell.url:
            yield self.engine.start(self.installation, directory, self.guard, logs=self.logs)
            return
        with self.volume(place, directory) as volume:
            self.fetch(place, volume)
            try:
                server = self.start(place, volume, cpus)
            except RunError as error:
                if place == "encrypted" and isinstance(self.mechanism, AtRest) and (line := of_encryption(str(error))):
                    raise Unproven(f"server witness, encrypted arm: its server does not start: {line}") from None
                raise
            try:
                yield server
            finally:
                server.stop()
                shutil.rmtree(volume.path, ignore_errors=True)

    @contextmanager
    def volume(self, place: str, directory: Path) -> Iterator[Volume]:
        """Where a session's copy of the data lies."""
        directory.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        if isinstance(self.mechanism, AtRest):
            with self.mechanism.volume(arm_at(place), directory, self.rest, self.loaded_bytes) as volume:
                yield volume
        else:
            yield Volume(directory, (directory,))

    def fetch(self, place: str, volume: Volume) -> None:
        """A copy of the loaded data, made where the volume says. Raises RunError."""
        copy(self._template(place), volume.path)

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
            wanted = wanted | cache.settings(self.engine, self.cell, self.loaded_bytes, self.direct_io)
        ours = wanted | self.engine.settings_for(self.shared.clients) | masks
        return conditions.joined(self.cell.settings, ours)

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

    @property
    def loaded_bytes(self) -> int:
        """Of the loaded data, the plain arm's: so that both arms' caches are of one size. 0: it isn't loaded yet."""
        if self.cell.url or self.data not in self.shared.templates:
            return 0
        if self.data not in self.shared.sizes:
            self.shared.sizes[self.data] = cache.size(self._template(self.places[0]))
        return self.shared.sizes[self.data]

    @property
    def mask(self) -> dict[str, str]:
        """What the environment of server and agent says to hide the CPU's crypto instructions; empty: nothing."""
        return conditions.mask() if self.cell.cpu_crypto == "off" else {}

    def load(self) -> None:
        """Fill the template, once for each place, unless another cell has. Raises RunError with the statement that failed."""
        if self.data in self.shared.templates:
            return
        fill = self.fill_both if self.own_schemas else self.fill
        for place in dict.fromkeys(self._origin(place) for place in self.places):
            template = self.directory / "template" / place
            template.mkdir(parents=True, mode=0o700)
            marks.hand_over(template)
            volume = Volume(template, (template,))
            if isinstance(self.mechanism, AtRest):
                self.engine.initialise(self.installation, template, self.guard, self.settings(place))
                self.mechanism.furnish(arm_at(place), template, self.rest)
                if self.mechanism.encrypts:
                    self._first_start(place, volume, self.mechanism.encrypt)
            else:
                self.engine.initialise(self.installation, template, self.guard)
            if isinstance(self.engine, Documents):
                documents = self.program.documents | (dict(self.engine.payload_documents) if self.mask else {})
                self.engine.lay_out(template, self.directory / f"documents-{place}", documents, self.shared.canary)
            self._first_start(place, volume, lambda look: fill(look.agent, look.arm, look.connect))
        self.shared.templates[self.data] = self.directory / "template"

    def _first_start(self, place: str, volume: Volume, do: Callable[[Look], None]) -> None:
        """A template's server, up for one thing to be done."""
        server = self.start(place, volume)
        try:
            arm = arm_at(place)
            alone = {"connections": 1, "per_request": False}
            fields = self.connection(arm, dict.fromkeys((*ARMS, "both"), server)) | alone
            with Agent(log=self.logs / "agent.log", env=self.mask) as agent:
                agent.connect("loader", **fields)
                look = Look(arm, self.rest, volume, server, agent, "loader", fields)
                do(look)
                if isinstance(self.mechanism, AtRest):
                    self.mechanism.settled(look)
        finally:
            server.stop()

    @property
    def data(self) -> str:
        """What the loaded data depends on."""
        apart = self._origin("encrypted") == "encrypted" and (self.separate or self.sealing is not None)
        own = (self.mechanism.name, self.factors, resolve.secrets_asked(self.cell)) if apart else ()
        return repr((self.installation, self.program.name, sorted(self.program.parameters.items()), self.cell.csv, own))

    def _origin(self, place: str) -> str:
        """The template that a place's data is copied from."""
        return "plain" if isinstance(self.mechanism, AtRest) and self.mechanism.loaded_once else place

    def _template(self, place: str) -> Path:
        return self.shared.templates[self.data] / self._origin(place) if not self.cell.url else self.directory

    def ready(self, twins: Twins) -> None:
        """Once the arms are proven: what a server of the user's still lacks. Only the first call makes anything."""
        if not self.cell.url:
            return
        for arm, name in self.own_schemas.items():
            if name not in self.shared.schemas:
                self.at_end.enter_context(running_schema(self, arm))
                self.shared.schemas.add(name)
        for arm, fields in twins.connect.items():
            if arm in self.own_schemas:
                fields |= OwnSchema.of(self.engine).in_schema(self.own_schemas[arm])

    def of_arm(self, arm: Arm) -> dict[str, object]:
        """In columns: what this arm's sessions have beside the server's own fields, while it is loaded too."""
        return self.mechanism.connection(self.engine, arm, self.factors, self.shared.secrets) if self.sealing else {}

    def fill_both(self, agent: Agent, _: Arm, fields: Mapping[str, object]) -> None:
        """In columns: a schema for each arm, made and filled."""
        engine = OwnSchema.of(self.engine)
        for arm, name in self.own_schemas.items():
            engine.make_schema(agent, fields, name, self.guard.run_id)
            agent.connect("loader", **{**fields, **self.of_arm(arm), **engine.in_own_schema(name)})
            self.fill(agent, arm)

    def fill(self, agent: Agent, arm: Arm = "plain", _: Mapping[str, object] | None = None) -> None:
        """Make and fill an arm's tables through the agent's arm `loader`. Raises RunError with the statement that failed."""
        if isinstance(self.mechanism, AtRest):
            agent.query("loader", f"CREATE TABLE {CANARY_TABLE} (word varchar(100))")
            agent.query("loader", f"INSERT INTO {CANARY_TABLE} VALUES ('{self.shared.canary}')")
        if self.sealing is not None:
            for statement in self.sealing.mechanism.prepare(self.engine, self.sealing.factors, ours=not self.cell.url):
                agent.query("loader", statement)
            columns.fill(agent, "loader", self.sealing, self.shared.canary, arm)
        for step in self.program.tables(arm).load:
            try:
                agent.query("loader", step.sql, timeout=deadlines.load())
            except AgentError as error:
                # A cut-off key would be no whole one, so it is hidden before.
                where = redact.shown(step.where)[:STATEMENT_SHOWN]
                raise RunError(f"loading workload {self.program.name}: {error}, at: {where}") from None


@contextmanager
def bench(
    cell: CellSpec,
    run_guard: supervisor.Guard,
    scratch: Path,
    logs: Path,
    number: int,
    shared: Shared,
    *,
    data: bool = True,
    left: Callable[[str], None] = scratch_schema.say_left,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
    servers: Servers | None = None,
) -> Iterator[Bench]:
    """Find the server, make and load the data of one cell. Everything made is gone afterwards.

    `shared`: what it has in common with the other cells of its experiment, all of which live to the end of it. `data` false:
    the workload's tables are not needed. `paused`: within it a terminal is free for a question. `servers`: those that the run has
    found already. On a server that is the user's nothing is made before `ready`. Raises RunError, MissingServer.
    """
    engine = engines.get(cell.engine)
    mechanism = mechanisms.get(cell.mechanism)
    factors, parameters = resolve.split_factors(cell)
    if conditions.shaped(cell):
        check_rights()
    if cell.cpu_crypto == "off":
        conditions.mask()
        if conditions.mask_provable(cell):
            Payload.of(engine).payload(1)
    sealing = columns.secrets_of(mechanism, engine, factors, shared.secrets) if isinstance(mechanism, Columns) else None
    program = resolve.program_of(cell, parameters, sealing.codec if sealing else None)
    if not engine.loads or not data:
        program = msgspec.structs.replace(program, load=(), check="", sealed=None)
    directory = scratch / f"cell-{number}"
    directory.mkdir(mode=0o711)
    clients = clients_of(cell, engine, program)
    shared.clients = max(shared.clients, clients)
    servers = servers or Servers()
    installation = servers.find(engine, cell.version, cell.url, cell.bindir or mechanism.bindir())
    engine.check_factors(mechanism.name, factors, installation.version)
    mechanism.check_version(engine, installation.version)
    made = Bench(
        cell=cell,
        engine=engine,
        mechanism=mechanism,
        factors=factors,
        program=program,
        installation=installation,
        directory=directory,
        shared=shared,
        guard=run_guard,
        logs=logs,
        clients=clients,
        left=left,
        servers=servers,
        sealing=sealing,
    )
    if isinstance(mechanism, AtRest):
        made.installation = mechanism.prepare(made.rest)
    if sealing and not engine.embedded:
        made.own_schemas = {
            arm: shared.schema_for(f"{made.data} {arm}", run_guard.run_id) if cell.url else columns.schema_name(arm)
            for arm in ARMS
        }
    elif cell.url and program.load:
        made.own_schemas = dict.fromkeys(ARMS, shared.schema_for(made.data, run_guard.run_id))
    with made.at_end:
        made.at_end.callback(shutil.rmtree, directory, ignore_errors=True)
        if cell.url:
            meet(made, paused)
        else:
            try:
                made.load()
            except RunError as error:  # said here: at the end all that fills the disk is gone
                if not (full := marks.disk_full()):
                    raise
                raise RunError(f"{error}; {full}") from None
        yield made


def of_encryption(words: str) -> str:
    """Of a server's last words the first line that speaks of keys or encryption; empty where none does. Pure."""
    lines = [line.strip() for line in words.splitlines()[1:]]
    return next((line for line in lines if re.search(r"\bkey|keyring|encrypt", line.lower())), "")[:200]


def arm_at(place: str) -> Arm:
    """The arm that a place's data is made for. Pure."""
    return "encrypted" if place == "encrypted" else "plain"


def clients_of(cell: CellSpec, engine: Engine, program: Program) -> int:
    """Connections of an arm: as asked for, or the regime's or the workload's own number. Pure."""
    return cell.clients or (1 if engine.embedded or cell.regime == "one-core" else program.clients)


def clients_together(cells: list[CellSpec]) -> int:
    """Connections of an arm of cells that share their sessions. Raises UsageError."""
    programs = [(cell, engines.get(cell.engine), resolve.split_factors(cell)[1]) for cell in cells]
    return sum(clients_of(cell, engine, resolve.program_of(cell, given)) for cell, engine, given in programs)


def meet(made: Bench, paused: Callable[[], AbstractContextManager[None]]) -> None:
    """Before anything else is sent to a server of the user's: the run's encrypted connections to it, and a password if it wants one.

    Nothing is raised: what keeps this cell out, `Bench.enter` tells.
    """
    with Agent(log=made.logs / "agent.log") as agent:
        for other in [] if made.encrypts_way else encrypting(made):
            servers = other.reached()
            ask_password(other, agent, servers, paused)
            if other.try_arm(agent, "encrypted", servers):
                return
        servers = made.reached()
        if not made.refusal(servers):
            ask_password(made, agent, servers, paused)


def encrypting(made: Bench) -> Iterator[Bench]:
    """The run's cells that reach this server of the user's encrypted, as far as none of them was tried for another cell."""
    refused = made.servers.refused
    for number, cell in enumerate(refused.cells):
        mechanism = mechanisms.get(cell.mechanism)
        if not cell.url or mechanism.layer != "transit" or number in refused.tried:
            continue
        engine = engines.get(cell.engine)
        factors, parameters = resolve.split_factors(cell)
        other = msgspec.structs.replace(
            made,
            cell=cell,
            engine=engine,
            mechanism=mechanism,
            factors=factors,
            program=resolve.program_of(cell, parameters),
            installation=made.servers.find(engine, cell.version, cell.url, cell.bindir),
            sealing=None,
            own_schemas={},
        )
        if other.place == made.place:
            refused.tried.add(number)
            yield other


def ask_password(
    made: Bench, agent: Agent, servers: Mapping[str, Server], paused: Callable[[], AbstractContextManager[None]]
) -> None:
    """Where a server of the user's wants a password that was found nowhere: ask for it, if there is a terminal."""
    fields = made.connection("encrypted", servers) | {"connections": 1, "threads": 1, "per_request": False}
    if passwords.may_ask(fields):
        passwords.ask_where_wanted(agent, fields, TakesUrl.of(made.engine).refuses_anonymous, paused)


@contextmanager
def running_schema(made: Bench, arm: Arm) -> Iterator[None]:
    """On a server that is the user's: a schema of our own, made for the run and dropped after it. Nothing else is touched."""
    engine = OwnSchema.of(made.engine)
    server = engine.start(made.installation, made.directory, made.guard)
    # Into the schema only once it is there: the first connection is made as the user's own is. In transit it is encrypted.
    own: Arm = "encrypted" if made.mechanism.layer == "transit" else "plain"
    fields = made.connection(own, {"both": server}) | {"connections": 1, "per_request": False}
    log = made.logs / "agent.log"
    name = made.own_schemas[arm]
    with scratch_schema.own(engine, fields, name, made.guard.run_id, log, made.left):
        with Agent(log=log) as agent:
            answer = agent.connect("loader", **(fields | made.of_arm(arm) | engine.in_schema(name)))
            made.mechanism.check_version(made.engine, str(answer["server_version"]))
            made.fill(agent, arm)
        yield


def usable_cpus() -> set[int]:
    return os.sched_getaffinity(0)


def copy(source: Path, target: Path) -> None:
    """A copy of a data directory, owners and modes kept, blocks shared where the file system can. Raises RunError."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        env=child_environment(),
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["cp said nothing"])[-1].removeprefix("cp: ")
        raise RunError(f"can't copy the data: {said}{'' if marks.disk_full() else '; is the disk full?'}")
