"""vendor_servers: what tests of vendors' PostgreSQL servers share: where a real one is, and clusters of a single arm."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from ciphercost import mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines.null import NoServer
from ciphercost.engines.postgresql import ENGINE
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._postgresql import VendorTde
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm, CellSpec
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.runs import prove

Rows = list[list[str | None]]


def vendor(name: str) -> VendorTde:
    mechanism = mechanisms.get(name)
    assert isinstance(mechanism, VendorTde)
    return mechanism


def need(name: str) -> None:
    """Skip, also under CIPHERCOST_REQUIRE=all: no registry has this server, so a machine can't be set up to have it."""
    variable = vendor(name).variable
    if not os.environ.get(variable):
        pytest.skip(f"no registry has this server: set {variable} to the directory of its binaries")


def proven(name: str, **factors: str) -> tuple[bool, str]:
    """Whether a pair of the vendor's servers is proven, and the witnesses' report on one line."""
    passed, text = prove.examine(CellSpec(engine="postgresql", mechanism=name, factors=factors))
    return passed, " ".join(text.split())


class VendorClusters:
    """A run of its own: supervisor and scratch, in which clusters of a single arm are made."""

    def __init__(self, run_supervisor: Supervisor) -> None:
        self.supervisor = run_supervisor
        self.scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        self.count = 0

    def rest(self, name: str, installation: Installation, **factors: str) -> AtRestContext:
        """Each has its own keys."""
        self.count += 1
        secrets = ExperimentResources(self.scratch / "secrets" / f"group-{self.count}").secrets
        return AtRestContext(ENGINE, installation, vendor(name).check(factors), secrets, self.supervisor)

    @contextmanager
    def up(self, rest: AtRestContext, arm: Arm, settings: Mapping[str, str]) -> Iterator[ArmAtRest]:
        """A new cluster with these settings, its server running, the agent connected."""
        self.count += 1
        directory = self.scratch / f"cluster-{self.count}"
        ENGINE.initialise(rest.installation, directory, self.supervisor, settings)
        server = ENGINE.start(
            StartRequest(rest.installation, directory, self.supervisor, settings=settings, logs=self.scratch)
        )
        try:
            with Agent() as agent:
                fields = server.connection() | ENGINE.plaintext_fields() | {"connections": 1}
                agent.connect("look", fields)
                yield ArmAtRest(arm, rest, Volume(directory, (directory,)), server, agent, "look", fields)
        finally:
            server.stop()


class Recorded:
    """A replacement for an agent that answers statements with a server's recorded answers. `answers`: rows, or an
    error, by a part of the statement.
    """

    def __init__(self, answers: Mapping[str, Rows | AgentError]) -> None:
        self.answers = answers

    def query(self, name: str, sql: str, *, timeout: float | None = None) -> Rows:
        del timeout
        found = next((answer for part, answer in self.answers.items() if part in sql), [])
        if isinstance(found, AgentError):
            raise found
        return found


def recorded(rest: AtRestContext, arm: Arm, answers: Mapping[str, Rows | AgentError], data: Path) -> ArmAtRest:
    """An arm whose server is only its recorded answers."""
    return ArmAtRest(
        arm,
        rest,
        Volume(data, (data,)),
        NoServer(),
        cast("Agent", Recorded(answers)),
        "look",
        Connection(driver="none"),
    )


@contextmanager
def vendor_clusters() -> Iterator[VendorClusters]:
    with Supervisor(run_directory.new_id()) as made:
        yield VendorClusters(made)
    assert made.problems == []


def told(look: ArmAtRest, sql: str) -> str:
    """The single value that a statement returns, or the error."""
    try:
        return str(look.query(sql)[0][0])
    except AgentError as error:
        return str(error)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
