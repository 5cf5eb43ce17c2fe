"""engines: one file a server: how to get, start, check and stop it. Found by file name; adding a server is adding a file.

An engine file defines `ENGINE`, an instance of a subclass of `Engine` and of the `capabilities` that the server has.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.host.installation import Installation
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Language

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.host.volumes.volume import Volume
    from ciphercost.load.agent import Agent


class Server(ABC):
    """A running server, or for an embedded engine the directory that stands for one."""

    pid: int = 0
    """Root of the server's process tree; 0 where there is none that we can see."""
    directory: Path | None = None
    library: str = ""
    """The cryptographic library that it has loaded, with its version, where we can see it."""
    cgroups: tuple[Path, ...] = ()
    """Control groups that hold exactly this server's processes, where we may make any."""
    volume: Volume | None = None
    """Where its data lies; None: on a server of the user's."""
    opening: float = 0.0
    """Seconds from its start to its first answer."""
    ways: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    """Where a mechanism's encrypted arm is reached elsewhere than the plain one (a port of its own): fields of `connect`, by its name."""

    @abstractmethod
    def connection(self) -> dict[str, object]:
        """Fields of the agent's `connect` that reach this server in clear (driver, host, port, user, …)."""

    def handshakes(self) -> tuple[int, int]:
        """(full, resumed): TLS handshakes since the last call, as the server's own log has them; (0, 0) where it keeps none."""
        return 0, 0

    @abstractmethod
    def stop(self) -> None:
        """End the server in order and wait until it is gone. Raises RunError when it does not end."""


class Engine(ABC):
    """What every engine does: find, start and reach one kind of server. The rest is in `capabilities`."""

    name: str
    title: str
    driver: str
    """The agent's driver."""
    dialect: str
    """Name under which workloads keep their lines for this server."""
    language: Language = "sql"
    """What an operation is written in: SQL, HTTP requests, or commands of a key-value store."""
    usual_workload: str = "point-select"
    """The workload where the user names none."""
    loads: bool = True
    """False: it keeps no data, so a workload's tables are neither loaded nor checked."""
    volatile: bool = False
    """True: data is gone when the server ends, so each session loads it anew. Else it is loaded once and its directory copied."""
    embedded: bool = False
    """True: no server process; the database runs inside the agent (SQLite)."""
    foreign: bool = False
    """True: always a server of the user's, named by a URL; never ours."""
    no_url: str = ""
    """Why `--url` does not fit, to follow its name in an error message; empty: the usual words."""
    mute: tuple[Witness, ...] = ()
    """Witnesses that say nothing here: somebody else's server tells us nothing about its sessions."""
    caches_logins: bool = False
    """Whether the first login after a start takes another, slower path than those that follow."""

    @abstractmethod
    def available(self) -> Iterable[Installation]:
        """Every installation found on this machine without fetching anything, best first. For `doctor`, `list engines`."""

    @abstractmethod
    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        """The installation to use: running (url), then bindir and PATH, then what was installed, then fetched. Raises MissingServer."""

    @abstractmethod
    def install(self, version: str = "", source: str = "") -> Installation:
        """Fetch this version into a private root (`debian`, `apt`, `maven`); nothing is installed on the host. Raises MissingServer."""

    @abstractmethod
    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty database cluster in `directory`, with the user and database that `connection` names.

        `settings`: as for `start`, those that must be there from the beginning; `initdb:NAME` is an option of the program that
        makes a cluster alone (its value may be empty).
        """

    @abstractmethod
    def start(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        *,
        cpus: Iterable[int] | None = None,
        settings: Mapping[str, str] | None = None,
        logs: Path | None = None,
    ) -> Server:
        """Start on a free port of 127.0.0.1 and wait until it answers. Raises RunError with the end of the server's log.

        Clients come from anywhere in 127.0.0.0/8 (`link`), so the server's own rules must admit them all.

        `settings`: the server's own names; `env:NAME` sets a variable of its environment.
        """

    def settings_for(self, clients: int) -> dict[str, str]:  # noqa: ARG002
        """Settings that this many clients an arm need."""
        return {}

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: B027
        """Refuse factors of a mechanism that this server can't honour, before anything is started. Raises UsageError.

        `version`: as far as it is known; '' where it will be found later.
        """

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def in_clear(self) -> dict[str, object]:
        """Fields of the agent's `connect` that keep a connection in clear, stated and not left to a default.

        A relay then also keeps the server's name, by which the agent knows what leaves the machine.
        """
        return {}

    def way(self, version: str, parameters: Mapping[str, int | str]) -> dict[str, object]:  # noqa: ARG002
        """Fields of the agent's `connect` that a workload's own parameters ask for, in both arms. Raises UsageError."""
        return {}

    def greet(self, agent: Agent, arm: str) -> str:  # noqa: ARG002
        """Check that this arm of the agent's is served. Returns what the server says of itself, or ''. Raises AgentError."""
        return ""

    def echo(self, text: str) -> str:
        """A statement that makes the server send this text back. The text has no quotes in it. Pure."""
        return f"SELECT '{text}'"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        """Words that must appear in clear on the wire, sent and received, if `echo` returned these rows; '' if it didn't. Pure."""
        return (text, text) if rows == [[text]] else ("", "")


def names() -> list[str]:
    """Names of all engines, by file; what begins with `_` is shared by several."""
    found = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted(name for name in found if not name.startswith("_"))


def get(name: str) -> Engine:
    """The engine of that name. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(f"unknown engine '{name}': {nearest(name, names())}")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    return engine
