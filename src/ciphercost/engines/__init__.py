"""engines: one file a server: how to get, start, check and stop it. Found by file name; adding a server is adding a file.

An engine file defines `ENGINE`, an instance of a subclass of `Engine`.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.host.installation import Installation
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Language

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Guard
    from ciphercost.host.volumes.volume import Volume
    from ciphercost.load.agent import Agent


class Spill(msgspec.Struct, frozen=True):
    """Temporary data that a server is made to write, for the proof to look for."""

    name: str
    """`temporary table`, `sort`, …"""
    statements: tuple[str, ...]
    """One after the other, on a connection of their own that stays open while the files are searched."""
    during: bool = False
    """The last statement takes its time, and the data is there only while it runs."""


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
    """How to get, start, check and stop one kind of server."""

    name: str
    title: str
    driver: str
    """The agent's driver."""
    embedded: bool = False
    """True: no server process; the database lives in the agent (SQLite)."""
    stores: bool = True
    """False: nothing is kept, so there is nothing to load or to check (null)."""
    dialect: str
    """Name under which workloads keep their lines for this server."""
    language: Language = "sql"
    """What an operation is written in: statements of SQL, or requests of HTTP."""
    usual_workload: str = "point-select"
    """What is run where nobody says."""
    kept_settings: str = "(?!)"
    """Names of its settings, lower case and `_` for `-`, that `--setting` can't have: where it listens, where its files are, who is let in."""
    foreign: bool = False
    """True: always a server of the user's, named by a URL; never ours."""
    urls: int = 1
    """How many URLs may name a server of the user's."""
    mute: tuple[Witness, ...] = ()
    """Witnesses that can't be heard here: a server of somebody else's says nothing of its sessions."""
    schemes: Mapping[str, str] = MappingProxyType({})
    """URL schemes of a running server of this kind, each with the mechanism that `ciphercost prove URL` looks for."""

    def in_clear(self) -> dict[str, object]:
        """Fields of the agent's `connect` that keep a connection in clear, said and not left to a default.

        A relay then also keeps the server's name, by which the agent knows what leaves the machine.
        """
        return {"tls": "off"} if self.has_tls else {}

    @abstractmethod
    def available(self) -> Iterable[Installation]:
        """Every installation found on this machine without fetching anything, best first. For `doctor`, `list engines`."""

    @abstractmethod
    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        """The installation to use: running (url), then bindir and PATH, then what was installed, then fetched. Raises MissingServer."""

    def check_url(self, url: str) -> None:  # noqa: ARG002
        """Refuse a URL that can't be used, before anything is written down. Raises UsageError, never repeating a password."""
        raise UsageError(f"{self.name} is not reached by a URL")

    def check_pair(self, url: str) -> None:  # noqa: B027
        """Refuse a URL that does not lead to both arms. Raises UsageError."""

    def mend(self, code: str) -> str:
        """What to do where neither arm is let in at a server of the user's. `code`: of the agent's error."""
        if code == "connect":
            return "Does it run, and does --url name its host and port?"
        return f"Does --url name the user and database, and {self.password_from} (or its file) the password?"

    def way(self, version: str, parameters: Mapping[str, int | str]) -> dict[str, object]:  # noqa: ARG002
        """Fields of the agent's `connect` that a workload's own parameters ask for, in both arms. Raises UsageError."""
        return {}

    def settings_for(self, clients: int) -> dict[str, str]:  # noqa: ARG002
        """Settings that this many clients an arm need."""
        return {}

    @abstractmethod
    def install(self, version: str = "", source: str = "") -> Installation:
        """Fetch this version into a private root (`debian`, `apt`, `maven`); nothing is installed on the host. Raises MissingServer."""

    @abstractmethod
    def initialise(
        self, installation: Installation, directory: Path, guard: Guard, settings: Mapping[str, str] | None = None
    ) -> None:
        """Make an empty database cluster in `directory`, with the user and database that `connection` names.

        `settings`: as for `start`, of those that must be there from the beginning; `initdb:NAME` is an option of the program that
        makes a cluster alone (its value may be empty).
        """

    @abstractmethod
    def start(
        self,
        installation: Installation,
        directory: Path,
        guard: Guard,
        *,
        cpus: Iterable[int] | None = None,
        settings: Mapping[str, str] | None = None,
        logs: Path | None = None,
    ) -> Server:
        """Start on a free port of 127.0.0.1 and wait until it answers. Raises RunError with the end of the server's log.

        Clients come from anywhere in 127.0.0.0/8 (`link`), so the server's own rules must admit them all.

        `settings`: the server's own names; `env:NAME` sets a variable of its environment.
        """

    # ── a schema of our own on a server that is the user's ────────────────────────────────────────────────────────────

    def make_schema(self, agent: Agent, fields: Mapping[str, object], name: str, run_id: str) -> None:  # noqa: ARG002
        """Make an empty schema (database, file) of this name, marked as made by this run. Raises AgentError, also where it exists.

        `fields`: of the agent's `connect`, as the user's server is reached without it. Touches nothing else. `run_id`: one
        line of up to 100 letters, digits, `.:_-` and spaces, which `schemas` gives back as it was: run, machine, process.
        """
        raise UsageError(f"{self.name} has no schema of our own on a running server")

    def drop_schema(
        self,
        agent: Agent,  # noqa: ARG002
        fields: Mapping[str, object],  # noqa: ARG002
        name: str,  # noqa: ARG002
        *,
        unmarked: bool = False,  # noqa: ARG002
    ) -> None:
        """Drop a schema that `make_schema` made, with all that is in it. `unmarked`: it may have been broken off before the mark."""
        raise UsageError(f"{self.name} has no schema of our own on a running server")

    def schemas(self, agent: Agent, fields: Mapping[str, object]) -> dict[str, str]:  # noqa: ARG002
        """Names that begin with `ciphercost_`, each with the mark that it was made with; '' where it bears none of ours."""
        raise UsageError(f"{self.name} has no schema of our own on a running server")

    def schema(self, agent: Agent, fields: Mapping[str, object], name: str) -> str | None:
        """The mark of the schema of this name: '' where it bears none of ours, None where there is no such schema."""
        return self.schemas(agent, fields).get(name)

    unlisted: str = ""
    """Why `schemas` may not find them all, for people; empty: it does."""

    def in_schema(self, name: str) -> dict[str, object]:  # noqa: ARG002
        """Fields of the agent's `connect` that make this schema the one that statements work in."""
        raise UsageError(f"{self.name} has no schema of our own on a running server")

    def in_own_schema(self, name: str) -> dict[str, object]:
        """The same, of a schema that `make_schema` made on a server of ours, whose data directory may have been copied since."""
        return self.in_schema(name)

    sizes: str = ""
    """SQL of one row, in the schema that is asked about: bytes of its tables, bytes of its indexes. Empty: the server counts neither."""

    def stored_bytes(self, directory: Path, name: str) -> tuple[int, int] | None:  # noqa: ARG002
        """The same two figures, of a schema that `make_schema` made, read from the files of a server of ours. None: not told that way."""
        return None

    statement_logs: str = ""
    """SQL of (what, closes, severity): what the server writes down of the statements that it is sent, in words, and the setting that ends it."""

    def right_to_make(self, fields: Mapping[str, object]) -> str:  # noqa: ARG002
        """What an administrator writes so that this user may make a schema, for people."""
        return "ask the server's administrator for the right to make schemas"

    password_from: str = ""
    """Environment variable that the password of a running server is taken from."""

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Server settings that make TLS possible with this certificate and, where a server chooses it, this group.

        Versions and suites are all on offer, and the client pins them: cells that differ in these can share a server.
        """
        raise UsageError(f"{self.name} has no TLS")

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: B027
        """Refuse factors of a mechanism that this server has no way to honour, before anything is started. Raises UsageError.

        `version`: as far as it is known; '' where it will be found later.
        """

    refuses_clear: tuple[str, ...] = ()
    """Codes of the agent's error when the server refuses a connection because it isn't encrypted."""
    refuses_anonymous: str = ""
    """What the agent's error says when the server refuses a connection that brings no password."""
    caches_logins: bool = False
    """Whether the first login after a start takes another, dearer way than those that follow it."""

    def payload(self, size: int) -> str:  # noqa: ARG002
        """SQL that answers about `size` bytes in one row, made up by the server at next to no cost: a transfer of known size."""
        raise UsageError(
            f"{self.name} has no transfer of known size, so that --cpu-crypto off is in force could not be proven; leave it out"
        )

    payload_documents: Mapping[str, int] = MappingProxyType({})
    """What must be laid out for `payload`, as for `lay_out`."""

    has_tls: bool = False
    """Whether it encrypts connections by TLS."""
    tls_resumption: tuple[str, ...] = ()
    """The ways in which this server can be told to resume TLS sessions, beside `off`; none: it never does."""
    tls_cbc: bool = True
    """Whether it can be told to take suites of CBC."""
    no_old_tls: str = "ciphercost offers TLS 1.0 and 1.1 on web servers only"
    """Why this server can't be asked for TLS 1.0 or 1.1; empty: it can."""
    tls_weak_keys: bool = False
    """Whether it can be told to take an RSA key below 2048 bits."""
    tls_client_cert: bool = False
    """Whether it can be told to require a certificate of the client, and says whether it has verified one."""
    tls_round_trips: int = 0
    """Round trips that the protocol needs to agree on TLS before TLS's own handshake begins."""
    tls_witness: str = ""
    """Where the connection can be encrypted, by TLS or otherwise: SQL that answers `encrypted(t/f)<TAB>protocol<TAB>cipher` for the session it runs in."""

    def sessions(
        self,
        server: Server,  # noqa: ARG002
        agent: Agent,
        arm: str,
        *,
        everywhere: bool = False,
    ) -> list[list[str | None]]:
        """What the server says of the sessions of an agent's arm: rows of (encrypted: t or f, protocol, cipher), one a connection asked.

        A fourth column: the server has verified a certificate of the client's.

        `everywhere`: every connection of the arm, else its first.
        """
        return agent.query(arm, self.tls_witness, everywhere=everywhere)

    def greet(self, agent: Agent, arm: str) -> str:  # noqa: ARG002
        """That this arm of the agent's is served: what the server says of itself, or ''. Raises AgentError where it isn't."""
        return ""

    # ── at rest ───────────────────────────────────────────────────────────────────────────────────────────────────────

    home: str = ""
    """SQL that answers the directory (or file) that the server keeps its data in; empty: it can't be asked."""
    variables: str = ""
    """SQL that answers (name, value) of every setting in force; empty: it can't be asked."""
    unlike: tuple[str, ...] = ()
    """Settings that differ between any two servers (ports, paths, identifiers): patterns of fnmatch, left out when arms are compared."""
    temporary: tuple[str, ...] = ()
    """Files of temporary data: patterns of fnmatch, relative to the directory that `initialise` made."""

    direct_by_default: bool = False
    """Whether it goes past the page cache where nobody asks for it."""

    def does_direct_io(self, version: str) -> bool:  # noqa: ARG002
        """Whether this version of the server can read and write its data past the system's page cache."""
        return False

    def spills(self, word: str) -> tuple[Spill, ...]:  # noqa: ARG002
        """Ways to make the server write temporary data that holds this word; none: nothing is known of any."""
        return ()

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Settings for a buffer pool of `size` bytes (0: the server's own default), with direct I/O or without any.

        Raises UsageError where this server's cache can't be sized.
        """
        return {}

    def echo(self, text: str) -> str:
        """What makes the server say this text, which has no quotes in it. Pure."""
        return f"SELECT '{text}'"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        """Words that must be seen on the wire in clear, sent and received, if these are the rows of `echo`; '' where they aren't. Pure."""
        return (text, text) if rows == [[text]] else ("", "")

    def lay_out(self, directory: Path, place: Path, documents: Mapping[str, int], canary: str) -> None:  # noqa: B027
        """Documents of so many bytes each, by their paths, for a server in `directory`; they stay in `place`, and copies share them."""


def names() -> list[str]:
    """Names of all engines, by file; what begins with `_` is shared by several."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def get(name: str) -> Engine:
    """The engine of that name. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(f"unknown engine '{name}': {nearest(name, names())}")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    return engine
