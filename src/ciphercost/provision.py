"""provision: CellSpec -> twins that are up, loaded and reachable. Data is loaded once a cell; every session gets a fresh copy of it.

In transit both arms use one server and differ in the connection alone; at rest (and in an embedded engine) each arm has a directory of its own.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from ciphercost import engines, guard, mechanisms, passwords, spec, workloads
from ciphercost.agent import Agent
from ciphercost.engines import Engine, Installation, Server
from ciphercost.errors import AgentError, RunError
from ciphercost.mechanisms import Mechanism
from ciphercost.model import ARMS, Arm, CellSpec

SECRET_FIELDS = frozenset({"password", "key"})
CANARY_TABLE = "ciphercost_canary"


def arms_of(session: int) -> tuple[Arm, ...]:
    """Which arm is copied, proven and connected first: by turns, so that being first favours neither. Pure."""
    return ARMS if session % 2 else ARMS[::-1]


class Twins(msgspec.Struct):
    """What serves the two arms in one session."""

    connect: dict[Arm, dict[str, object]]
    """Fields of the agent's `connect` for the load, without the arm's name."""
    servers: list[Server]
    directories: dict[Arm, list[Path]]
    """Where the arm's bytes rest; empty where we can't see them."""
    canary: str
    server_cpus: set[int] = set()
    agent_cpus: set[int] = set()
    embedded: bool = False

    @property
    def server(self) -> Server | None:
        """The server whose processes are sampled: one serves both arms, or none can be seen."""
        return next((each for each in self.servers if each.pid), None)


class Bench(msgspec.Struct):
    """One cell made ready: binaries found, data loaded."""

    cell: CellSpec
    engine: Engine
    mechanism: Mechanism
    factors: dict[str, str]
    program: workloads.Program
    installation: Installation
    directory: Path
    secrets: Path
    guard: guard.Guard
    logs: Path
    canary: str
    clients: int
    schema: str = ""
    """On a server that is the user's: the schema of our own that everything is made in."""
    loaded: bool = False
    at_end: ExitStack = msgspec.field(default_factory=ExitStack)

    @property
    def separate(self) -> bool:
        """Whether each arm has data of its own."""
        return self.mechanism.layer == "rest" or self.engine.embedded

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the data directories: one an arm, or one for both."""
        return ARMS if self.separate else ("both",)

    @contextmanager
    def session(self, number: int, server_cpus: set[int], agent_cpus: set[int]) -> Iterator[Twins]:
        """Fresh twins: data copied, servers started, nothing connected yet. All of it is gone afterwards."""
        work = self.directory / f"session-{number}"
        arms = arms_of(number)
        with ExitStack() as stack:
            servers: dict[str, Server] = {}
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            for place in self.places if number % 2 else self.places[::-1]:
                servers[place] = stack.enter_context(self._server(place, work / place, server_cpus))
            yield Twins(
                connect={arm: self.connection(arm, servers, len(agent_cpus), schema=False) for arm in arms},
                servers=list(servers.values()),
                directories={arm: [work / (arm if self.separate else "both")] for arm in ARMS},
                canary=self.canary,
                server_cpus=server_cpus,
                agent_cpus=agent_cpus,
                embedded=self.engine.embedded,
            )

    def connection(
        self, arm: Arm, servers: Mapping[str, Server], threads: int = 1, *, schema: bool = True
    ) -> dict[str, object]:
        """The server's own fields, what the mechanism adds for this arm, and the load level. `threads`: cores of the agent."""
        server = servers[arm if self.separate else "both"]
        # A server of the user's is met with the factors that were given, and none of our defaults.
        given = self.cell.factors if self.cell.url else self.factors
        factors = {name: value for name, value in given.items() if name in self.factors}
        fields = server.connection() | self.mechanism.connection(self.engine, arm, factors, self.secrets)
        if self.cell.url and (ca := self.cell.ca or getattr(server, "ca", "")) and fields.get("tls", "off") != "off":
            fields["tls_ca"] = str(Path(ca).absolute())
        if self.cell.per_request or self.program.per_request:
            fields["per_request"] = True
        if self.schema and schema:
            fields |= self.engine.in_schema(self.schema)
        return fields | {"connections": self.clients, "threads": max(1, min(self.clients, threads))}

    @contextmanager
    def _server(self, place: str, directory: Path, cpus: set[int] | None) -> Iterator[Server]:
        template = self.directory / "template" / place
        if not self.cell.url:
            copy(template, directory)
        server = self.engine.start(
            self.installation,
            directory,
            self.guard,
            cpus=sorted(cpus) if cpus else None,
            settings={} if self.cell.url else self.settings(),
            logs=self.logs,
        )
        try:
            yield server
        finally:
            server.stop()

    def settings(self) -> dict[str, str]:
        """What the mechanism asks of a server of ours."""
        wanted = self.mechanism.server_settings(self.engine, self.factors, self.secrets)
        return wanted | self.engine.settings_for(self.clients)

    def load(self) -> None:
        """Fill the template, once for each place. Raises RunError with the statement that failed."""
        for place in self.places:
            template = self.directory / "template" / place
            arm: Arm = "encrypted" if place == "encrypted" else "plain"
            template.mkdir(parents=True, mode=0o700)
            guard.hand_over(template)
            self.engine.initialise(self.installation, template, self.guard)
            server = self.engine.start(
                self.installation, template, self.guard, settings=self.settings(), logs=self.logs
            )
            try:
                fields = self.connection(arm, dict.fromkeys((*ARMS, "both"), server)) | {
                    "connections": 1,
                    "per_request": False,
                }
                with Agent(log=self.logs / "agent.log") as agent:
                    agent.connect("loader", **fields)
                    self.fill(agent)
            finally:
                server.stop()

    def ready(self, twins: Twins) -> None:
        """Once the arms are proven: make what a server of the user's still lacks, and let these twins work in it."""
        if not self.schema:
            return
        if not self.loaded:
            self.loaded = True
            self.at_end.enter_context(running_schema(self))
        for fields in twins.connect.values():
            fields.update(self.engine.in_schema(self.schema))

    def fill(self, agent: Agent) -> None:
        """Make and fill the tables through the agent's arm `loader`. Raises RunError with the statement that failed."""
        if self.mechanism.layer == "rest":
            agent.query("loader", f"CREATE TABLE {CANARY_TABLE} (word varchar(100))")
            agent.query("loader", f"INSERT INTO {CANARY_TABLE} VALUES ('{self.canary}')")
        for statement in self.program.load:
            try:
                agent.query("loader", statement)
            except AgentError as error:
                raise RunError(f"loading workload {self.program.name}: {error}, at: {statement[:120]}") from None


