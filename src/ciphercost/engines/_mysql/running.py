"""A MySQL or MariaDB server you already run, and whether a server there offers TLS."""

from __future__ import annotations

from ciphercost.engines import _network
from ciphercost.engines._mysql.greeting import SECONDS, Greeting, greeting, of_connection
from ciphercost.host import local_socket
from ciphercost.host.ports import command, crypto_library
from ciphercost.host.standing import Standing
from ciphercost.load.connection_string import mysql
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import Secret

WHICH_SERVER = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir, @@socket)"
"""SQL that returns one row, which no two servers share."""


NO_SOCKET_LOGIN = (
    "The unencrypted control goes by the server's Unix socket, for which the server may have another account (USER@localhost) than by TCP. "
    "That login failed, so there is no unencrypted control."
)


class RunningServer(_network.RunningServer):
    """A server you already run. What is unencrypted may go to its Unix-domain socket; what is encrypted goes to its port."""

    driver = "mysql"

    def __init__(self, engine: str, url: str, programs: tuple[str, ...]) -> None:
        super().__init__(mysql.read(url, engine), programs)
        self.engine = engine
        self.socket = self.asked.plain_socket
        self._which = ""
        reported = greeting(self.address, self.port)
        if reported.version and reported.mariadb != (engine == "mariadb"):
            other, right = ("MariaDB", "mariadb") if reported.mariadb else ("MySQL", "mysql")
            raise UsageError(
                f"--url {url}: the server at this address is {other} {reported.version}, not {engine}. "
                f"Write {right}:// for {engine}:// and name the engine {right}."
            )
        if self.socket:
            self.other_ports = {"tls": {"socket": None}}
            self._check_socket(reported)

    def _check_socket(self, by_port: Greeting) -> None:
        """Raises UsageError if nothing answers at the Unix-domain socket, or if it is another server's than the port."""
        what = f"--url: socket={self.socket}"
        try:
            with local_socket.connected(self.socket, SECONDS) as connection:
                reported, peer = of_connection(connection), local_socket.peer_of(connection)
        except OSError as error:
            raise UsageError(
                f"{what}: can't connect: {error.strerror or error}. Is the server running, and is that its socket (SELECT @@socket)?"
            ) from None
        if not reported.version:
            why = f"the server refuses connections: {reported.refusal}" if reported.refusal else "no MySQL or MariaDB"
            raise UsageError(f"{what}: {why}")
        # What began to listen may be systemd, which hands the socket on.
        pid = peer.pid if peer.pid and command(peer.pid).startswith(self.programs) else 0
        if (by_port.version and by_port.version != reported.version) or (self.pid and pid and self.pid != pid):
            raise UsageError(self._two_servers())
        if pid and not self.pid:
            self.pid = pid
            self.library = crypto_library(self.pid)
            self.standing = Standing(_network.YOURS, self.pid)

    def _two_servers(self) -> str:
        return (
            f"--url: socket={self.socket} and {self.host}:{self.port} are two servers, and a run compares one with itself; name the port of "
            "that socket's server (SELECT @@port)"
        )

    def recognise(self, which: str) -> None:
        """Check that every connection reaches the same server. `which`: its answer to WHICH_SERVER. Raises AgentError."""
        if self._which and which != self._which:
            raise AgentError(self._two_servers().removeprefix("--url: "), "socket")
        self._which = which

    def connection(self) -> Connection:
        connection = super().connection()
        return connection | {"socket": self.socket} if self.socket else connection

    def password(self) -> Secret | None:
        return mysql.password_found(self.engine)
