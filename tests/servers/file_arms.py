"""Both arms of a mechanism that encrypts the file of an embedded database, with a canary in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ciphercost.engines import Engine, StartRequest
from ciphercost.host import supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext
from ciphercost.model import run_directory
from ciphercost.model.constrained_types import CANARY_TABLE
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import cache

CANARY = b"canary0123456789abcdef0123456789abcdef"
INSERT = f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY.decode()}')"


@contextmanager
def arms(engine: Engine, mechanism: AtRest, filling: Sequence[str], **factors: str) -> Iterator[dict[Arm, ArmAtRest]]:
    """Both files, filled in the same way by separate processes; one row is only in the write-ahead log.

    `filling`: what stands between the first row with the canary and that one; ends with a checkpoint.
    """
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, ExitStack() as agents:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        rest = AtRestContext(engine, engine.find(), mechanism.check(factors), scratch / "secrets", run_supervisor)
        looks: dict[Arm, ArmAtRest] = {}
        for arm in ARMS:
            directory = scratch / arm
            engine.initialise(rest.installation, directory, run_supervisor)
            server = engine.start(StartRequest(rest.installation, directory, run_supervisor))
            arm_fields = mechanism.connection(engine, arm, rest.factors, rest.secrets)
            fields = cache.joined(server.connection(), arm_fields).alone
            agent = agents.enter_context(Agent())
            agent.connect("look", fields)
            looks[arm] = ArmAtRest(arm, rest, Volume(directory, (directory,)), server, agent, "look", fields)
            for sql in (f"CREATE TABLE {CANARY_TABLE} (word varchar(100))", INSERT, *filling, INSERT):
                looks[arm].query(sql)
        yield looks


def path_of(look: ArmAtRest) -> Path:
    """The arm's database file."""
    return Path(str(look.connect.path))
