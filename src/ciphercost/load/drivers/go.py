"""Go: pgx, lib/pq and go-sql-driver/mysql, by the agent of `agents/go`.

The drivers' versions are those of its go.mod, with the hashes of its go.sum. `go` builds it once into the cache; the sources are in
the repository, and a wheel contains them in `ciphercost/_go`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from ciphercost.host import go_module
from ciphercost.load.driver_agent import AgentProcess
from ciphercost.load.drivers import MYSQL, POSTGRESQL, Driver, Language, Option
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer

AGENT = "ciphercost-agent-go"
CHOSEN = "CIPHERCOST_AGENT_GO"
"""Environment variable: path of an agent to use instead of building one."""
PACKAGED = Path(__file__).parents[2] / "_go"
"""What the wheel holds of the agent; a clone has no such directory."""
CLONE = Path(__file__).parents[4] / "agents" / "go"
PREPARED = Option(
    "prepared", ("true", "false"), "false: the driver prepares each statement again, or sends its values with it"
)
DRIVERS = (
    ("github.com/jackc/pgx/v5", Driver("pgx", "", "go", POSTGRESQL, cipher=("1.2",), at_once=True, binding=("disable", "prefer", "require"))),
    (
        "github.com/lib/pq",
        Driver(
            "lib-pq", "", "go", POSTGRESQL,
            (PREPARED, Option("binary_parameters", ("no", "yes"), "yes: a statement that is not prepared takes one round trip")),
            cipher=(),
        ),
    ),
    (
        "github.com/go-sql-driver/mysql",
        Driver(
            "go-mysql", "", "go", MYSQL,
            (PREPARED, Option("interpolateParams", ("false", "true"), "true: a statement that is not prepared travels as text with its values")),
            cipher=("1.2",),
        ),
    ),
)  # fmt: skip
"""Go modules and the drivers in them, whose versions the agent's go.mod says."""


def source() -> Path:
    """The directory of the agent's module: the wheel's, or the clone's."""
    return PACKAGED if PACKAGED.is_dir() else CLONE


def _drivers() -> Iterator[Driver]:
    """The drivers in the versions that go.mod requires; none if there is no such file."""
    file = source() / "go.mod"
    required = dict(re.findall(r"^\s*(\S+) v([\d.]+)$", file.read_text(), re.MULTILINE)) if file.is_file() else {}
    for module, driver in DRIVERS:
        if version := required.get(module):
            yield Driver(
                driver.name,
                version,
                driver.language,
                driver.engines,
                driver.options,
                cipher=driver.cipher,
                at_once=driver.at_once,
                binding=driver.binding,
            )


class Go(Language):
    name = "Go"
    concurrency = "a goroutine for each connection, on as many processors (GOMAXPROCS) as there are threads"
    drivers = tuple(_drivers())
    without_aes = MappingProxyType({"GODEBUG": "cpu.aes=off,cpu.pclmulqdq=off"})

    def fetch(self, driver: Driver) -> None:  # noqa: ARG002 - one program has all drivers
        program()

    def process(self, driver: Driver, like: Connection, place: Path) -> AgentProcess:  # noqa: ARG002
        return AgentProcess([str(program())])


def program() -> Path:
    """The agent's program: $CIPHERCOST_AGENT_GO, else one that `go` builds into the cache. Raises MissingServer."""
    if chosen := os.environ.get(CHOSEN):
        if not Path(chosen).is_file():
            raise MissingServer(f"{CHOSEN} names {chosen}, which is not a file")
        return Path(chosen)
    if not (source() / "go.mod").is_file():
        raise MissingServer(f"the Go agent's sources are missing: no {CLONE / 'go.mod'}")
    return go_module.built(source(), AGENT)


LANGUAGE = Go()
