"""Engines: one file per server, with the code that finds, installs, starts, checks and stops it.

An engine file defines `ENGINE`, an instance of a class that inherits from `Engine` and from the `capabilities` that the
server has. The file's name is the engine's name, so adding a file adds a server; names that begin with `_` are shared
code. An engine knows no mechanism: mechanisms ask an engine for its capabilities.

A new server usually inherits from `_packaged.Packaged` (one program, found in PATH or unpacked from Debian packages)
and starts a `_network.StartedServer`. `valkey.py` is a short complete example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.host.installation import Installation
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.registry import Registry
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Language, Layer

if TYPE_CHECKING:
    from ciphercost.host.standing import Standing
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.host.volumes.volume import Volume
    from ciphercost.load.agent import Agent


class Server(ABC):
    """A running server. For an embedded engine: the directory that stands for one."""

    pid: int = 0
    """Root of the server's process tree; 0 if ciphercost can't see the process."""
    directory: Path | None = None
    library: str = ""
    """Name and version of the cryptographic library that the server has loaded; empty if unknown."""
    cgroups: tuple[Path, ...] = ()
    """Control groups that hold exactly this server's processes; empty if ciphercost can't create any."""
    volume: Volume | None = None
    """Where its data lies; None for a server you already run."""
    opening: float = 0.0
    """Seconds from start to first answer."""
    other_ports: Mapping[str, Changes] = MappingProxyType({})
    """By mechanism: what reaches the encrypted arm where it has a port of its own."""

    no_plain_arm: str = ""
    """Why nothing may or can be sent to it unencrypted; empty: it can. User-visible sentences."""
    takes_headers_in_clear: bool = True
    """Whether a user's headers, which may be secret, may go to it unencrypted."""

    standing: Standing | None = None
    """Watches its processes; None if ciphercost can't see them."""

    def died(self) -> str:
        """Return what died of the server's processes since it was found, as a sentence; empty if nothing is known to have died."""
        return self.standing.died() if self.standing else ""

    @abstractmethod
    def connection(self) -> Connection:
        """Return the settings of an unencrypted connection (driver, host, port, user, …)."""

    def handshakes(self) -> tuple[int, int]:
        """Return (full, resumed) TLS handshakes since the last call, from the server's log; (0, 0) if it logs none."""
        return 0, 0

    def become(self, new: Server) -> None:
        """Stand for another server that was started on the same data after this one was killed."""
        volume = self.volume
        self.__dict__.update(new.__dict__)
        self.volume = volume

    @abstractmethod
    def stop(self) -> None:
        """Stop the server in an orderly way and wait for its end. Raises RunError if it does not end."""


class StartRequest(msgspec.Struct, frozen=True):
    """Which server to start, where, and how."""

    installation: Installation
    directory: Path
    """What `initialise` made, or a copy of it."""
    supervisor: Supervisor
    cpus: Collection[int] | None = None
    """CPUs that it may use. None: all."""
    settings: Mapping[str, str] = {}
    """By the server's own names; `env:NAME` sets an environment variable, and `launch.LISTEN` the address on which it listens.
    [default: 127.0.0.1]
    """
    logs: Path | None = None
    """Directory for its output. None: nobody keeps it."""
    connects: bool = False
    """Whether it may open TCP connections: a replica's to its primary."""


