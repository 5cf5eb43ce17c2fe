"""users_server: works with your own server: logs in, asks for a password, and makes scratch schemas for the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import msgspec

from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import deadlines
from ciphercost.load import passwords
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import SYSTEM, ConnectionString
from ciphercost.load.load_client import LoadClient
from ciphercost.load.plaintext_guard import Place, encrypted_first, words
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import loading, scratch_schema
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair


def servers_at(bench: PreparedCell) -> dict[str, Server]:
    """Your server, for each arm."""
    return dict.fromkeys(
        (*ARMS, "both"), bench.engine.start(StartRequest(bench.installation, bench.directory, bench.supervisor))
    )


def place(bench: PreparedCell) -> Place:
    """Where your server is."""
    return servers_at(bench)["both"].connection().address


def no_plain_arm(bench: PreparedCell) -> str:
    """Why nothing may or can be sent to your server unencrypted; empty: it can, or the server is not yours."""
    return servers_at(bench)["both"].no_plain_arm if bench.cell.url else ""


def log_in(bench: PreparedCell, servers: Mapping[str, Server], sought: Collection[Arm] = ARMS) -> None:
    """Log in to your server, once per run. Every session first checks that no failed encrypted login forbids it.

    `sought`: the arms that the session needs.

    Raises RunError if nobody can log in for a reason other than encryption. The witnesses report encryption failures.
    """
    if "plain" in map(bench.side, sought) and (why := next(iter(servers.values())).no_plain_arm):
        raise RunError(why)
    if error := refusal(bench, servers):
        raise _login_error(bench, error, TakesUrl.of(bench.engine).hint(error.code, str(error)), encrypted=True)
    if bench.entered:
        return
    bench.entered = True
    arms: list[Arm] = ["encrypted"] if bench.encrypts_way else encrypted_first(ARMS)
    refusals = []
    with Agent(log=bench.logs / "agent.log") as agent:
        for arm in arms:
            if not (error := try_arm(bench, agent, arm, servers)):
                return
            refusals.append(error)
            if error.code == deadlines.TIMEOUT:
                break  # another attempt would wait just as long
        if len({failure.code for failure in refusals}) == 1 and refusals[-1].code != "tls":
            what = advice(bench, agent, arms[len(refusals) - 1], servers, refusals[-1])
            raise _login_error(bench, refusals[-1], what, encrypted=bench.encrypts_way)


def advice(bench: PreparedCell, agent: LoadClient, arm: Arm, servers: Mapping[str, Server], error: AgentError) -> str:
    """What is wrong with an arm of your server that failed, and what to do. It may ask the server again."""
    connection = bench.connection(arm, servers)
    return TakesUrl.of(bench.engine).advice(bench.cell.url, agent, arm, connection, error)


def what_to_do(bench: PreparedCell, pair: ServerPair, agent: LoadClient) -> str:
    """Advice about the first arm that failed while it was to be proven, if its server is yours. Empty: none."""
    engine = bench.engine
    for arm in pair.login_order if bench.cell.url else ():
        if (error := pair.failures.get(arm)) and isinstance(engine, TakesUrl):
            return engine.advice(bench.cell.url, agent, arm, pair.connect[arm], error)
    return ""


def refusal(bench: PreparedCell, servers: Mapping[str, Server]) -> AgentError | None:
    """Why this cell must send nothing to your server: an encrypted connection with stricter requirements has failed."""
    return bench.servers.refused.reason(place(bench), bench.connection("encrypted", servers))


def try_arm(bench: PreparedCell, agent: Agent, arm: Arm, servers: Mapping[str, Server]) -> AgentError | None:
    """Log in once to your server. Record it if the encrypted arm can't."""
    connection = bench.connection(arm, servers).single
    try:
        agent.connect("enter", connection)
        bench.engine.greet(agent, "enter")
        agent.disconnect("enter")
    except AgentError as error:
        if arm == "encrypted":
            bench.servers.refused.note(place(bench), connection, error)
        return error
    return None