@contextmanager
def bench(
    cell: CellSpec, run_guard: guard.Guard, scratch: Path, logs: Path, number: int, *, data: bool = True
) -> Iterator[Bench]:
    """Find the server, make and load the data of one cell. Everything made is gone afterwards. Raises RunError, MissingServer.

    On a server that is the user's nothing is made before `ready`. `data` false: the workload's tables are not needed.
    """
    engine = engines.get(cell.engine)
    mechanism = mechanisms.get(cell.mechanism)
    factors, parameters = spec.split_factors(cell)
    program = workloads.prepare(spec.workload_of(cell), engine.dialect, parameters, cell.rows)
    if not engine.stores or not data:
        program = msgspec.structs.replace(program, load=(), check="")
    directory = scratch / f"cell-{number}"
    directory.mkdir(mode=0o711)
    keys = scratch / "secrets" / f"cell-{number}"
    keys.mkdir(mode=0o700)
    guard.hand_over(keys)
    clients = cell.clients or (1 if engine.embedded or cell.regime == "one-core" else program.clients)
    installation = engine.find(cell.version, url=cell.url, bindir=cell.bindir)
    engine.check_factors(mechanism.name, factors, installation.version)
    made = Bench(
        cell=cell,
        engine=engine,
        mechanism=mechanism,
        factors=factors,
        program=program,
        installation=installation,
        directory=directory,
        secrets=keys,
        guard=run_guard,
        logs=logs,
        canary=f"canary{secrets.token_hex(16)}",
        clients=clients,
        schema=f"ciphercost_{run_guard.run_id.replace('-', '_')}" if cell.url and program.load else "",
    )
    with made.at_end:
        made.at_end.callback(shutil.rmtree, directory, ignore_errors=True)
        if cell.url:
            ask_password(made)
        else:
            made.load()
        yield made


def ask_password(made: Bench) -> None:
    """Where a server of the user's wants a password that was found nowhere: ask for it, if there is a terminal."""
    server = made.engine.start(made.installation, made.directory, made.guard)
    if not passwords.may_ask(server.connection()):
        return
    # The encrypted arm first: what it is let in with needn't be sent in clear.
    arms = [made.connection(arm, dict.fromkeys((*ARMS, "both"), server), schema=False) for arm in ARMS[::-1]]
    with Agent(log=made.logs / "agent.log") as agent:
        one = {"connections": 1, "threads": 1, "per_request": False}
        passwords.ask_where_wanted(agent, [fields | one for fields in arms], made.engine.refuses_anonymous)


@contextmanager
def running_schema(made: Bench) -> Iterator[None]:
    """On a server that is the user's: a schema of our own, made for the run and dropped after it. Nothing else is touched."""
    server = made.engine.start(made.installation, made.directory, made.guard)
    # Into the schema only once it is there: the first connection is made as the user's own is.
    fields = made.connection("plain", {"both": server}, schema=False) | {"connections": 1, "per_request": False}
    engine, name = made.engine, made.schema
    with Agent(log=made.logs / "agent.log") as agent:
        engine.make_schema(agent, fields, name, made.guard.run_id)
    try:
        with Agent(log=made.logs / "agent.log") as agent:
            agent.connect("loader", **(fields | engine.in_schema(name)))
            made.fill(agent)
        yield
    finally:
        # By a connection of its own: the loader's may be what went wrong.
        try:
            with Agent(log=made.logs / "agent.log") as agent:
                engine.drop_schema(agent, fields, name)
        except RunError as error:
            left = f"the schema {name} could not be dropped ({error}); `ciphercost clean --url` removes it"
            print(f"ciphercost: {left}", file=sys.stderr)


def copy(source: Path, target: Path) -> None:
    """A copy of a data directory, owners and modes kept, blocks shared where the file system can. Raises RunError."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RunError(f"can't copy the data to {target}: {done.stderr.strip().splitlines()[-1:]}; is the disk full?")


def config_diff(connect: Mapping[Arm, Mapping[str, object]]) -> list[str]:
    """What differs between the arms' connections, secrets left out. Pure."""
    plain, encrypted = connect["plain"], connect["encrypted"]
    lines = []
    for field in sorted({*plain, *encrypted}):
        if plain.get(field) == encrypted.get(field):
            continue
        if field in SECRET_FIELDS:
            lines.append(
                f"{field}: {'set' if plain.get(field) else 'none'} | {'set' if encrypted.get(field) else 'none'}"
            )
        elif field in ("path", "tls_ca"):
            # These name places of this machine and this run; that they differ is no setting.
            continue
        else:
            lines.append(f"{field}: {plain.get(field, 'not set')} | {encrypted.get(field, 'not set')}")
    return lines