class Engine(ABC):
    """What every engine must do: find, start and reach one kind of server. Everything optional is in `capabilities`."""

    name: str
    title: str
    driver: str
    """Name of the agent's driver."""
    dialect: str
    """Name of the section that workloads use for this server's statements."""
    language: Language = "sql"
    """Language of an operation: SQL, HTTP requests, or commands of a key-value store."""
    usual_workload: str = "point-select"
    """Default workload."""
    loads: bool = True
    """False: the server has no tables, so ciphercost neither loads nor checks those of a workload."""
    volatile: bool = False
    """True: the data is gone when the server ends, so each session loads it again. Otherwise it is loaded once and copied."""
    embedded: bool = False
    """True: there is no server process; the database runs inside the agent (SQLite)."""
    most_openers: int | None = None
    """Most clients whose operations may each open a connection, or an embedded database. 0: there is nothing to open; None: any number."""
    by_jdbc: bool = False
    """True: the Rust agent does not know its protocol, so the Java agent makes every connection, by the server's JDBC driver."""
    foreign: bool = False
    """True: ciphercost never starts this server; you name a running one by URL."""
    by_command: bool = False
    """True: commands of the user's make the load, and no agent speaks to the server."""
    no_url: str = ""
    """Why the engine takes no `--url`. Follows the engine's name in the error; empty: a general reason."""
    mute: tuple[Witness, ...] = ()
    """Witnesses that can't report on this engine's connections, such as `server` if it reports nothing about its sessions."""
    echoes_in_errors: bool = False
    """True: the server refuses the statement that `echo` returns, and its error repeats the text."""
    caches_logins: bool = False
    """Whether the first login after a start takes a different, slower path than later ones."""

    def silent(self, layer: Layer) -> tuple[Witness, ...]:
        """Witnesses that can't report on cells of this layer. At rest each of them looks at files, not at connections."""
        return () if layer == "rest" else self.mute

    @abstractmethod
    def available(self) -> Iterable[Installation]:
        """List every installation on this machine, best first. Fetches nothing. For `doctor` and `list engines`."""

    @abstractmethod
    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        """Return the installation to use: `url`, then `bindir`, PATH, packages fetched before, and last a new fetch.

        Raises MissingServer if there is none, UsageError if an option does not fit this engine.
        """

    @abstractmethod
    def install(self, version: str = "", source: str = "") -> Installation:
        """Fetch this version into a private directory (`debian`, `apt`, `maven`) without changing the host's packages.

        Raises MissingServer.
        """

    @abstractmethod
    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create an empty cluster in `directory`, with the user and database that `connection` names.

        `settings`: those settings of `start` that must exist from the beginning, and the address on which servers will
        listen (`launch.LISTEN`), which decides from where clients may log in. `initdb:NAME` is an option of the program
        that creates the cluster, and of no other; its value may be empty.
        """

    @abstractmethod
    def start(self, request: StartRequest) -> Server:
        """Start the server on a free port of one address and wait until it answers.

        On loopback, clients connect from anywhere in 127.0.0.0/8 (see `link`), so the server's own rules must admit all
        of it; on another address, from anywhere.

        Raises RunError with the end of the server's log.
        """

    quiet_settings: Mapping[str, str] = MappingProxyType({})
    """Settings by which its log quotes no statement that fails, for statements that hold values of the user's."""

    def settings_for(self, clients: int) -> dict[str, str]:  # noqa: ARG002
        """Return the settings that this many clients per arm need."""
        return {}

    def workload_settings(self, parameters: Mapping[str, int | str]) -> dict[str, str]:  # noqa: ARG002
        """Return the settings that a workload's parameters need."""
        return {}

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: B027
        """Refuse factors of a mechanism that this server can't honour, before anything starts. Raises UsageError.

        `version`: empty if it is not known yet.
        """

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def plaintext_fields(self) -> Changes:
        """Return what requests an unencrypted connection explicitly instead of relying on a
        default.

        A relay then also keeps the server's name, which tells the agent whether traffic leaves the machine.
        """
        return {}

    def workload_fields(
        self,
        version: str,  # noqa: ARG002
        parameters: Mapping[str, int | str],  # noqa: ARG002
        *,
        encrypted: bool,  # noqa: ARG002
    ) -> Changes:
        """Return the `connect` fields that a workload's parameters need in an arm. Raises UsageError.

        `version`: empty if it is not known yet; `encrypted`: whether the arm's connections are.
        """
        return {}

    def greet(self, agent: Agent, arm: str) -> str:  # noqa: ARG002
        """Check that the server answers on this arm. Returns how the server names itself, or ''. Raises AgentError."""
        return ""

    def echo(self, text: str) -> str:
        """Return a statement that makes the server send this text back. The text contains no quotes. Pure."""
        return f"SELECT '{text}'"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        """Return (sent, received): texts that must be readable on an unencrypted wire if `echo` returned these rows.
        Pure.

        Both are '' if the rows do not echo the text.
        """
        return (text, text) if rows == [[text]] else ("", "")

    def said(self, connection: Connection) -> str:  # noqa: ARG002
        """Return a text that this connection makes the client send instead of the one that `echoed` names; empty: none."""
        return ""


REGISTRY = Registry(__name__, "unknown engine '{}': {}", beside=("capabilities",))


def names() -> list[str]:
    """List the names of all engines."""
    return REGISTRY.names()


def get(name: str) -> Engine:
    """Return the engine with this name. Raises UsageError that suggests the nearest name."""
    engine: Engine = REGISTRY.get(name).ENGINE
    return engine