def _login_error(bench: PreparedCell, error: AgentError, advice: str, *, encrypted: bool) -> RunError:
    arm = ", encrypted arm" if encrypted else ""
    what = words(str(error), error.code) if error.code == "tls" else advice
    trying = "get the page from" if bench.engine.language == "http" else "log in to"
    sentence = f"can't {trying} your {bench.engine.title}{arm}: {error.words.rstrip('.')}. {what}".rstrip(". ")
    return RunError(sentence if sentence.endswith("?") else f"{sentence}.")


def ready(bench: PreparedCell, pair: ServerPair) -> None:
    """Make what your server still lacks, once the arms are proven. Only the first call makes anything."""
    if not bench.cell.url:
        return
    for arm, name in bench.own_schemas.items():
        if name not in bench.shared.schemas:
            bench.at_end.enter_context(_running_schema(bench, arm))
            bench.shared.schemas.add(name)
    for arm in pair.connect:
        if arm in bench.own_schemas:
            pair.connect[arm] |= OwnSchema.of(bench.engine).in_schema(bench.own_schemas[arm])


def make_contact(bench: PreparedCell, paused: Callable[[], AbstractContextManager[None]]) -> None:
    """Before anything else is sent to your server: try the run's encrypted connections, and ask for a password if one
    is needed.

    Never raises: `log_in` reports what keeps this cell out.
    """
    with Agent(log=bench.logs / "agent.log") as agent:
        for other in [] if bench.encrypts_way else encrypted_cells(bench):
            servers = servers_at(other)
            ask_password(other, agent, servers, paused)
            if try_arm(other, agent, "encrypted", servers):
                return
        servers = servers_at(bench)
        if not refusal(bench, servers):
            ask_password(bench, agent, servers, paused)


def encrypted_cells(bench: PreparedCell) -> Iterator[PreparedCell]:
    """The run's cells that reach this server encrypted and that have not been tried for another cell."""
    for number, cell in enumerate(bench.servers.cells):
        if not cell.spec.url or cell.mechanism.layer != "transit" or number in bench.servers.tried:
            continue
        spec = cell.spec
        other = msgspec.structs.replace(
            bench,
            planned=cell,
            program=cell.program,
            installation=bench.servers.find(cell.engine, spec.version, spec.url, spec.bindir),
            sealings={},
            own_schemas={},
        )
        if place(other) == place(bench):
            bench.servers.tried.add(number)
            yield other


def ask_password(
    bench: PreparedCell, agent: Agent, servers: Mapping[str, Server], paused: Callable[[], AbstractContextManager[None]]
) -> None:
    """Ask for a password on the terminal, if your server wants one that was found nowhere."""
    connection = bench.connection("encrypted", servers).single
    if passwords.may_ask(connection):
        passwords.ask_where_wanted(agent, connection, TakesUrl.of(bench.engine).refuses_anonymous, paused)


@contextmanager
def _running_schema(bench: PreparedCell, arm: Arm) -> Iterator[None]:
    """A scratch schema on your server, made for the run and dropped after it. Nothing else is touched."""
    server = bench.engine.start(StartRequest(bench.installation, bench.directory, bench.supervisor))
    # The first connection is made like your own, because the schema doesn't exist yet. In transit it is encrypted.
    first_arm: Arm = "encrypted" if bench.mechanism.layer == "transit" else "plain"
    connection = bench.connection(first_arm, {"both": server}).single
    log = bench.logs / "agent.log"
    name = bench.own_schemas[arm]
    ca = bench.cell.ca or getattr(server, "ca", "")
    own_tls = msgspec.structs.replace(bench.cell.own_tls, ca="" if ca == SYSTEM else ca)
    asked: ConnectionString | None = getattr(server, "asked", None)
    if asked and asked.identity and not own_tls.cert:
        own_tls = msgspec.structs.replace(own_tls, cert=asked.identity.cert, key=asked.identity.key)
    owner = OwnSchema.of(bench.engine)
    with scratch_schema.temporary(owner, connection, name, bench.supervisor.run_id, log, bench.left, own_tls=own_tls):
        with Agent(log=log) as agent:
            answer = agent.connect("loader", connection | bench.of_arm(arm) | owner.in_schema(name))
            bench.mechanism.check_version(bench.engine, answer.server_version)
            loading.fill(bench, agent, arm)
        yield
