"""tde_servers: what tests of a server's own encryption share: both arms, made as a run makes them, started as often as
needed.
"""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import canary_scan, supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.measure.recorded_facts import settings_in_force
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext
from ciphercost.model import run_directory
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import destructive_test, rest_witnesses
from ciphercost.provision import dataset
from mysql_servers import LIGHT

CANARY = "canary0123456789abcdef0123456789"
OTHER: dict[Arm, Arm] = {"plain": "encrypted", "encrypted": "plain"}


class Pair:
    """Both arms' data, loaded once; copies of it are started."""

    def __init__(
        self, mechanism: str, installation: Installation, run_supervisor: Supervisor, scratch: Path, **factors: str
    ) -> None:
        found = mechanisms.get(mechanism)
        assert isinstance(found, AtRest)
        self.mechanism = found
        self.engine = engines.get(installation.engine)
        self.scratch = scratch
        self.numbers = itertools.count()
        rest = AtRestContext(self.engine, installation, found.check(factors), scratch / "secrets", run_supervisor)
        self.rest = msgspec.structs.replace(rest, installation=found.prepare(rest))

    def make(self, *arms: Arm) -> None:
        """Load the canary into both arms, or into these."""
        for arm in arms or ARMS:
            directory = self.scratch / arm
            self.engine.initialise(self.rest.installation, directory, self.rest.supervisor, self.settings(arm))
            self.mechanism.write_cluster_files(arm, directory, self.rest)
            if self.mechanism.encrypts:
                with self.started(arm, directory) as look:
                    self.mechanism.encrypt(look)
            with self.started(arm, directory) as look:
                look.query("CREATE TABLE canaries (id int PRIMARY KEY AUTO_INCREMENT, word varchar(100))")
                for _ in range(3):
                    look.query(f"INSERT INTO canaries (word) VALUES ('{CANARY}')")
                self.mechanism.settled(look)

    def with_factors(self, **factors: str) -> Pair:
        """The same data, under servers with other factors."""
        other = copy.copy(self)
        other.rest = msgspec.structs.replace(self.rest, factors=self.mechanism.check(factors))
        return other

    def settings(self, arm: Arm) -> dict[str, str]:
        return self.mechanism.settings(arm, self.rest)

    @contextmanager
    def copy(self, arm: Arm) -> Iterator[Path]:
        """A directory with a copy of the arm's data."""
        directory = self.scratch / f"copy-{next(self.numbers)}"
        dataset.copy(self.scratch / arm, directory)
        yield directory
        shutil.rmtree(directory)

    @contextmanager
    def started(self, arm: Arm, directory: Path, **settings: str) -> Iterator[ArmAtRest]:
        """Start the arm's server on this directory, with other settings if given (`_` for `-`)."""
        light = LIGHT.get(self.engine.name, {})
        given = light | self.settings(arm) | {name.replace("_", "-"): value for name, value in settings.items()}
        server = self.engine.start(
            StartRequest(self.rest.installation, directory, self.rest.supervisor, settings=given)
        )
        try:
            with Agent() as agent:
                fields = server.connection() | self.engine.plaintext_fields()
                agent.connect(arm, fields)
                yield ArmAtRest(arm, self.rest, Volume(directory, (directory,)), server, agent, arm, fields)
        finally:
            server.stop()

    @contextmanager
    def up(self, arm: Arm, **settings: str) -> Iterator[ArmAtRest]:
        """A copy with its server running."""
        with self.copy(arm) as directory, self.started(arm, directory, **settings) as look:
            yield look

    def seen(self, look: ArmAtRest, word: str = CANARY) -> dict[str, int]:
        """The files that contain the word unencrypted."""
        return rest_witnesses.at_rest(look, self.mechanism, word).hits


@contextmanager
def pair(mechanism: str, installation: Installation, *arms: Arm, **factors: str) -> Iterator[Pair]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        made = Pair(
            mechanism,
            installation,
            run_supervisor,
            supervisor.scratch(run_supervisor.run_id, run_supervisor),
            **factors,
        )
        made.make(*arms)
        yield made
    assert run_supervisor.problems == []
    assert not made.scratch.exists()


def told(look: ArmAtRest) -> ArmAtRest:
    """The same server, under the other arm's name."""
    return msgspec.structs.replace(look, arm=OTHER[look.arm])


def in_force(look: ArmAtRest) -> dict[str, str]:
    """The settings that a run compares."""
    return settings_in_force(look.query(StoresData.of(look.rest.engine).variables), look)


def spilt(both: Pair, look: ArmAtRest) -> dict[str, dict[str, int]]:
    """Where each kind of temporary data is unencrypted, while it exists."""
    found = {}
    for number in range(len(StoresData.of(both.engine).spills(""))):
        word = canary_scan.canary()  # a separate word: what the last spill left behind must not count here
        spill = StoresData.of(both.engine).spills(word)[number]
        found[spill.name] = destructive_test._spill(look, both.mechanism, spill, word).hits
    return found
