"""Shared by servers reached by host and port: started by ciphercost or already running, and their URLs.

Not an engine.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Server
from ciphercost.host.ports import address_of, crypto_library, is_loopback, listener
from ciphercost.host.process_end import kill_tree
from ciphercost.host.standing import Standing
from ciphercost.load.connection_string import ConnectionString
from ciphercost.load.passwords import with_password
from ciphercost.model.connection import Connection
from ciphercost.model.secret import Secret

if TYPE_CHECKING:
    from ciphercost.host.launch import Launch

PASSWORD_FILE = "ciphercost.password"  # noqa: S105 - a file name
"""File in a server's directory (mode 0600): the random password of ciphercost's own user."""
DATABASE_FILE = "ciphercost.database"
"""Beside it, if the user's dump brought a database of another name: that name."""
STOP_SECONDS = 60.0
CRASH_SECONDS = 30.0
"""Time that killed processes may take to be gone, as the kernel frees their memory first."""
YOURS = "your server"


class StartedServer(Server):
    """A server that ciphercost started. A subclass names driver, user and database."""

    driver: str
    user: str
    database: str
    keeps_processes = False
    """Whether the processes that it starts live as long as it does."""

    def __init__(self, started: Launch, directory: Path, library: str | None = None) -> None:
        """`library`: the cryptographic library, if it is not an OpenSSL that the process has loaded."""
        self.process = started.process
        self.pid = started.process.pid
        self.directory: Path = directory
        self.address = started.address
        self.port = started.port
        self.cgroups = started.cgroups
        self.standing = Standing(
            f"the server {self.process.name}", self.pid, [started.log], self.process.poll, lasting=self.keeps_processes
        )
        self.library = crypto_library(self.pid) if library is None else library

    def connection(self) -> Connection:
        return Connection(
            driver=self.driver,
            host=self.address,
            port=self.port,
            user=self.user,
            database=self._database_of_dump() or self.database,
            password=Secret((self.directory / PASSWORD_FILE).read_text()),
            # The user trusts that network, and the password is this server's alone.
            trusted=not is_loopback(self.address),
        )

    def _database_of_dump(self) -> str:
        file = self.directory / DATABASE_FILE
        return file.read_text() if file.exists() else ""

    def stop(self) -> None:
        """Stop in an orderly way, by the signal chosen at the start."""
        self.process.stop(STOP_SECONDS)

    def crash(self) -> None:
        """Kill all its processes, as a power cut would, and wait until they are gone. Nobody then takes it for dead by mistake.

        Raises RunError.
        """
        self.standing = None
        kill_tree(self.pid, CRASH_SECONDS)
        self.process.wait(CRASH_SECONDS)


class RunningServer(Server):
    """A server you already run: ciphercost never starts, stops or configures it. A subclass finds the password."""

    driver: str
    certified: bool = True
    """Whether the server may present a certificate, which the client checks against the host name in the URL."""

    def __init__(self, asked: ConnectionString, programs: tuple[str, ...]) -> None:
        """Raises UsageError unless the string names one server, reached over a network."""
        asked.needs_network()
        self.asked = asked
        (place,) = asked.places
        self.host = place.host
        self.port = place.port
        self.user = asked.user
        self.database = asked.database
        self.ca = asked.ca
        """CA file or directory named by the string, or SYSTEM; empty: none."""
        self.address = address_of(place.address or place.host, place.port)
        self.programs = programs
        """Prefixes of its processes' names."""
        self.pid = listener(self.address, self.port, programs)
        self.library = crypto_library(self.pid) if self.pid else ""
        self.standing = Standing(YOURS, self.pid) if self.pid else None

    @abstractmethod
    def password(self) -> Secret | None:
        """Return the password; None if none was found."""

    def connection(self) -> Connection:
        connection = Connection(
            driver=self.driver,
            host=self.address,
            port=self.port,
            user=self.user,
            database=self.database,
            tls_server_name=self.host if self.certified and self.address != self.host else None,
        )
        return with_password(connection, self.asked.password or self.password())

    def stop(self) -> None:
        """Do nothing: ciphercost did not start this server."""
