"""loading: fills the template that a cell's sessions copy their data from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain

from ciphercost.engines import Server
from ciphercost.engines.capabilities.documents import Documents
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import deadlines, run_ownership
from ciphercost.host.volumes.volume import Volume
from ciphercost.load import redact
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import columns, dump_loading
from ciphercost.provision.dataset import arm_at
from ciphercost.provision.prepared_cell import PreparedCell

STATEMENT_SHOWN = 120
"""Characters shown of a statement that failed."""


def load(bench: PreparedCell) -> None:
    """Fill the template, once for each place, unless another cell has filled it. Raises RunError with the statement
    that failed.
    """
    dataset = bench.dataset
    if dataset.loaded:
        return
    for place in dict.fromkeys(dataset.origin(place) for place in dataset.places):
        template = bench.directory / "template" / place
        template.mkdir(parents=True, mode=0o700)
        run_ownership.hand_over(template)
        volume = Volume(template, (template,))
        _make_cluster(bench, place, volume)
        if isinstance(bench.engine, Documents):
            documents = bench.program.documents | (dict(bench.engine.payload_documents) if bench.mask else {})
            bench.engine.lay_out(template, bench.directory / f"documents-{place}", documents, bench.shared.canary)
        _first_start(bench, place, volume, partial(_fill_arms, bench, place))
    dump_loading.check_equal(bench)
    bench.shared.templates[dataset.key] = bench.directory / "template"


def _make_cluster(bench: PreparedCell, place: str, volume: Volume) -> None:
    """Make a template's cluster, with encryption switched on and the user's dump loaded, if there is one."""
    template, mechanism = volume.path, bench.mechanism

    def initialise() -> None:
        if isinstance(mechanism, AtRest):
            bench.engine.initialise(bench.installation, template, bench.supervisor, bench.settings(place))
            arm = arm_at(place)
            mechanism.write_cluster_files(bench.side(arm), template, bench.rest_of(arm))
        else:
            bench.engine.initialise(bench.installation, template, bench.supervisor, bench.listening)

    def encrypt() -> None:
        if isinstance(mechanism, AtRest) and mechanism.encrypts:
            _first_start(bench, place, volume, mechanism.encrypt)

    if dump := dump_loading.loading(bench, place, template):
        dump.fill(initialise, encrypt, partial(_first_start, bench, place, volume))
        return
    initialise()
    encrypt()


def _first_start(
    bench: PreparedCell,
    place: str,
    volume: Volume,
    do: Callable[[ArmAtRest], None],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Start a template's server, do one thing, stop it. `settings`: for this once; its output is then kept by nobody."""
    server = bench.start(place, volume, once=settings)
    try:
        _with_loader(bench, place, volume, server, do)
    finally:
        server.stop()


def refill(bench: PreparedCell, place: str, volume: Volume, server: Server) -> None:
    """Load the data of a volatile engine into a session's server, which has just started. Raises RunError."""
    _with_loader(bench, place, volume, server, partial(_fill_arms, bench, place))


def _with_loader(
    bench: PreparedCell, place: str, volume: Volume, server: Server, do: Callable[[ArmAtRest], None]
) -> None:
    """Connect an agent to a server that is up, for one thing to be done."""
    arm = arm_at(place)
    connection = bench.connection(arm, dict.fromkeys((*ARMS, "both"), server)).single
    with bench.helper(connection) as agent:
        agent.connect("loader", connection)
        look = ArmAtRest(bench.side(arm), bench.rest_of(arm), volume, server, agent, "loader", connection)
        do(look)
        if isinstance(bench.mechanism, AtRest):
            bench.mechanism.settled(look)


def _fill_arms(bench: PreparedCell, place: str, look: ArmAtRest) -> None:
    """Fill a template. For a column mechanism: create and fill a schema per arm; otherwise: the arm's tables."""
    agent, connection = look.agent, look.connect
    assert isinstance(agent, Agent)
    for arm, name in bench.own_schemas.items():
        OwnSchema.of(bench.engine).make_schema(agent, connection, name, bench.supervisor.run_id)
        agent.connect("loader", connection | bench.of_arm(arm) | OwnSchema.of(bench.engine).in_own_schema(name))
        fill(bench, agent, arm)
    if not bench.own_schemas:
        fill(bench, agent, look.arm)
    if bench.cell.whole_dump:
        dump_loading.count_rows(bench, place, look.query)


def fill(bench: PreparedCell, agent: Agent, arm: Arm = "plain") -> None:
    """Create and fill an arm's tables through the agent's arm `loader`. Raises RunError with the statement that failed."""
    if isinstance(bench.mechanism, AtRest):
        engine = StoresData.of(bench.engine)
        for statement in (*engine.make_canaries, engine.keep_canary(bench.shared.canary)):
            agent.query("loader", statement)
    if bench.sealings:
        sealings = bench.sealings.values()
        needed = [
            sealing.mechanism.prepare(bench.engine, sealing.factors, ours=not bench.cell.url) for sealing in sealings
        ]
        for statement in dict.fromkeys(chain.from_iterable(needed)):
            agent.query("loader", statement)
        columns.fill(agent, "loader", bench.sealings[arm], bench.shared.canary, arm, bench.side(arm))
    for step in bench.program.tables(arm).load:
        try:
            agent.query("loader", step.sql, timeout=deadlines.load())
        except AgentError as error:
            # Redact before cutting: a truncated key would not be recognised as a key.
            where = redact.shown(step.where)[:STATEMENT_SHOWN]
            raise RunError(f"loading workload {bench.program.name}: {error}, at: {where}") from None
